"""What `close` promises, for every store: when it returns, nothing is under way any more.

What was accepted has happened by then, and what was refused never will: whoever opens the same
data afterwards finds exactly what callers were reported.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from etcds import Etcd
from sully.store.base import Commit, Delete, Put, Record, Store, StoreKey
from sully.store.errors import ClosedError
from sully.store.etcd.store import EtcdStore
from sully.store.memory import MemoryStore
from sully.store.sqlite.store import SqliteStore


@dataclass(frozen=True)
class Data:
    """A store that is open, and how to open what it leaves behind."""

    store: Store
    again: Callable[[], Awaitable[Store]]


@pytest.fixture(params=["memory", "sqlite", pytest.param("etcd", marks=pytest.mark.slow)])
async def data(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Data]:
    with ExitStack() as stack:
        again = _opening(request.param, tmp_path, stack)
        async with await again() as store:
            yield Data(store, again)


def _opening(name: str, directory: Path, stack: ExitStack) -> Callable[[], Awaitable[Store]]:
    if name == "sqlite":
        return lambda: SqliteStore.open(directory)
    if name == "etcd":
        address = stack.enter_context(Etcd()).address
        return lambda: EtcdStore.open(address)
    only = MemoryStore()

    async def same() -> Store:
        # Its data cannot be opened, but read after the end.
        return only

    return same


def pod(number: int) -> StoreKey:
    return StoreKey("pods", "default", f"{number:03}")


async def begun(*calls: Awaitable[object]) -> list[asyncio.Future[object]]:
    """Start calls, and let each come to where it waits."""
    tasks: list[asyncio.Future[object]] = [asyncio.ensure_future(call) for call in calls]
    await asyncio.sleep(0)
    return tasks


async def held(data: Data) -> dict[StoreKey, int]:
    """Return the revisions of what is found afterwards."""
    async with await data.again() as store:
        page = await store.list("pods")
        return {record.key: record.revision for record in page.records}


def _in_order(commits: list[Commit]) -> list[Record | None]:
    """Return what each made, the newest last: etcd numbers writes of one time as it likes."""
    by_revision = sorted(commits, key=lambda commit: commit.revision)
    return [record for commit in by_revision for record in commit.records]


async def test_writes_under_way_are_over(data: Data) -> None:
    last = await data.store.commit([Put(pod(0), b"old")])
    tasks = await begun(
        data.store.commit([Delete(pod(0))]),
        *(data.store.commit([Put(pod(number % 10 + 1), b"new")]) for number in range(40)),
    )

    await data.store.close()

    assert all(task.done() for task in tasks)
    commits = [commit for task in tasks if isinstance(commit := task.result(), Commit)]
    assert sorted(commit.revision for commit in commits) == [
        last.revision + number for number in range(1, 42)
    ]
    newest = {record.key: record.revision for record in _in_order(commits) if record is not None}
    assert await held(data) == {key: newest[key] for key in newest if key != pod(0)}


async def test_a_write_whose_caller_left_is_over(data: Data) -> None:
    tasks = await begun(*(data.store.commit([Put(pod(number), b"1")]) for number in range(10)))
    for task in tasks:
        task.cancel()

    await data.store.close()

    assert sorted(await held(data)) == [pod(number) for number in range(10)]


async def test_what_is_begun_while_it_closes_never_happens(data: Data) -> None:
    tasks = await begun(*(data.store.commit([Put(pod(number), b"1")]) for number in range(10)))
    closing = (await begun(data.store.close()))[0]

    late = await begun(
        data.store.commit([Put(pod(99), b"1")]),
        data.store.compact(data.store.revision),
        data.store.agree("name", b"late"),
    )
    await closing

    for task in late:
        with pytest.raises(ClosedError):
            await task
    await asyncio.gather(*tasks)
    assert sorted(await held(data)) == [pod(number) for number in range(10)]


async def test_a_compaction_under_way_is_over(data: Data) -> None:
    for number in range(5):
        await data.store.commit([Put(pod(0), b"%d" % number)])
    oldest = data.store.revision - 1
    [task] = await begun(data.store.compact(oldest))

    await data.store.close()

    assert task.done()
    await task
    async with await data.again() as store:
        assert store.compacted == oldest


async def test_an_agreement_under_way_is_over(data: Data) -> None:
    [task] = await begun(data.store.agree("name", b"mine"))

    await data.store.close()

    assert task.done()
    assert await task == b"mine"


@pytest.mark.parametrize("cancels", [False, True], ids=["both wait", "the first is cancelled"])
async def test_all_who_close_wait_for_the_end(data: Data, cancels: bool) -> None:
    tasks = await begun(*(data.store.commit([Put(pod(number), b"1")]) for number in range(10)))
    first, second = await begun(data.store.close(), data.store.close())
    if cancels:
        first.cancel()

    await second

    assert all(task.done() for task in tasks)
    assert first.done()
    # Nothing holds the data any more.
    assert len(await held(data)) == 10

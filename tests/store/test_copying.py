"""A copy of a store in use: whole, of one moment, and nobody waits for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import pytest

from store.faults import full_disk
from storekeys import pod
from sully.store.base import Put
from sully.store.directory import COPY_FILE, DATABASE_FILE
from sully.store.errors import ClosedError, UnavailableError
from sully.store.memory import MemoryStore
from sully.store.sqlite.store import SqliteStore

A, B = pod("a"), pod("b")


def folder_with(content: bytes, folder: Path) -> Path:
    folder.mkdir()
    (folder / DATABASE_FILE).write_bytes(content)
    return folder


async def fill(store: SqliteStore, megabytes: int) -> None:
    for n in range(megabytes):
        await store.commit([Put(pod(f"large-{n}-{m}"), bytes(100_000)) for m in range(10)])


async def test_a_copy_has_everything_before_it_and_one_moment_of_what_came_after(
    tmp_path: Path,
) -> None:
    async with await SqliteStore.open(tmp_path / "one") as store:
        await fill(store, 20)
        await store.commit([Put(A, b"0"), Put(B, b"0")])
        copying = asyncio.ensure_future(store.snapshot())
        written = 0
        while not copying.done():
            written += 1
            # Each in a transaction of its own, so that A is never behind B.
            await store.commit([Put(A, b"%d" % written)])
            await store.commit([Put(B, b"%d" % written)])
        with await copying as file:
            content = file.read()
        assert written > 1, "nothing was written meanwhile"
        assert not (tmp_path / "one" / COPY_FILE).exists()

    async with await SqliteStore.open(folder_with(content, tmp_path / "two")) as copy:
        records = {r.key.name: r for r in (await copy.list("pods")).records}
        assert sum(name.startswith("large-") for name in records) == 200
        first, second = int(records["a"].value), int(records["b"].value)
        assert first - second in (0, 1)
        assert copy.revision == max(records["a"].revision, records["b"].revision)


async def test_a_write_waits_for_a_step_and_not_for_the_copy(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        await fill(store, 20)
        copying = asyncio.ensure_future(store.snapshot())
        await asyncio.sleep(0)
        await store.commit([Put(A, b"")])

        assert not copying.done()
        (await copying).close()


async def test_copies_follow_each_other(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        await fill(store, 1)
        files = await asyncio.gather(*(store.snapshot() for _ in range(3)))
        sizes = {len(file.read()) for file in files}
        for file in files:
            file.close()

        assert len(sizes) == 1


async def test_a_copy_that_has_no_room_harms_nobody(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        await fill(store, 2)
        with full_disk(), pytest.raises(UnavailableError, match="cannot copy the database"):
            await store.snapshot()
        assert not (tmp_path / COPY_FILE).exists()
        await store.commit([Put(A, b"1")])
        (await store.snapshot()).close()


async def test_a_cancelled_copy_leaves_nothing_behind(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        await fill(store, 5)
        copying = asyncio.ensure_future(store.snapshot())
        await asyncio.sleep(0)
        copying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await copying

        assert not (tmp_path / COPY_FILE).exists()
        (await store.snapshot()).close()


async def test_closing_ends_a_copy(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    await fill(store, 20)
    copying = asyncio.ensure_future(store.snapshot())
    await asyncio.sleep(0)
    await store.close()

    with pytest.raises(UnavailableError, match="closed during the copy"):
        await copying
    with pytest.raises(ClosedError):
        await store.snapshot()


async def test_a_store_in_memory_has_nothing_to_copy() -> None:
    async with MemoryStore() as store:
        with pytest.raises(UnavailableError, match="in memory only"):
            await store.snapshot()


async def test_a_file_of_the_first_format_is_brought_up_to_date(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        await store.commit([Put(A, b"old")])
    connection = apsw.Connection(str(tmp_path / DATABASE_FILE))
    connection.execute("ALTER TABLE log DROP COLUMN sum")
    connection.pragma("user_version", 1)
    connection.close()

    for value in (b"new", b"newer"):
        async with await SqliteStore.open(tmp_path) as store:
            assert await store.get(A) is not None
            await store.commit([Put(A, value)])
    async with await SqliteStore.open(tmp_path) as store:
        record = await store.get(A)
        assert record is not None
        assert record.value == b"newer"

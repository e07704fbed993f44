"""What every store promises to two who use it together: two processes on etcd, or two in one.

In memory and SQLite both are the same store; what a store of several processes promises must not be
less than that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest

from etcds import Etcd
from storekeys import pod
from sully.store.base import Check, Delete, Event, Put, Store, StoreKey
from sully.store.errors import CompactedError, ConflictError
from sully.store.etcd.store import EtcdStore
from sully.store.memory import MemoryStore
from sully.store.sqlite.store import SqliteStore

Pair = tuple[Store, Store]


A, B, TURN = pod("a"), pod("b"), StoreKey("turns", "", "0")


@pytest.fixture(params=["memory", "sqlite", pytest.param("etcd", marks=pytest.mark.slow)])
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Pair]:
    with ExitStack() as outer:
        async with AsyncExitStack() as stack:
            if request.param == "etcd":
                address = outer.enter_context(Etcd()).address
                one = await stack.enter_async_context(await EtcdStore.open(address))
                yield one, await stack.enter_async_context(await EtcdStore.open(address))
            else:
                sqlite = request.param == "sqlite"
                made = await SqliteStore.open(tmp_path) if sqlite else MemoryStore()
                both: Store = await stack.enter_async_context(made)
                yield both, both


def short(events: list[Event]) -> list[tuple[str, StoreKey, bytes, int]]:
    return [(event.kind, event.record.key, event.record.value, event.revision) for event in events]


async def test_a_read_is_never_older_than_what_was_acknowledged_before_it(pair: Pair) -> None:
    acknowledged = (await pair[0].commit([Put(A, b"")])).revision
    over = False

    async def write(store: Store) -> None:
        nonlocal acknowledged
        for _ in range(50):
            done = await store.commit([Put(A, b"")])
            acknowledged = max(acknowledged, done.revision)

    async def read(store: Store) -> int:
        count = 0
        while not over:
            before = acknowledged
            record = await store.get(A)
            listed = (await store.list("pods")).records[0]
            assert record is not None
            assert before <= record.revision <= listed.revision
            count += 1
            await asyncio.sleep(0)
        return count

    readers = [asyncio.ensure_future(read(store)) for store in pair * 2]
    await asyncio.gather(*(write(store) for store in pair))
    over = True
    assert min(await asyncio.gather(*readers)) > 0


async def test_what_one_wrote_the_other_can_build_on(pair: Pair) -> None:
    one, other = pair
    for _ in range(20):
        made = await one.commit([Put(A, b"1", expect=0)])
        changed = await other.commit([Put(A, b"2", expect=made.revision), Check(B, 0)])
        with pytest.raises(ConflictError):
            await one.commit([Delete(A, expect=made.revision)])
        await one.commit([Delete(A, expect=changed.revision)])
        one, other = other, one


async def test_who_catches_up_sees_it_in_the_newest_state(pair: Pair) -> None:
    one, other = pair
    made = await one.commit([Put(A, b"1")])
    await other.catch_up()

    record = other.newest(A)
    assert record is not None
    assert (record.revision, other.revision) == (made.revision, made.revision)


async def test_of_those_who_decided_by_the_same_state_one_wins(pair: Pair) -> None:
    for n in range(30):
        # All of them look before any of them writes, and write what no other writes.
        looked = [store.newest(TURN) for store in pair]
        expects = [turn.revision if turn else 0 for turn in looked]
        outcomes = await asyncio.gather(
            *(
                store.commit([Put(pod(f"{n}-{side}"), b"", 0), Put(TURN, b"", expect)])
                for side, (store, expect) in enumerate(zip(pair, expects, strict=True))
            ),
            return_exceptions=True,
        )
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Commit", "ConflictError"]
        for store in pair:
            await store.catch_up()
    assert len((await pair[1].list("pods")).records) == 30


async def test_both_are_reported_the_same_in_the_same_order(pair: Pair) -> None:
    watches = [store.watch("pods", after=store.revision) for store in pair]
    keys = [pod(f"{n % 7}") for n in range(60)]
    await asyncio.gather(
        *(store.commit([Put(key, f"{n}".encode())]) for n, key in enumerate(keys) for store in pair)
    )
    for store in pair:
        await store.catch_up()

    watchs = [short(watch.take()) for watch in watches]
    assert watchs[0] == watchs[1]
    assert len(watchs[0]) == 2 * len(keys)
    assert [message[3] for message in watchs[0]] == sorted({message[3] for message in watchs[0]})


async def test_compaction_by_one_leaves_the_other_no_gap_it_is_not_notified_of(pair: Pair) -> None:
    one, other = pair
    slow = other.watch("pods", after=other.revision)
    begun = other.revision
    for n in range(20):
        await one.commit([Put(A, str(n).encode())])
    await one.compact(one.revision)
    await one.commit([Delete(A)])
    await other.catch_up()

    # Everything, or the word that it is not everything: never less.
    for take in (slow.take, lambda: other.watch("pods", after=begun).take()):
        try:
            assert len(take()) == 21
        except CompactedError:
            assert other.compacted > begun
    assert (await other.list("pods")).records == []


async def test_pages_of_the_one_go_on_at_the_other(pair: Pair) -> None:
    one, other = pair
    await one.commit([Put(pod(f"{n:02}"), b"") for n in range(10)])
    first = await one.list("pods", limit=4)
    await other.commit([Delete(pod("05")), Put(pod("055"), b"")])
    last = first.records[-1].key
    rest = await other.list("pods", at=first.revision, start=(last.namespace, last.name))

    assert [record.key.name for record in (*first.records, *rest.records)] == [
        f"{n:02}" for n in range(10)
    ]

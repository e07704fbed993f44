"""What every store promises to those who watch."""

from __future__ import annotations

import asyncio

import pytest

from storekeys import pod
from sully.store.base import Delete, Event, Put, Store, StoreKey
from sully.store.errors import ClosedError, CompactedError, FutureRevisionError

A, B = pod("a"), pod("b")


def short(events: list[Event]) -> list[tuple[str, str, int]]:
    return [(event.kind, event.record.key.name, event.revision) for event in events]


async def test_events_come_in_order_exactly_once(store: Store) -> None:
    watch = store.watch("pods", after=store.revision)
    await store.commit([Put(A, b"1")])
    await store.commit([Put(A, b"2"), Put(B, b"1")])
    await store.commit([Delete(A)])

    assert short(watch.take()) == [
        ("ADDED", "a", 2),
        ("MODIFIED", "a", 3),
        ("ADDED", "b", 3),
        ("DELETED", "a", 4),
    ]
    assert watch.take() == []


async def test_an_event_carries_the_states_around_it(store: Store) -> None:
    watch = store.watch("pods", after=store.revision)
    (first,) = (await store.commit([Put(A, b"1")])).records
    (second,) = (await store.commit([Put(A, b"2")])).records
    await store.commit([Delete(A)])

    added, modified, deleted = watch.take()

    assert (added.record, added.previous) == (first, None)
    assert (modified.record, modified.previous) == (second, first)
    assert (deleted.record, deleted.previous) == (second, second)
    assert deleted.revision == store.revision


async def test_watchers_share_events_and_their_memos(store: Store) -> None:
    one, two = (store.watch("pods", after=store.revision) for _ in range(2))
    await store.commit([Put(A, b"1")])

    (first,), (second,) = one.take(), two.take()
    first.derived = {"encoded": b"..."}

    assert second.derived == {"encoded": b"..."}


async def test_a_watch_replays_from_an_older_revision(store: Store) -> None:
    await store.commit([Put(A, b"1")])
    then = store.revision
    await store.commit([Put(B, b"1")])
    await store.commit([Delete(A)])

    watch = store.watch("pods", after=then)

    assert short(watch.take()) == [("ADDED", "b", then + 1), ("DELETED", "a", then + 2)]


async def test_a_watch_sees_its_resource_and_namespace_only(store: Store) -> None:
    everywhere = store.watch("pods", after=store.revision)
    here = store.watch("pods", "here", after=store.revision)
    await store.commit([Put(pod("x", "here"), b""), Put(pod("y", "there"), b"")])
    await store.commit([Put(StoreKey("nodes", "", "n"), b"")])

    assert [event.record.key.name for event in everywhere.take()] == ["x", "y"]
    assert [event.record.key.name for event in here.take()] == ["x"]


async def test_waiting_ends_with_the_next_event(store: Store) -> None:
    watch = store.watch("pods", after=store.revision)
    waiting = asyncio.ensure_future(watch.wait())
    await asyncio.sleep(0)
    assert not waiting.done()

    await store.commit([Put(A, b"1")])
    await waiting

    assert len(watch.take()) == 1


async def test_waiting_does_not_wait_when_there_are_events(store: Store) -> None:
    watch = store.watch("pods", after=store.revision)
    await store.commit([Put(A, b"1")])

    await watch.wait()

    assert len(watch.take()) == 1


async def test_a_watcher_that_leaves_does_not_disturb_the_others(store: Store) -> None:
    cancelled, staying = (store.watch("pods", after=store.revision) for _ in range(2))
    waits = [asyncio.ensure_future(watch.wait()) for watch in (cancelled, staying)]
    await asyncio.sleep(0)
    waits[0].cancel()
    await asyncio.wait(waits[:1])
    assert not waits[1].done()

    await store.commit([Put(A, b"1")])
    await waits[1]

    assert len(staying.take()) == 1


async def test_closing_a_subscription_wakes_its_reader_only(store: Store) -> None:
    closing, staying = (store.watch("pods", after=store.revision) for _ in range(2))
    waits = [asyncio.ensure_future(watch.wait()) for watch in (closing, staying)]
    await asyncio.sleep(0)

    closing.close()
    closing.close()
    await waits[0]

    assert not waits[1].done()
    with pytest.raises(ClosedError):
        closing.take()
    waits[1].cancel()


async def test_closing_the_store_wakes_everyone(store: Store) -> None:
    watches = [store.watch("pods", after=store.revision) for _ in range(3)]
    waits = [asyncio.ensure_future(watch.wait()) for watch in watches]
    await asyncio.sleep(0)

    await store.close()
    await asyncio.gather(*waits)

    for watch in watches:
        with pytest.raises(ClosedError):
            watch.take()


async def test_progress_is_what_a_bookmark_may_promise(store: Store) -> None:
    watch = store.watch("pods", after=store.revision)
    await store.commit([Put(StoreKey("nodes", "", "n"), b"")])
    elsewhere = watch.progress
    await store.commit([Put(A, b"1")])
    await store.commit([Put(B, b"1")])
    behind = watch.progress
    watch.take()

    assert elsewhere == 2
    assert behind == 2
    assert watch.progress == store.revision == 4


async def test_a_watch_begins_neither_before_history_nor_in_the_future(store: Store) -> None:
    await store.commit([Put(A, b"1")])
    await store.commit([Put(A, b"2")])
    await store.compact(store.revision)

    with pytest.raises(CompactedError):
        store.watch("pods", after=store.revision - 1)
    with pytest.raises(FutureRevisionError):
        store.watch("pods", after=store.revision + 1)
    assert store.watch("pods", after=store.compacted).take() == []


async def test_a_slow_watcher_is_reported_that_it_missed_something(store: Store) -> None:
    watch = store.watch("pods", after=store.revision)
    await store.commit([Put(A, b"1")])
    await store.commit([Put(B, b"1")])

    await store.compact(store.revision - 1)

    await watch.wait()
    with pytest.raises(CompactedError) as caught:
        watch.take()
    assert caught.value.requested == 1


async def test_compaction_spares_a_watcher_that_missed_nothing(store: Store) -> None:
    quiet = store.watch("nodes", after=store.revision)
    current = store.watch("pods", after=store.revision)
    await store.commit([Put(A, b"1")])
    current.take()

    await store.compact(store.revision)
    await store.commit([Put(B, b"1")])

    assert quiet.take() == []
    assert short(current.take()) == [("ADDED", "b", 3)]


async def test_many_watchers_all_get_everything(store: Store) -> None:
    async def follow() -> list[int]:
        watch = store.watch("pods", after=1)
        seen: list[int] = []
        while len(seen) < 40:
            await watch.wait()
            seen += [event.revision for event in watch.take()]
        return seen

    followers = [asyncio.ensure_future(follow()) for _ in range(200)]
    await asyncio.gather(*(store.commit([Put(pod(str(n)), b"")]) for n in range(40)))

    assert await asyncio.gather(*followers) == [list(range(2, 42))] * 200

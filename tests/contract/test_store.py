"""What every store promises about writing and reading."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from storekeys import pod
from sully.store.base import (
    FIRST_REVISION,
    MAX_OPERATIONS,
    MAX_VALUE_BYTES,
    Check,
    Delete,
    Op,
    Put,
    Store,
    StoreKey,
)
from sully.store.errors import (
    ClosedError,
    CompactedError,
    ConflictError,
    DuplicateKeyError,
    EmptyTransactionError,
    FutureRevisionError,
    InvalidTransactionError,
    TooLargeError,
    TooManyOperationsError,
)

A, B, C = pod("a"), pod("b"), pod("c")


async def put(store: Store, *keys: StoreKey, value: bytes = b"v") -> int:
    """Write each key in its own transaction and return the last revision."""
    for key in keys:
        await store.commit([Put(key, value)])
    return store.revision


async def names(store: Store, **how: Any) -> list[str]:
    page = await store.list("pods", **how)
    return [record.key.name for record in page.records]


async def test_an_empty_store_is_at_the_first_revision(store: Store) -> None:
    page = await store.list("pods")

    assert (store.revision, store.compacted) == (FIRST_REVISION, FIRST_REVISION)
    assert (page.records, page.revision, page.remaining) == ([], FIRST_REVISION, 0)
    assert await store.get(A) is None
    assert store.newest(A) is None


async def test_a_put_is_read_back_with_its_revisions(store: Store) -> None:
    first = await store.commit([Put(A, b"1")])
    second = await store.commit([Put(A, b"2")])

    record = await store.get(A)

    assert record is not None
    assert record is second.records[0] is store.newest(A)
    assert (record.key, record.value) == (A, b"2")
    assert (record.create_revision, record.revision) == (first.revision, second.revision)
    assert second.revision == first.revision + 1 == store.revision


async def test_a_record_that_is_created_again_restarts(store: Store) -> None:
    await put(store, A)
    await store.commit([Delete(A)])
    revision = await put(store, A)

    record = await store.get(A)

    assert record is not None
    assert record.create_revision == record.revision == revision


async def test_a_value_that_is_equal_is_still_a_write(store: Store) -> None:
    before = await put(store, A, value=b"same")

    assert await put(store, A, value=b"same") == before + 1


async def test_what_was_derived_before_the_write_stays_with_the_record(store: Store) -> None:
    decoded = object()
    await store.commit([Put(A, b"1", derived={"decoded": decoded})])

    record = await store.get(A)

    assert record is not None
    assert record.derived["decoded"] is decoded


async def test_what_is_current_can_be_read_without_waiting(store: Store) -> None:
    await put(store, B, A)
    await store.commit([Put(StoreKey("pods", "other", "z"), b"1")])
    await store.commit([Delete(B)])

    assert [record.key.name for record in store.current("pods")] == ["a", "z"]
    assert [record.key.name for record in store.current("pods", "default")] == ["a"]
    assert list(store.current("claims")) == []


async def test_a_transaction_is_one_revision(store: Store) -> None:
    await put(store, A, B)
    before = store.revision

    commit = await store.commit([Put(C, b"c"), Delete(A), Check(B, before)])

    checked = await store.get(B)
    assert commit.revision == store.revision == before + 1
    assert [record and record.key for record in commit.records] == [C, A, B]
    assert commit.records[2] is checked
    assert await names(store) == ["b", "c"]


async def test_checks_alone_write_nothing(store: Store) -> None:
    revision = await put(store, A)

    commit = await store.commit([Check(A, revision), Check(B, 0)])

    assert commit.revision == store.revision == revision
    assert commit.records == (await store.get(A), None)


@dataclass(frozen=True)
class Refused:
    """A transaction on a store where A and B are at revisions 2 and 3."""

    op: Op
    revision: int = 0


CONFLICTS = {
    "put where something is": Refused(Put(A, b"", expect=0), revision=2),
    "put where nothing is": Refused(Put(C, b"", expect=2)),
    "put on an older revision": Refused(Put(B, b"", expect=2), revision=3),
    "put on a newer revision": Refused(Put(A, b"", expect=3), revision=2),
    "delete of nothing": Refused(Delete(C)),
    "delete of nothing, expecting nothing": Refused(Delete(C, expect=0)),
    "delete of another revision": Refused(Delete(A, expect=3), revision=2),
    "check of another revision": Refused(Check(A, 3), revision=2),
    "check that nothing is there": Refused(Check(A, 0), revision=2),
    "check of nothing": Refused(Check(C, 2)),
}


@pytest.mark.parametrize("case", CONFLICTS.values(), ids=CONFLICTS.keys())
async def test_a_conflict_names_the_key_and_leaves_everything(store: Store, case: Refused) -> None:
    await put(store, A, B)
    other = pod("other")

    with pytest.raises(ConflictError) as caught:
        await store.commit([Put(other, b""), case.op, Put(pod("another"), b"")])

    conflict = caught.value
    assert conflict.key == case.op.key
    assert conflict.expect == case.op.expect
    assert (conflict.current.revision if conflict.current else 0) == case.revision
    assert await names(store) == ["a", "b"]
    assert store.revision == 3
    assert store.newest(other) is None


@dataclass(frozen=True)
class Invalid:
    ops: list[Op] = field(default_factory=list)
    want: type[InvalidTransactionError] = EmptyTransactionError


INVALID = {
    "empty": Invalid(),
    "too long": Invalid(
        [Put(pod(str(n)), b"") for n in range(MAX_OPERATIONS + 1)], TooManyOperationsError
    ),
    "too many checks": Invalid([Check(A, 0)] * (MAX_OPERATIONS + 1), TooManyOperationsError),
    "too large": Invalid([Put(A, bytes(MAX_VALUE_BYTES + 1))], TooLargeError),
    "one key put twice": Invalid([Put(A, b"1"), Put(A, b"2")], DuplicateKeyError),
    "one key put and deleted": Invalid([Put(A, b"1"), Delete(A)], DuplicateKeyError),
}


@pytest.mark.parametrize("case", INVALID.values(), ids=INVALID.keys())
async def test_an_invalid_transaction_is_refused(store: Store, case: Invalid) -> None:
    with pytest.raises(case.want):
        await store.commit(case.ops)

    assert store.revision == FIRST_REVISION


async def test_the_largest_transaction_is_accepted(store: Store) -> None:
    await store.commit([Put(A, bytes(MAX_VALUE_BYTES))])
    await store.commit([Put(pod(f"{n:03}"), b"") for n in range(MAX_OPERATIONS)])

    assert len(await names(store)) == MAX_OPERATIONS + 1


async def test_a_list_is_ordered_by_namespace_then_name(store: Store) -> None:
    keys = [
        pod("b", "y"),
        pod("a", "y"),
        pod("z", "x"),
        pod("a", "x-1"),
        StoreKey("nodes", "", "n"),
    ]
    await put(store, *keys)

    page = await store.list("pods")

    assert [tuple(record.key[1:]) for record in page.records] == [
        ("x", "z"),
        ("x-1", "a"),
        ("y", "a"),
        ("y", "b"),
    ]
    assert await names(store, namespace="x") == ["z"]
    assert await names(store, namespace="missing") == []
    assert page.revision == store.revision


async def test_pages_join_to_the_list_as_it_was(store: Store) -> None:
    await put(store, *[pod(f"p{n}", f"n{n % 3}") for n in range(10)])
    whole = await store.list("pods")
    collected = []
    page = await store.list("pods", limit=4)
    while True:
        collected += page.records
        await store.commit([Delete(page.records[0].key)])
        await store.commit([Put(pod(f"later{len(collected)}", "n0"), b"")])
        if not page.remaining:
            break
        last = page.records[-1].key
        page = await store.list(
            "pods", at=page.revision, start=(last.namespace, last.name), limit=4
        )

    assert collected == whole.records


async def test_remaining_counts_what_follows_the_page(store: Store) -> None:
    await put(store, A, B, C, pod("x", "other"))

    first = await store.list("pods", "default", limit=1)
    rest = await store.list("pods", "default", start=("default", "a"), limit=5)
    beyond = await store.list("pods", "default", start=("other", "x"))

    assert (first.remaining, rest.remaining, beyond.remaining) == (2, 0, 0)
    assert (len(rest.records), beyond.records) == (2, [])


async def test_a_page_of_nothing_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        await store.list("pods", limit=0)


async def test_an_older_revision_can_be_listed(store: Store) -> None:
    await put(store, A, B)
    then = store.revision
    old = (await store.list("pods")).records
    await store.commit([Put(A, b"new"), Delete(B), Put(C, b"new")])

    page = await store.list("pods", at=then)

    assert page.records == old
    assert page.revision == then
    assert await names(store, at=FIRST_REVISION) == []
    assert await names(store, at=store.revision) == ["a", "c"]


async def test_a_revision_to_come_cannot_be_listed(store: Store) -> None:
    with pytest.raises(FutureRevisionError):
        await store.list("pods", at=store.revision + 1)


async def test_compaction_forgets_history_and_keeps_records(store: Store) -> None:
    await put(store, A, B, A)
    await store.commit([Delete(B)])
    before = store.revision

    await store.compact(before - 1)

    assert (store.revision, store.compacted) == (before, before - 1)
    assert await names(store) == ["a"]
    assert await names(store, at=before - 1) == ["a", "b"]
    with pytest.raises(CompactedError) as caught:
        await store.list("pods", at=before - 2)
    assert (caught.value.requested, caught.value.compacted) == (before - 2, before - 1)


async def test_compacting_less_again_does_nothing(store: Store) -> None:
    await put(store, A, B, C)
    await store.compact(store.revision)
    await store.compact(store.revision - 1)

    assert store.compacted == store.revision


async def test_the_future_cannot_be_compacted(store: Store) -> None:
    with pytest.raises(FutureRevisionError):
        await store.compact(store.revision + 1)


async def test_the_horizon_bounds_the_events_after_it(store: Store) -> None:
    await put(store, A, B)
    await store.commit([Put(A, b"1"), Put(B, b"1"), Put(C, b"1")])
    last = store.revision

    assert [store.horizon(events=n, size=100) for n in (0, 1, 2, 3, 4, 5, 9)] == [
        last,
        last,
        last,
        last - 1,
        last - 2,
        FIRST_REVISION,
        FIRST_REVISION,
    ]


async def test_the_horizon_bounds_the_bytes_after_it(store: Store) -> None:
    await put(store, A, B, value=bytes(10))
    await store.commit([Delete(A)])
    last = store.revision

    assert [store.horizon(events=9, size=n) for n in (0, 9, 10, 19, 20)] == [
        last - 1,
        last - 1,
        last - 2,
        last - 2,
        FIRST_REVISION,
    ]


async def test_writers_that_race_for_one_key_get_one_winner(store: Store) -> None:
    outcomes = await asyncio.gather(
        *(store.commit([Put(A, str(n).encode(), expect=0)]) for n in range(20)),
        return_exceptions=True,
    )

    winner = await store.get(A)
    lost = [outcome for outcome in outcomes if isinstance(outcome, ConflictError)]
    assert len(lost) == 19
    assert [conflict.current for conflict in lost] == [winner] * 19


async def test_read_modify_write_on_the_newest_state_never_conflicts(store: Store) -> None:
    async def increment() -> None:
        current = store.newest(A)
        value = int(current.value) + 1 if current else 1
        expect = current.revision if current else 0
        await store.commit([Put(A, str(value).encode(), expect=expect)])

    await asyncio.gather(*(increment() for _ in range(50)))

    record = await store.get(A)
    assert record is not None
    assert record.value == b"50"


async def test_a_write_that_was_accepted_happens_though_its_caller_left(store: Store) -> None:
    task = asyncio.ensure_future(store.commit([Put(A, b"1")]))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])

    await store.commit([Put(B, b"1")])

    assert await names(store) == ["a", "b"]


async def test_a_closed_store_refuses(store: Store) -> None:
    accepted = asyncio.ensure_future(store.commit([Put(A, b"1")]))
    await asyncio.sleep(0)
    await store.close()
    await store.close()

    assert (await accepted).revision == FIRST_REVISION + 1
    with pytest.raises(ClosedError):
        await store.commit([Put(B, b"1")])
    with pytest.raises(ClosedError):
        await store.compact(FIRST_REVISION)
    with pytest.raises(ClosedError):
        store.watch("pods", after=store.revision)

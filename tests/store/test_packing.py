"""What the values of the history occupy, counted in bytes, and that they are read as written."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

import pytest

from sully.store.base import Delete, Put, Record, StoreKey
from sully.store.memory import MemoryStore
from sully.store.sqlite.packing import (
    BLOCK_BYTES,
    BLOCK_VALUES,
    CATCH_UP,
    KEEP_BYTES,
    KEEP_CURRENT_BYTES,
    KEEP_CURRENT_VALUES,
    KEEP_VALUES,
    MAX_VALUE_BYTES,
    CompressedAlone,
    Packer,
)
from sully.store.state import State

TEXT = b'{"metadata":{"name":"%d"},"spec":{"fields":["one","two","three","four"]}}'


def record(value: bytes) -> Record:
    return Record(StoreKey("pods", "", "p"), value, 1, 1)


def occupied(records: list[Record]) -> int:
    """Return the bytes of these values, each block counted once."""
    blocks: dict[int, int] = {}
    for held in (record._value for record in records):
        if isinstance(held, bytes):
            blocks[id(held)] = sys.getsizeof(held)
        else:
            block = held.block  # type: ignore[attr-defined]  # only the protocol is declared
            blocks[id(block)] = sys.getsizeof(block.data) + 8 * len(block.lengths)
            blocks[id(held)] = sys.getsizeof(held)
    return sum(blocks.values())


def pack(values: list[bytes]) -> list[Record]:
    packer = Packer()
    records = [record(value) for value in values]
    for superseded in records:
        packer.add(superseded)
    return records


CASES = {
    "none": [],
    "one": [b"{}"],
    "empty": [b""] * 1000,
    "few": [TEXT % n for n in range(KEEP_VALUES)],
    "many": [TEXT % n for n in range(5000)],
    "of all sizes": [random.Random(n).randbytes(n * 37 % 5000) for n in range(2000)],
    "large": [bytes([n]) * BLOCK_BYTES for n in range(100)],
    "too large": [bytes([n]) * (MAX_VALUE_BYTES + n) for n in range(5)],
}


@pytest.mark.parametrize("values", CASES.values(), ids=CASES.keys())
def test_values_are_read_as_they_were_written(values: list[bytes]) -> None:
    records = pack(values)

    assert [record.value for record in records] == values
    assert [record.value for record in reversed(records)] == values[::-1]


def test_the_newest_values_stay_as_they_are() -> None:
    records = pack([TEXT % n for n in range(5000)])

    plain = [isinstance(record._value, bytes) for record in records]
    assert plain == sorted(plain)
    assert KEEP_VALUES <= sum(plain) < KEEP_VALUES + BLOCK_VALUES


def test_few_bytes_wait_however_large_the_values_are() -> None:
    records = pack([bytes([n]) * (MAX_VALUE_BYTES // 2) for n in range(200)])

    waiting = sum(len(x.value) for x in records if isinstance(x._value, bytes))
    assert waiting < KEEP_BYTES + MAX_VALUE_BYTES


def test_a_value_that_takes_long_is_not_compressed() -> None:
    values = [b"x" * (MAX_VALUE_BYTES + 1) for _ in range(2 * KEEP_VALUES)]

    assert all(record._value is value for record, value in zip(pack(values), values, strict=True))


async def test_superseded_values_take_a_tenth_of_their_size() -> None:
    """The history of 5000 writes to objects of one kind, which have random names and numbers."""
    store, numbers = MemoryStore(), random.Random(1)
    written = {}
    for count in range(5000):
        key = StoreKey("pods", "", str(count % 100))
        value = (TEXT * 20) % tuple(numbers.getrandbits(20) for _ in range(20))
        written[(await store.commit([Put(key, value)])).revision] = value
    for name in range(50):
        await store.commit([Delete(StoreKey("pods", "", str(name)))])

    events = store.watch("pods", after=store.compacted).take()

    records = [event.record for event in events[:5000]]
    packed = [record for record in records if not isinstance(record._value, bytes)]
    assert len(packed) > 4000
    assert occupied(packed) < sum(len(record.value) for record in packed) / 10
    assert {record.revision: record.value for record in records} == written
    assert all(event.record is event.previous for event in events[5000:])
    page = await store.list("pods", at=store.compacted + 150)
    assert [record.value for record in page.records] == [
        written[record.revision] for record in page.records
    ]
    assert len(page.records) == 100


CURRENT = {
    "alike": lambda n: TEXT * 20 % tuple(random.Random(n).getrandbits(20) for _ in range(20)),
    "of two shapes": lambda n: (TEXT % n, b'{"data":{"%d":"a","b":[]}}' % n)[n % 2] * 20,
    "random": lambda n: random.Random(n).randbytes(200),
    "empty": lambda n: b"" * n,
    "large": lambda n: b"%d" % n * 20_000,
}


@pytest.mark.parametrize("value", CURRENT.values(), ids=CURRENT.keys())
async def test_current_values_are_read_as_they_were_written(value: Callable[[int], bytes]) -> None:
    store, count = MemoryStore(), KEEP_CURRENT_VALUES + 200
    for number in range(count):
        await store.commit([Put(StoreKey("pods", "", f"{number:04}"), value(number))])

    records = (await store.list("pods")).records

    assert [record.value for record in records] == list(map(value, range(count)))
    assert [record.size for record in records] == [len(value(n)) for n in range(count)]
    plain = [record for record in records if isinstance(record._value, bytes)]
    assert len(plain) >= KEEP_CURRENT_VALUES or sum(r.size for r in plain) > KEEP_CURRENT_BYTES / 2


async def test_current_values_that_are_not_new_take_a_third_of_their_size() -> None:
    """They are compressed one by one, and a third of each is random here."""
    store = MemoryStore()
    for number in range(KEEP_CURRENT_VALUES + 2000):
        key = StoreKey("pods", "", f"{number:04}")
        await store.commit([Put(key, CURRENT["alike"](number))])

    records = (await store.list("pods")).records

    values = [record._value for record in records]
    packed = [value for value in values if isinstance(value, CompressedAlone)]
    assert values[:2000] == packed
    assert sum(len(value.data) for value in packed) < sum(value.size for value in packed) / 3


async def test_of_objects_that_are_written_often_only_the_history_is_packed() -> None:
    store = MemoryStore()
    for count in range(KEEP_CURRENT_VALUES + 2000):
        await store.commit([Put(StoreKey("leases", "", str(count % 10)), TEXT % count)])

    records = (await store.list("leases")).records

    assert not any(record.is_packed for record in records)


async def test_a_packed_value_is_superseded_and_stays_readable_in_the_history() -> None:
    store = MemoryStore()
    for number in range(KEEP_CURRENT_VALUES + 100):
        await store.commit([Put(StoreKey("pods", "", f"{number:04}"), TEXT * 9 % ((number,) * 9))])
    at, key = store.revision, StoreKey("pods", "", "0050")
    record = await store.get(key)
    assert record is not None
    assert record.is_packed

    for number in range(KEEP_VALUES + BLOCK_VALUES):
        await store.commit([Put(key, TEXT % number)])

    page = await store.list("pods", at=at)
    assert page.records[50].value == TEXT * 9 % ((50,) * 9)


def test_records_of_a_restart_are_packed_while_others_are_written() -> None:
    state = State(revision=1, compacted=1)
    keys = [StoreKey("pods", "", f"{number:04}") for number in range(2 * KEEP_CURRENT_VALUES)]
    records = [Record(key, TEXT * 9 % ((1,) * 9), 1, 1) for key in keys]
    state.restore(records, ())
    assert not any(record.is_packed for record in records)

    table = state.table("pods")
    for number in range(3):
        table.put(Record(StoreKey("pods", "", f"new-{number}"), TEXT % 2, 2, 2))
        assert 0 < sum(record.is_packed for record in records) <= (number + 1) * CATCH_UP

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from sully.store.base import Put, Store, StoreKey
from sully.store.compaction import Compactor, Retention
from sully.store.memory import MemoryStore
from sully.testing.clock import FakeClock


async def write(store: Store, events: int) -> None:
    for n in range(events):
        await store.commit([Put(StoreKey("pods", "", str(n)), bytes(10))])


@dataclass(frozen=True)
class Case:
    """Writes of ten events of ten bytes each, these many seconds apart; how many events stay."""

    gaps: tuple[float, ...]
    retained: int
    retention: Retention = Retention(seconds=300, events=1000)  # noqa: RUF009 - it is frozen


CASES = {
    "young events stay": Case(gaps=(100, 100), retained=20),
    "events of exactly the age go": Case(gaps=(300, 0), retained=10),
    "old events go": Case(gaps=(200, 200, 200, 0), retained=20),
    "a store at rest forgets everything": Case(gaps=(301,), retained=0),
    "too many events go though they are young": Case(
        gaps=(0, 0, 0), retained=15, retention=Retention(seconds=300, events=15)
    ),
    "too many bytes go though they are young": Case(
        gaps=(0, 0, 0), retained=14, retention=Retention(seconds=300, events=100, size=149)
    ),
    "the stricter bound counts": Case(
        gaps=(400, 0, 0), retained=12, retention=Retention(seconds=300, events=12)
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_what_is_kept(case: Case) -> None:
    store, clock = MemoryStore(), FakeClock()
    compactor = Compactor(store, clock, case.retention)
    for gap in case.gaps:
        await write(store, 10)
        await compactor.compact()
        clock.advance(gap)

    await compactor.compact()

    watch = store.watch("pods", after=store.compacted)
    assert len(watch.take()) == case.retained


@pytest.mark.parametrize("seconds", [86400, -86400], ids=["forward", "back"])
async def test_a_step_of_the_time_of_day_forgets_nothing(seconds: float) -> None:
    store, clock = MemoryStore(), FakeClock()
    compactor = Compactor(store, clock, Retention(seconds=300))
    await write(store, 10)
    first = store.compacted
    await compactor.compact()
    clock.set_back(-seconds)
    await write(store, 10)

    await compactor.compact()
    clock.advance(299)
    await compactor.compact()

    assert store.compacted == first


async def test_it_looks_again_and_again() -> None:
    store, clock = MemoryStore(), FakeClock()
    running = asyncio.ensure_future(Compactor(store, clock, Retention(seconds=60)).run())
    for _ in range(30):
        await clock.sleepers()
        await write(store, 1)
        clock.advance(5)
        await asyncio.sleep(0)
    await clock.sleepers()
    running.cancel()

    # The newest 60 seconds of one event every 5, seen at the rounds in between.
    assert store.revision - store.compacted == 12

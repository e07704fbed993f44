"""What lives long is set aside, and garbage among it is found all the same."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from sully.runtime.garbage import (
    GROWTH,
    LITTLE,
    LONGEST_WAIT,
    SHARE,
    UNSEEN,
    WATCH_SECONDS,
    GarbageTuner,
    MemoryReturner,
)
from sully.testing.clock import FakeClock


class Knot:
    """Refers to itself, so that only the collector can free it."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
async def keeper() -> AsyncIterator[GarbageTuner]:
    made = GarbageTuner()
    before = gc.get_threshold()
    made.start()
    yield made
    made.stop()
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


async def test_survivors_are_set_aside(keeper: GarbageTuner) -> None:
    kept = [Knot() for _ in range(10)]
    before = gc.get_freeze_count()

    gc.collect(1)

    assert gc.get_freeze_count() >= before + len(kept)


async def test_young_garbage_goes_as_ever(keeper: GarbageTuner) -> None:
    ref = weakref.ref(Knot())

    gc.collect(0)

    assert ref() is None


async def test_garbage_among_what_was_set_aside_goes_once_there_is_much(
    keeper: GarbageTuner,
) -> None:
    knot = Knot()
    ref = weakref.ref(knot)
    gc.collect(1)
    del knot

    keeper.check()
    assert ref() is not None, "too little for a sweep"
    more: list[list[object]] = [[] for _ in range(int(gc.get_freeze_count() * GROWTH))]
    gc.collect(1)
    keeper.check()

    assert ref() is None
    assert more


LOTS = {
    "a clean lot lets the next ones pass": (0, UNSEEN),
    "one with garbage is followed by a look": (LITTLE, 0),
}


@pytest.mark.parametrize(("garbage", "unseen"), LOTS.values(), ids=LOTS.keys())
async def test_how_often_the_young_are_looked_at(
    keeper: GarbageTuner, garbage: int, unseen: int
) -> None:
    gc.collect(0)
    gc.collect(2)  # looks in any case
    knots = [Knot() for _ in range(garbage)]
    del knots
    gc.collect(1)
    refs = []
    for _ in range(unseen + 1):
        refs.append(weakref.ref(Knot()))
        gc.collect(0)

    assert [ref() is None for ref in refs] == [False] * unseen + [True]


MIB = 1 << 20


@dataclass
class Heap:
    """Memory in MiB: in use, in gaps that a trim gives back, and in garbage that a sweep frees."""

    used: int = 100
    gaps: int = 0
    garbage: int = 0
    trims: int = 0
    sweeps: int = 0

    def resident(self) -> int:
        return (self.used + self.gaps + self.garbage) * MIB

    def trim(self) -> None:
        self.trims += 1
        self.gaps = 0

    def sweep(self) -> None:
        self.sweeps += 1
        self.gaps, self.garbage = self.gaps + self.garbage, 0


def looks(clock: FakeClock, returner: MemoryReturner, seconds: float) -> None:
    """Let time pass, as the event loop does."""
    for _ in range(int(seconds / WATCH_SECONDS)):
        clock.advance(WATCH_SECONDS)
        returner.check()


@dataclass(frozen=True)
class Growth:
    """What became of the memory, and how often something was done about it in ten minutes."""

    heap: Heap
    resident: int
    trims: int
    sweeps: int = 0


GROWTHS = {
    "nothing": Growth(Heap(), 100, 0),
    "a little": Growth(Heap(gaps=10), 110, 0),
    "gaps": Growth(Heap(gaps=100), 100, 1),
    "garbage that is large": Growth(Heap(garbage=100), 100, 2, 1),
    "garbage that is small": Growth(Heap(garbage=50), 150, 7),
    "what is in use": Growth(Heap(used=300), 300, 8, 1),
}


@pytest.mark.parametrize("case", GROWTHS.values(), ids=GROWTHS.keys())
def test_what_is_done_about_growth(case: Growth) -> None:
    heap, clock = Heap(), FakeClock()
    returner = MemoryReturner(heap, heap.sweep, clock)
    looks(clock, returner, 60)
    assert heap.trims == 0
    heap.used, heap.gaps, heap.garbage = case.heap.used, case.heap.gaps, case.heap.garbage

    looks(clock, returner, 600)

    assert heap.resident() == case.resident * MIB
    assert (heap.trims, heap.sweeps) == (case.trims, case.sweeps)


def test_what_is_freed_later_is_given_back_too() -> None:
    heap, clock = Heap(used=100), FakeClock()
    returner = MemoryReturner(heap, heap.sweep, clock)
    heap.used = 300
    looks(clock, returner, 60)
    heap.used, heap.gaps = 100, 200

    looks(clock, returner, LONGEST_WAIT)

    assert heap.resident() == 100 * MIB


def test_a_heap_that_is_slow_to_trim_is_trimmed_less_often() -> None:
    heap, clock = Heap(used=100), FakeClock()
    returner = MemoryReturner(heap, lambda: clock.advance(1.0), clock)
    heap.used = 300

    looks(clock, returner, SHARE - 10)

    assert heap.trims == 2, "one before the sweep, which took a second, and one after it"


MEASURE = """
from sully.runtime.garbage import ProcessMemory

memory = ProcessMemory()
before = memory.resident()
held = bytearray(200 << 20)
print(memory.resident() - before >> 20)
del held
memory.trim()
print(memory.resident() - before >> 20)
"""


def test_the_memory_of_a_process() -> None:
    # A process of its own: this one returns memory at any time.
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True
    )
    held, after = map(int, done.stdout.split())

    assert held > 150
    assert after < 50

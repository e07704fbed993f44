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
    BUSY_SECONDS,
    LITTLE,
    LONGEST_WAIT,
    SHARE,
    SWEEP_LIMIT,
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
    survivors = [Knot() for _ in range(10)]
    before = gc.get_freeze_count()

    gc.collect(1)

    assert gc.get_freeze_count() >= before + len(survivors)


async def test_young_garbage_is_collected_as_ever(keeper: GarbageTuner) -> None:
    ref = weakref.ref(Knot())

    gc.collect(0)

    assert ref() is None


@pytest.mark.parametrize("frozen", [False, True])
async def test_garbage_among_what_was_set_aside(keeper: GarbageTuner, frozen: bool) -> None:
    knot = Knot()
    old, new = weakref.ref(knot), weakref.ref(Knot())
    keeper.collect(frozen=False)
    del knot
    assert (old() is None, new() is None) == (False, True)

    keeper.collect(frozen=frozen)

    assert (old() is None) == frozen
    assert gc.get_count()[0] < LITTLE, "what is left is set aside again"


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
    """Memory in MiB: in use, in gaps that a trim gives back, and in garbage, some of it frozen."""

    used: int = 100
    gaps: int = 0
    new_garbage: int = 0
    frozen_garbage: int = 0
    trims: int = 0
    sweeps: int = 0
    processor: float = 0.0

    def processor_seconds(self) -> float:
        return self.processor

    def resident(self) -> int:
        return (self.used + self.gaps + self.new_garbage + self.frozen_garbage) * MIB

    def trim(self) -> None:
        self.trims += 1
        self.gaps = 0

    def collect(self, *, frozen: bool) -> None:
        self.gaps, self.new_garbage = self.gaps + self.new_garbage, 0
        if frozen:
            self.sweeps += 1
            self.gaps, self.frozen_garbage = self.gaps + self.frozen_garbage, 0


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


LARGE = SWEEP_LIMIT // MIB
GROWTHS = {
    "nothing": Growth(Heap(), 100, 0),
    "a little": Growth(Heap(gaps=10), 110, 0),
    "gaps": Growth(Heap(gaps=100), 100, 1),
    "new garbage": Growth(Heap(new_garbage=100), 100, 1),
    "new garbage in a large process": Growth(Heap(LARGE, new_garbage=100), LARGE, 8, 1),
    "frozen garbage that is large": Growth(Heap(frozen_garbage=100), 100, 2, 1),
    "frozen garbage of some connections": Growth(Heap(frozen_garbage=20), 100, 2, 1),
    "frozen garbage that is small": Growth(Heap(frozen_garbage=10), 110, 0),
    "frozen garbage in a large process": Growth(Heap(LARGE, frozen_garbage=100), LARGE + 100, 7),
    "what is in use": Growth(Heap(used=200), 200, 8, 1),
    "what is in use in a large process": Growth(Heap(used=10 * LARGE), 10 * LARGE, 7),
}


@pytest.mark.parametrize("case", GROWTHS.values(), ids=GROWTHS.keys())
def test_what_is_done_about_growth(case: Growth) -> None:
    heap, clock = Heap(), FakeClock()
    returner = MemoryReturner(heap, heap.collect, clock)
    looks(clock, returner, 60)
    assert heap.trims == 0
    heap.used, heap.gaps = case.heap.used, case.heap.gaps
    heap.new_garbage, heap.frozen_garbage = case.heap.new_garbage, case.heap.frozen_garbage

    looks(clock, returner, 600)

    assert heap.resident() == case.resident * MIB
    assert (heap.trims, heap.sweeps) == (case.trims, case.sweeps)


@dataclass(frozen=True)
class Load:
    """How much of a processor a growing process uses, and for how long it is idle after that."""

    share: float
    seconds: float = 20.0
    idle: float = 0.0
    sweeps: int = 0


LOADS = {
    "idle": Load(0.2, sweeps=1),
    "busy": Load(0.9),
    "busy on both cores": Load(1.8),
    "busy and then idle": Load(0.9, idle=LONGEST_WAIT, sweeps=1),
    "busy for too long": Load(0.9, seconds=2 * BUSY_SECONDS, sweeps=1),
}


@pytest.mark.parametrize("case", LOADS.values(), ids=LOADS.keys())
def test_frozen_objects_are_collected_when_the_process_is_idle(case: Load) -> None:
    heap, clock = Heap(), FakeClock()
    returner = MemoryReturner(heap, heap.collect, clock)
    for _ in range(int(case.seconds / WATCH_SECONDS)):
        heap.used = min(heap.used + 30, 220)
        heap.processor += case.share * WATCH_SECONDS
        looks(clock, returner, WATCH_SECONDS)
    looks(clock, returner, case.idle)

    assert heap.sweeps == case.sweeps


def test_what_is_freed_later_is_given_back_too() -> None:
    heap, clock = Heap(used=100), FakeClock()
    returner = MemoryReturner(heap, heap.collect, clock)
    heap.used = 300
    looks(clock, returner, 60)
    heap.used, heap.gaps = 100, 200

    looks(clock, returner, LONGEST_WAIT)

    assert heap.resident() == 100 * MIB


class SlowHeap(Heap):
    """Takes a second to collect everything."""

    clock = FakeClock()

    def collect(self, *, frozen: bool) -> None:
        super().collect(frozen=frozen)
        if frozen:
            self.clock.advance(1.0)


def test_a_heap_that_is_slow_to_trim_is_trimmed_less_often() -> None:
    heap = SlowHeap()
    returner = MemoryReturner(heap, heap.collect, heap.clock)
    heap.used = 200

    looks(heap.clock, returner, SHARE - 10)

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

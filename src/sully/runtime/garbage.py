"""Tunes the garbage collector for many long-lived objects.

A control plane holds hundreds of thousands of long-lived objects, and the collector walks all of
them whenever enough new ones were allocated: half a second for a million, in which no request is
answered. Nearly everything here is freed by reference count; cycles are few. So what survives a
collection of the young generation is frozen, which costs nothing. While the young generation has
hardly any garbage, most of it is frozen without a collection: collecting all of it cost a busy
server five percent of its time, in pauses of up to 80 ms, and found nothing.

The collector counts objects, and a few of them may hold many bytes. So the memory of the process is
watched: when it has grown, what is not frozen is collected, and memory that the C library holds is
returned to the system. When it has grown by much, what is frozen is collected too, but only in a
small process: in a large one that is a pause of seconds, mostly for growth that is not garbage. It
waits until the process is idle, so that it delays no request.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from sully.runtime.clock import Clock, SystemClock

YOUNG = 50_000
"""How many new objects trigger a collection of the young generation."""
UNSEEN = 3
"""How many such generations are frozen without a collection after one with hardly any garbage."""
LITTLE = YOUNG // 100
"""What counts as hardly any."""
WATCH_SECONDS = 5.0
"""How often to check the memory of the process."""
SLACK = 16 << 20
"""By how many bytes it may grow before memory is returned."""
SWEEP_SLACK = 64 << 20
"""By how many bytes, or by which part, before a full collection of a process that is not idle."""
SWEEP_PART = 4
SWEEP_LIMIT = 256 << 20
"""Up to which size of the process: the pause grows with it, about a second for each GiB."""
SWEEP_SECONDS = 60.0
IDLE = 0.25
"""Up to which part of a processor a process uses that is idle."""
BUSY_SECONDS = 600.0
"""How long a full collection waits for that."""
LONGEST_WAIT = 300.0
"""The wait between two returns of memory doubles up to this."""
SHARE = 1000
"""Returning memory may take one part in so many of the time."""


class Memory(Protocol):
    """What `MemoryReturner` needs to know and to do; `ProcessMemory` outside of tests."""

    def resident(self) -> int:
        """Return how many bytes the process has."""

    def trim(self) -> None:
        """Return free memory."""

    def processor_seconds(self) -> float:
        """Return how much processor time the process has used."""


class Collect(Protocol):
    """Collects garbage: among the new objects, or also among those that are frozen."""

    def __call__(self, *, frozen: bool) -> None: ...


class MemoryReturner:
    """Decides when memory is returned, and what is collected before that."""

    def __init__(self, memory: Memory, collect: Collect, clock: Clock) -> None:
        self._memory = memory
        self._collect = collect
        self._clock = clock
        # The minimum, and the memory in use after the last return and the last full collection.
        self._floor = self._left = self._swept = memory.resident()
        self._wait = WATCH_SECONDS
        self._checked = self._next = self._next_sweep = clock.monotonic()
        self._used = memory.processor_seconds()
        self._sweep_by: float | None = None
        """When a full collection waits no longer, if one is needed."""

    def check(self) -> None:
        """Check the memory, and return what is too much."""
        now = self._clock.monotonic()
        idle = self._is_idle(now)
        resident = self._memory.resident()
        self._floor = min(self._floor, resident)
        self._swept = min(self._swept, resident)
        if resident <= self._floor + SLACK:
            return
        if resident > self._left + SLACK:
            self._wait = WATCH_SECONDS
        elif now < self._next:
            return
        self._return(frozen=False)
        if self._may_sweep(now, idle=idle):
            self._return(frozen=True)
            self._swept = self._left
            self._next_sweep = now + SWEEP_SECONDS
        self._next = now + max(self._wait, SHARE * (self._clock.monotonic() - now))
        self._wait = min(2 * self._wait, LONGEST_WAIT)

    def _return(self, *, frozen: bool) -> None:
        self._collect(frozen=frozen)
        self._memory.trim()
        self._left = self._memory.resident()

    def _is_idle(self, now: float) -> bool:
        """Report whether the process has been idle since the last check."""
        used, seconds = self._memory.processor_seconds(), now - self._checked
        before, self._used, self._checked = self._used, used, now
        return used - before <= IDLE * seconds

    def _may_sweep(self, now: float, *, idle: bool) -> bool:
        if now < self._next_sweep or not self._needs_sweep(idle=idle):
            self._sweep_by = None
            return False
        if self._sweep_by is None:
            self._sweep_by = now + BUSY_SECONDS
        return idle or now >= self._sweep_by

    def _needs_sweep(self, *, idle: bool) -> bool:
        # An idle process has time to collect connections that were frozen while they were open.
        slack = SLACK if idle else max(SWEEP_SLACK, self._swept // SWEEP_PART)
        return self._left <= SWEEP_LIMIT and self._left - self._swept > slack


class GarbageTuner:
    """Freezes long-lived objects; one per process."""

    def __init__(self, memory: Memory | None = None, clock: Clock | None = None) -> None:
        self._memory = memory or ProcessMemory()
        self._clock = clock or SystemClock()
        self._looks = True
        self._unseen = 0
        self._timer: asyncio.TimerHandle | None = None
        self._threshold = gc.get_threshold()

    def start(self) -> None:
        """Freeze existing objects, and from now on what survives."""
        gc.set_threshold(YOUNG, 1_000_000, 1_000_000)
        gc.freeze()
        gc.enable()
        gc.callbacks.append(self._collected)
        self._returner = MemoryReturner(self._memory, self.collect, self._clock)
        self._check_later()

    def stop(self) -> None:
        """Restore the collector's defaults."""
        if self._timer is not None:
            self._timer.cancel()
        gc.callbacks.remove(self._collected)
        gc.set_threshold(*self._threshold)
        gc.unfreeze()

    def collect(self, *, frozen: bool) -> None:
        """Collect garbage among new objects, or among all; freeze the others."""
        if frozen:
            gc.unfreeze()
        gc.collect()

    def _check_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(WATCH_SECONDS, self._check)

    def _check(self) -> None:
        self._returner.check()
        self._check_later()

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._looks = info["generation"] > 0 or self._unseen == 0
            if not self._looks:
                self._unseen -= 1
                gc.freeze()
        else:
            if self._looks:
                self._unseen = UNSEEN if info["collected"] < LITTLE else 0
            gc.freeze()


_STATM = Path("/proc/self/statm")


class ProcessMemory:
    """The memory of this process."""

    def __init__(self) -> None:
        self._page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
        self._trim = _malloc_trim()

    def resident(self) -> int:
        """Return the bytes in use, 0 if unknown."""
        try:
            return int(_STATM.read_text().split()[1]) * self._page
        except (OSError, ValueError, IndexError):
            return 0

    def trim(self) -> None:
        """Return free memory to the system."""
        self._trim()

    def processor_seconds(self) -> float:
        """Return how much processor time the process has used."""
        return time.process_time()


def _malloc_trim() -> Callable[[], object]:
    with contextlib.suppress(ImportError, OSError, AttributeError, TypeError):
        import ctypes

        trim = ctypes.CDLL(None).malloc_trim  # only glibc has it
        trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
        return lambda: trim(0)
    return lambda: None

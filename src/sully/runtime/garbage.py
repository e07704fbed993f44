"""Keeps the garbage collector from looking again and again at what lives long.

A control plane holds hundreds of thousands of objects that never go, and the collector walks all of
them whenever enough new ones came: a tenth of a second each time, in which no request is answered.
Nearly everything here dies by reference count; cycles are few. So what has outlived a collection of
the young is set aside, which costs nothing, and is looked at again only once there is much more of
it. While the young have hardly any garbage, most lots of them are set aside without a look: to
look at every one, and at each once more later, cost a busy server five percent of its time, in
pauses of up to 80 ms, and found nothing.

The collector counts objects, and a few of them may hold many bytes. So the memory of the process is
watched too: when it has grown by much, everything is looked at, and what the C library holds in
gaps goes back to the system.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Protocol

from sully.runtime.clock import Clock, SystemClock
from sully.runtime.memory import ProcessMemory

YOUNG = 50_000
"""How many new objects bring a collection of the young."""
UNSEEN = 3
"""How many such lots are set aside without a look after one that had hardly any garbage."""
LITTLE = YOUNG // 100
"""What hardly any is."""
SECONDS = 600.0
"""How often to see whether all of it should be looked at."""
GROWTH = 1.5
"""By how much it must have grown for that."""
WATCH_SECONDS = 5.0
"""How often to see how much memory there is."""
SLACK = 16 << 20
"""By how many bytes it may grow before some is given back."""
SWEEP_SLACK = 64 << 20
"""By how many, or by which part, before everything is looked at for garbage."""
SWEEP_PART = 4
SWEEP_SECONDS = 60.0
LONGEST_WAIT = 300.0
"""After memory was given back: the wait before the next time doubles up to this."""
SHARE = 1000
"""Giving back may take one part in so many of the time."""


class Memory(Protocol):
    """What `Returner` needs to know and to do; `ProcessMemory` outside of tests."""

    def resident(self) -> int:
        """Return how many bytes the process has."""

    def trim(self) -> None:
        """Give back what is free."""


class Returner:
    """Decides when memory is given back, and when garbage is looked for because of it."""

    def __init__(self, memory: Memory, sweep: Callable[[], None], clock: Clock) -> None:
        self._memory = memory
        self._sweep = sweep
        self._clock = clock
        # The lowest there was, what the last return left, and what the last sweep left.
        self._floor = self._left = self._swept = memory.resident()
        self._wait = WATCH_SECONDS
        self._next = self._next_sweep = clock.monotonic()

    def look(self) -> None:
        """See how much memory there is, and give back what is too much."""
        now = self._clock.monotonic()
        resident = self._memory.resident()
        self._floor = min(self._floor, resident)
        self._swept = min(self._swept, resident)
        if resident <= self._floor + SLACK:
            return
        if resident > self._left + SLACK:
            self._wait = WATCH_SECONDS
        elif now < self._next:
            return
        self._memory.trim()
        self._left = self._memory.resident()
        grown = self._left - self._swept
        if now >= self._next_sweep and grown > max(SWEEP_SLACK, self._swept // SWEEP_PART):
            self._sweep()
            self._memory.trim()
            self._left = self._swept = self._memory.resident()
            self._next_sweep = now + SWEEP_SECONDS
        self._next = now + max(self._wait, SHARE * (self._clock.monotonic() - now))
        self._wait = min(2 * self._wait, LONGEST_WAIT)


class Keeper:
    """Sets aside what lives long; one for the whole process."""

    def __init__(self, memory: Memory | None = None, clock: Clock | None = None) -> None:
        self._memory = memory or ProcessMemory()
        self._clock = clock or SystemClock()
        self._settled = 0
        self._looks = True
        self._unseen = 0
        self._timer: asyncio.TimerHandle | None = None
        self._due_at = 0.0
        self._threshold = gc.get_threshold()

    def start(self) -> None:
        """Set aside what there is, and from now on what stays."""
        gc.set_threshold(YOUNG, 1_000_000, 1_000_000)
        gc.freeze()
        self._settled = gc.get_freeze_count()
        gc.callbacks.append(self._collected)
        self._due_at = self._clock.monotonic() + SECONDS
        self._returner = Returner(self._memory, self.sweep, self._clock)
        self._wait()

    def stop(self) -> None:
        """Leave everything to the collector again."""
        if self._timer is not None:
            self._timer.cancel()
        gc.callbacks.remove(self._collected)
        gc.set_threshold(*self._threshold)
        gc.unfreeze()

    def sweep(self) -> None:
        """Look at everything, also at what was set aside."""
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._settled = gc.get_freeze_count()

    def look(self) -> None:
        """Sweep if so much was set aside that there may be garbage among it."""
        if gc.get_freeze_count() > self._settled * GROWTH:
            self.sweep()

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(WATCH_SECONDS, self._due)

    def _due(self) -> None:
        now = self._clock.monotonic()
        if now >= self._due_at:
            self._due_at = now + SECONDS
            self.look()
        self._returner.look()
        self._wait()

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

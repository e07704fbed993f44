"""The clock of a simulation: it only moves when it is advanced to the next timer.

Implements `sully.runtime.clock.Clock` for the views and cores that need the time.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from heapq import heappop, heappush
from itertools import count

Callback = Callable[[], None]


class VirtualClock:
    """A clock with timers."""

    def __init__(self, start: datetime) -> None:
        self.start = start
        self._now = start
        self._timers: list[tuple[datetime, int, Callback]] = []
        self._order = count()

    def now(self) -> datetime:
        """Return the simulated time."""
        return self._now

    def monotonic(self) -> float:
        """Return the seconds since the start."""
        return (self._now - self.start).total_seconds()

    async def sleep(self, seconds: float) -> None:
        """Fail: simulations use timers instead."""
        raise RuntimeError(f"cannot sleep {seconds} s in a simulation")

    def call_at(self, time: datetime, callback: Callback) -> None:
        """Call a function at a time, or now if that is past."""
        heappush(self._timers, (max(time, self._now), next(self._order), callback))

    def advance(self, until: datetime) -> bool:
        """Move to the next timer and call all that are due; report whether there was one."""
        if not self._timers or self._timers[0][0] > until:
            return False
        self._now = self._timers[0][0]
        while self._timers and self._timers[0][0] <= self._now:
            heappop(self._timers)[2]()
        return True

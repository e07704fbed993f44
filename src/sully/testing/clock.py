"""A clock that stops until a test advances it.

Fulfils `sully.runtime.clock.Clock`. Time passes only in `advance`, so a test of an hour takes
no time and has no races: wait with `sleepers` until the code under test sleeps, then advance.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import count

NOON = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)


class FakeClock:
    """A `Clock` for tests."""

    def __init__(self, start: datetime = NOON) -> None:
        self._start = start
        self._elapsed = 0.0
        self._order = count()
        self._sleeping: list[tuple[float, int, asyncio.Future[None]]] = []
        self._watching: list[tuple[int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        """Return the time in UTC."""
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Return the seconds this clock was advanced."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was advanced this far; zero or less only lets others run."""
        if seconds <= 0:
            await asyncio.sleep(0)  # noqa: TID251 - lets others run; no time passes
            return
        future = asyncio.get_running_loop().create_future()
        heappush(self._sleeping, (self._elapsed + seconds, next(self._order), future))
        self._notify_watchers()
        await future

    def advance(self, seconds: float) -> None:
        """Let time pass and wake those whose time has come, the earliest first.

        They run when the test next awaits; all of them then see the new time.
        """
        self._elapsed += seconds
        while self._sleeping and self._sleeping[0][0] <= self._elapsed:
            future = heappop(self._sleeping)[2]
            if not future.done():
                future.set_result(None)

    def set_back(self, seconds: float) -> None:
        """Let the time of day jump back, as a corrected clock does; sleeping tasks continue."""
        self._start -= timedelta(seconds=seconds)

    @property
    def sleeping(self) -> int:
        """Return how many tasks sleep now."""
        return sum(not future.done() for _, _, future in self._sleeping)

    @property
    def next_wake(self) -> float | None:
        """Return in how many seconds the next sleeper wakes; None if no task sleeps."""
        wakes = (at for at, _, future in self._sleeping if not future.done())
        first = min(wakes, default=None)
        return None if first is None else first - self._elapsed

    async def sleepers(self, least: int = 1) -> None:
        """Wait until at least this many tasks sleep."""
        if self.sleeping < least:
            future = asyncio.get_running_loop().create_future()
            self._watching.append((least, future))
            await future

    def _notify_watchers(self) -> None:
        sleeping = self.sleeping
        for least, future in self._watching:
            if least <= sleeping and not future.done():
                future.set_result(None)
        self._watching = [entry for entry in self._watching if not entry[1].done()]

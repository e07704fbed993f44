"""A clock that runs, and that a test moves forward.

`FakeClock` stands still, which suits tests of one part. A whole server with clients over HTTPS has
to make progress on its own, so here time passes as usual, and `advance` adds to it.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from time import monotonic

from sully.runtime.clock import SystemClock

_STEPS = 300
"""An hour is moved in steps of twelve seconds, so that what repeats is repeated meanwhile."""
_TURNS = 20
"""How often other tasks run after each step."""


class RunningClock:
    """A `Clock` for tests of servers. Only the thread of its event loop may use it."""

    def __init__(self) -> None:
        self._system = SystemClock()
        self._ahead = 0.0
        self._moved = asyncio.Event()

    def now(self) -> datetime:
        """Return the time in UTC."""
        return self._system.now() + timedelta(seconds=self._ahead)

    def monotonic(self) -> float:
        """Return seconds since some moment."""
        return monotonic() + self._ahead

    async def sleep(self, seconds: float) -> None:
        """Wait until this much time passed, or the clock was moved as far."""
        end = self.monotonic() + seconds
        await self._system.sleep(0)
        while (left := end - self.monotonic()) > 0:
            try:
                async with asyncio.timeout(left):
                    await self._moved.wait()
            except TimeoutError:
                continue

    async def advance(self, seconds: float) -> None:
        """Move the clock forward; others run after each step."""
        step = max(1.0, seconds / _STEPS)
        while seconds > 0:
            self._ahead += min(step, seconds)
            seconds -= step
            self._moved.set()
            self._moved = asyncio.Event()
            for _ in range(_TURNS):
                await self._system.sleep(0)

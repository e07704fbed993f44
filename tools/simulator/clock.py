"""The clock of one simulated machine: it drifts, and its time of day jumps."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from simulator.loop import SimulatedLoop

START = datetime(2030, 1, 1, tzinfo=UTC)


class SimulatedClock:
    """A `Clock` over the virtual time of a loop."""

    def __init__(self, loop: SimulatedLoop, *, rate: float = 1.0) -> None:
        self._loop = loop
        self._rate = rate
        self._ahead = 0.0
        self.stepped_at = float("-inf")
        """When the time of day last jumped, in virtual time."""

    def now(self) -> datetime:
        """Return the time of day of this machine."""
        return START + timedelta(seconds=self.monotonic() + self._ahead)

    def monotonic(self) -> float:
        """Return the seconds since the start, as this machine counts them."""
        return self._loop.time() * self._rate

    async def sleep(self, seconds: float) -> None:
        """Wait this long."""
        await asyncio.sleep(max(0.0, seconds) / self._rate)

    def step(self, seconds: float) -> None:
        """Let the time of day jump."""
        self._ahead += seconds
        self.stepped_at = self._loop.time()

"""What time it is, and how to wait: the only place that asks the machine.

Everything else takes a `Clock` from `app.py`, so that tests move time by hand with
`sully.testing.clock.FakeClock`.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time and waits."""

    def now(self) -> datetime:
        """Return the time in UTC, with full precision; the codec truncates what the wire does."""
        ...

    def monotonic(self) -> float:
        """Return seconds since some moment; it never goes back, so durations are right."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait this long; zero or less only lets others run."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds since some moment."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait this long."""
        await asyncio.sleep(max(0.0, seconds))

"""The clock: the only module that reads the system time.

Everything else takes a `Clock` from `app.py`, so that tests control time with
`sully.testing.clock.FakeClock`.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol

import msgspec


class Clock(Protocol):
    """A clock that can also wait."""

    def now(self) -> datetime:
        """Return the time in UTC, with full precision; the codec truncates what the wire does."""
        ...

    def monotonic(self) -> float:
        """Return seconds since some moment; they never decrease, so durations are right."""
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


class Moment(msgspec.Struct, frozen=True):
    """A point in time on both clocks of a machine."""

    monotonic: float
    now: datetime

    @classmethod
    def of(cls, clock: Clock) -> Moment:
        """Return the present."""
        return cls(clock.monotonic(), clock.now())

    def since(self, clock: Clock) -> float:
        """Return the seconds since then.

        The larger of two: the monotonic clock may stop while the machine sleeps, and the
        other may be set back.
        """
        return max(clock.monotonic() - self.monotonic, (clock.now() - self.now).total_seconds())

"""The time of a rehearsal: it stands still while something happens, and then leaps to what is next.

Fulfils `sully.runtime.clock.Clock` for the views and judges that ask what time it is.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from heapq import heappop, heappush
from itertools import count

Action = Callable[[], None]


class Timeline:
    """A clock, and what is to happen when."""

    def __init__(self, start: datetime) -> None:
        self.start = start
        self._now = start
        self._agenda: list[tuple[datetime, int, Action]] = []
        self._order = count()

    def now(self) -> datetime:
        """Return the time."""
        return self._now

    def monotonic(self) -> float:
        """Return the seconds since the start."""
        return (self._now - self.start).total_seconds()

    async def sleep(self, seconds: float) -> None:
        """Refuse: a rehearsal puts things on the agenda instead."""
        raise RuntimeError(f"nobody waits {seconds} s in a rehearsal")

    def at(self, moment: datetime, action: Action) -> None:
        """Let something happen at a time, or now if that is past."""
        heappush(self._agenda, (max(moment, self._now), next(self._order), action))

    def leap(self, until: datetime) -> bool:
        """Go to the next moment and let happen all that is due then; say whether there was any."""
        if not self._agenda or self._agenda[0][0] > until:
            return False
        self._now = self._agenda[0][0]
        while self._agenda and self._agenda[0][0] <= self._now:
            heappop(self._agenda)[2]()
        return True

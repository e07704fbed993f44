"""How fresh the cache of an informer is: when the server last confirmed that nothing is missing.

A list and a bookmark confirm the whole cache. The events of an uninterrupted watch confirm it up to
themselves; after an interruption they do not, because the missed ones come first. Code that must
not act on a stale cache asks `is_fresh`, not whether there is a problem.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sully.runtime.clock import Clock, Moment

RESOLUTION = 0.001
"""Seconds; ages are not measured more finely."""


class InformerFreshness:
    """What a reflector knows about its watch."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._complete_at: Moment | None = None
        """Up to when nothing is missing."""
        self._uninterrupted = False
        """The watch is the one that was confirmed."""
        self._trusted = False
        self._handlers: list[Callable[[], None]] = []
        self.problem: Exception | None = None
        """Why the cache is not up to date, if it is known not to be."""
        self.last_failure: datetime | None = None
        """When the server was last unreachable; None if it never was."""

    @property
    def age(self) -> float:
        """Return for how many seconds the cache may have missed something."""
        return self._complete_at.since(self._clock) if self._complete_at else float("inf")

    def is_fresh(self, within: float) -> bool:
        """Report whether the watch is healthy and the cache at most this many seconds old."""
        return self._trusted and self.age <= within

    def on_confirmed(self, handler: Callable[[], None]) -> None:
        """Call a handler each time the server confirms that nothing is missing."""
        self._handlers.append(handler)

    def confirmed(self, since: Moment) -> None:
        """Record that the cache has everything that existed at a moment."""
        self.problem = None
        self._uninterrupted = self._trusted = True
        self._complete_at = since
        for handler in self._handlers:
            handler()

    def event_received(self) -> None:
        """Record that the watch delivered an event."""
        self.problem = None
        if self._uninterrupted and not self._is_recent():
            self._complete_at = Moment.of(self._clock)

    def _is_recent(self) -> bool:
        # Events come in bursts, and reading both clocks for each costs more than caching it.
        last = self._complete_at
        return last is not None and self._clock.monotonic() - last.monotonic < RESOLUTION

    def watch_opened(self) -> None:
        """Record that the server answers; missed events are still to come."""
        self.problem = None

    def watch_ended(self, *, stalled: bool = False) -> None:
        """Record that the watch ended: by its timeout, or because it stalled."""
        self._uninterrupted = False
        self._trusted = self._trusted and not stalled

    def failed(self, error: Exception) -> None:
        """Record that listing or watching failed."""
        self.problem, self.last_failure = error, self._clock.now()
        self.watch_ended(stalled=True)

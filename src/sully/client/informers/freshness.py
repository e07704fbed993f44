"""How sure a copy of a collection is: when the server last spoke, and whether something is missing.

A copy is *connected* while nothing is known to be wrong. It is *confirmed* by a list and by a
bookmark: those are the server's word that nothing is missing. The events of an uninterrupted
watch say as much, each up to itself; after an interruption they do not, because those that were
missed come first. Who must not act on what is outdated asks `fresh`, not if there is a problem.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sully.runtime.clock import Clock, Moment

FINE = 0.001
"""Seconds; how sure a copy is is not told more finely."""


class Contact:
    """What a reflector knows of its line to the server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heard: Moment | None = None
        """Up to when nothing is missing."""
        self._unbroken = False
        """The watch is the one that was confirmed."""
        self._trusted = False
        self._tell: list[Callable[[], None]] = []
        self.problem: Exception | None = None
        """What keeps the copy from being up to date, or None if nothing does."""
        self.broken: datetime | None = None
        """When the server was last found to be out of reach, or None if it never was."""

    @property
    def age(self) -> float:
        """Return for how many seconds the copy may have missed something."""
        return self._heard.since(self._clock) if self._heard is not None else float("inf")

    def fresh(self, within: float) -> bool:
        """Say whether the line holds, and the copy is surely no older than this many seconds."""
        return self._trusted and self.age <= within

    def on_confirmed(self, tell: Callable[[], None]) -> None:
        """Call this whenever the server has confirmed that nothing is missing."""
        self._tell.append(tell)

    def confirmed(self, since: Moment) -> None:
        """Note that the copy has everything there was at a moment."""
        self.problem = None
        self._unbroken = self._trusted = True
        self._heard = since
        for tell in self._tell:
            tell()

    def heard(self) -> None:
        """Note that an event came."""
        self.problem = None
        if self._unbroken and not self._just_heard():
            self._heard = Moment.of(self._clock)

    def _just_heard(self) -> bool:
        """Say whether the last event came so recently that it need not be noted again."""
        # Events come in bursts, and to ask both clocks for each costs more than to take it in.
        return self._heard is not None and self._clock.monotonic() - self._heard.monotonic < FINE

    def opened(self) -> None:
        """Note that the server answers; what was missed is still to come."""
        self.problem = None

    def ended(self, *, rightly: bool = True) -> None:
        """Note that the watch is over: as was agreed, or because it said nothing for too long."""
        self._unbroken = False
        self._trusted = self._trusted and rightly

    def broke(self, error: Exception) -> None:
        """Note that the server cannot be followed now."""
        self.problem, self.broken = error, self._clock.now()
        self.ended(rightly=False)

"""Pods that a budget keeps: each asks again after a while, and only the answer differs.

The real controller asks for every pod again and again. While a budget allows nothing, all would be
told the same, so here nobody asks until it has room; then those ask whose time comes first, and as
many as there is room for. A thousand pods under one budget cost as much as a thousand departures.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import islice
from typing import NamedTuple

from sully.client.transport import Key
from sully.controllers.eviction.controller import REFUSED
from sully.planning.budgets import Gate
from sully.planning.timeline import Timeline

_BEAT = timedelta(seconds=REFUSED.cap)
"""What is between two questions in the end."""


class Rhythm(NamedTuple):
    """When a pod was refused, and for which time: what decides when it asks again."""

    at: datetime
    tries: int

    def next_ask(self, moment: datetime) -> tuple[datetime, int]:
        """Return the first time after a moment at which it asks, and how often it was refused."""
        tries = self.tries
        ask = self.at + _delay(tries)
        while ask <= moment and _delay(tries) < _BEAT:
            tries += 1
            ask += _delay(tries)
        if ask <= moment:
            beats = (moment - ask) // _BEAT + 1
            return ask + beats * _BEAT, tries + beats
        return ask, tries


def _delay(tries: int) -> timedelta:
    return timedelta(seconds=REFUSED.delay(tries))


@dataclass(slots=True)
class _Line:
    """The pods in front of one gate, those of one rhythm in the order of their refusals."""

    waiting: dict[Rhythm, OrderedDict[Key, None]] = field(default_factory=dict)
    asks: list[tuple[datetime, Rhythm]] = field(default_factory=list)
    """Who asks next; times that are past are brought up to date when somebody looks."""

    def add(self, key: Key, rhythm: Rhythm) -> None:
        if rhythm not in self.waiting:
            self.waiting[rhythm] = OrderedDict()
            heappush(self.asks, (rhythm.next_ask(rhythm.at)[0], rhythm))
        self.waiting[rhythm][key] = None

    def drop(self, key: Key, rhythm: Rhythm) -> None:
        del self.waiting[rhythm][key]
        if not self.waiting[rhythm]:
            del self.waiting[rhythm]

    def first(self, after: datetime) -> tuple[datetime, Rhythm] | None:
        """Return who asks first after a moment."""
        while self.asks:
            at, rhythm = self.asks[0]
            if rhythm in self.waiting and at > after:
                return at, rhythm
            heappop(self.asks)
            if rhythm in self.waiting:
                heappush(self.asks, (rhythm.next_ask(after)[0], rhythm))
        return None


class TurnedAway:
    """All pods that budgets keep."""

    def __init__(
        self, timeline: Timeline, ask: Callable[[Key], None], room: Callable[[Gate], int]
    ) -> None:
        self._timeline = timeline
        self._ask = ask
        self._room = room
        self._lines: dict[Gate, _Line] = {}
        self._places: dict[Key, tuple[Gate, Rhythm]] = {}
        self._tries: dict[Key, int] = {}
        self._turns: set[tuple[Gate, datetime, Rhythm]] = set()
        """What is on the agenda already."""

    def refused(self, key: Key, gate: Gate, later: datetime | None = None) -> None:
        """Let a pod wait; `later`, no budget is asked about it any more."""
        tries = self._tries[key] = self._tries.get(key, 0) + 1
        rhythm = Rhythm(self._timeline.now(), tries)
        self._places[key] = gate, rhythm
        self._lines.setdefault(gate, _Line()).add(key, rhythm)
        if later is not None:
            # It asks at its own times also then.
            at = rhythm.next_ask(later - timedelta.resolution)[0]
            self._timeline.at(at, lambda: self._ask(key))

    def looked_at(self, key: Key) -> None:
        """Take a pod out of its line, because it is looked at now for whatever reason."""
        gate, rhythm = self._places.pop(key, (None, None))
        if gate is not None and rhythm is not None:
            self._lines[gate].drop(key, rhythm)
            self._tries[key] = rhythm.next_ask(self._timeline.now() - timedelta.resolution)[1]

    def settled(self, key: Key) -> None:
        """Forget a pod that left, or need not leave."""
        self._tries.pop(key, None)

    def opened(self, gate: Gate) -> None:
        """Let those ask who come first, now that there is room."""
        line = self._lines.get(gate)
        found = line.first(self._timeline.now()) if line is not None else None
        if found is not None and (gate, *found) not in self._turns:
            self._turns.add((gate, *found))
            self._timeline.at(found[0], lambda: self._turn(gate, *found))

    def _turn(self, gate: Gate, at: datetime, rhythm: Rhythm) -> None:
        self._turns.discard((gate, at, rhythm))
        room = self._room(gate)
        if room <= 0:
            return
        for key in list(islice(self._lines[gate].waiting.get(rhythm, ()), room)):
            self._ask(key)
        # Whoever asks may stay for another reason, and leave the room to the next.
        self.opened(gate)

"""What would become of all decisions: taint a cluster, lose a region, drop one, let time pass.

The fleet is copied, the changes (changes.py) happen to the copy, and placements decide as they
would: all of them at first, and later each one when it would look again. What comes back is who
would leave and join, when, and how every placement ends up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import heapify, heappop, heappush

from sully.domain.placement.changes import Change
from sully.domain.placement.counting import Entry, PlacementKey
from sully.domain.placement.deciding import decide
from sully.domain.placement.fleet import Fleet
from sully.domain.placement.groups import DecisionSlice
from sully.domain.placement.membership import BrokenSetError
from sully.domain.placement.outcome import Outcome

_MOST_LOOKS = 100_000
"""An end for timelines in which someone always looks again."""


@dataclass(frozen=True, slots=True)
class Move:
    """What one placement loses and gets at one time."""

    at: datetime
    placement: PlacementKey
    left: tuple[str, ...]
    joined: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """What a placement has now and would have in the end."""

    placement: PlacementKey
    before: tuple[str, ...]
    after: tuple[str, ...]
    outcome: Outcome

    @property
    def left(self) -> tuple[str, ...]:
        """Return the clusters it would lose."""
        return tuple(sorted(set(self.before) - set(self.after)))

    @property
    def joined(self) -> tuple[str, ...]:
        """Return the clusters it would get."""
        return tuple(sorted(set(self.after) - set(self.before)))


@dataclass(frozen=True, slots=True)
class Forecast:
    """What would happen, in order of time, and which placements end up different."""

    moves: tuple[Move, ...]
    differences: tuple[Difference, ...]
    outcomes: Mapping[PlacementKey, Outcome]
    """How every placement ends up, also those that end up the same."""
    until: datetime
    next_at: datetime | None
    """When something would happen after that, as far as is known."""


def whatif(
    fleet: Fleet, changes: Iterable[Change], now: datetime, until: datetime | None = None
) -> Forecast:
    """Say what changes would do to the decisions of a fleet, which stays as it is."""
    return _Rehearsal(fleet.copy(), until or now).run(changes, now)


class _Rehearsal:
    """A copy of the fleet, moved forward in time."""

    def __init__(self, fleet: Fleet, until: datetime) -> None:
        self._fleet = fleet
        self._until = until
        self._before = {key: tuple(sorted(fleet.counting.own(key))) for key in fleet.placements}
        self._last: dict[PlacementKey, Outcome] = {}
        self._moves: list[Move] = []

    def run(self, changes: Iterable[Change], now: datetime) -> Forecast:
        due = [(now + change.after, at, change) for at, change in enumerate(changes)]
        heapify(due)
        looks = [(now, key) for key in sorted(self._fleet.placements)]
        for _ in range(_MOST_LOOKS):
            while due and (not looks or due[0][0] <= looks[0][0]):
                at, _, change = heappop(due)
                if at > self._until:
                    break
                for key in change.apply(self._fleet, at):
                    heappush(looks, (at, key))
            if not looks or looks[0][0] > self._until:
                break
            self._look(looks)
        return self._forecast(looks[0][0] if looks else None)

    def _look(self, looks: list[tuple[datetime, PlacementKey]]) -> None:
        at, key = heappop(looks)
        while looks and looks[0] == (at, key):
            heappop(looks)
        try:
            outcome = decide(self._fleet, key, at)
        except BrokenSetError:
            # A controller would try again and again, and write nothing.
            return
        if outcome is not None:
            self._last[key] = outcome
            self._write(key, outcome.slices, at)
            if outcome.requeue_at is not None:
                heappush(looks, (outcome.requeue_at, key))
        elif key not in self._fleet.placements:
            # The decisions of a placement that is gone are deleted, and count no more for others.
            self._write(key, (), at)

    def _write(self, key: PlacementKey, slices: Sequence[DecisionSlice], at: datetime) -> None:
        before = set(self._fleet.counting.own(key))
        after = {name for part in slices for name in part.clusters}
        if before == after:
            return
        self._moves.append(
            Move(at, key, tuple(sorted(before - after)), tuple(sorted(after - before)))
        )
        wanted = {(key[0], part.name): Entry(key, part.clusters) for part in slices}
        for old in self._fleet.counting.entries(key):
            wanted.setdefault(old, Entry(None, ()))
        for where, entry in wanted.items():
            self._fleet.decide(where, entry if entry.owner is not None else None)

    def _forecast(self, next_at: datetime | None) -> Forecast:
        found = []
        for key, outcome in sorted(self._last.items()):
            before, after = self._before.get(key, ()), outcome.clusters
            if before != after:
                found.append(Difference(key, before, after, outcome))
        return Forecast(tuple(self._moves), tuple(found), self._last, self._until, next_at)

"""Simulates the effect of changes on all decisions: of taints, lost clusters, and time.

The fleet is copied, the changes (changes.py) happen to the copy one after the other, and placements
are evaluated as a controller does: those that a change or a write of their own matters to, in the
order of a queue, and later each one when it would look again. The order counts, because where
clusters depend on how many placements have them, the first takes the better one. What comes
back is which clusters would be removed and added, when, and the result per placement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from heapq import heapify, heappop, heappush

import msgspec
from msgspec.structs import replace

from sully.domain.placement.changes import Change
from sully.domain.placement.incremental.deciding import decide
from sully.domain.placement.incremental.decision_counts import DecidedClusters, PlacementKey
from sully.domain.placement.incremental.fleet import Fleet, PlacementKeys
from sully.domain.placement.incremental.membership import BrokenSetError
from sully.domain.placement.incremental.reporting import status_after
from sully.domain.placement.rate_limiter import RateLimiter
from sully.domain.placement.results.groups import DecisionSlice
from sully.domain.placement.results.outcome import Outcome
from sully.machinery.cel import CostBudget, CostBudgetExceededError

_MOST_LOOKS = 100_000
"""A limit for simulations that would never end."""
_PATIENCE = 10
"""How often a placement that changes with every pass is delayed before it is ignored."""


class Move(msgspec.Struct, frozen=True):
    """What one placement loses and gets at one time."""

    at: datetime
    placement: PlacementKey
    left: tuple[str, ...]
    joined: tuple[str, ...]


class Difference(msgspec.Struct, frozen=True):
    """The clusters of a placement now and after the simulation."""

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


class Forecast(msgspec.Struct, frozen=True):
    """What would happen, in order of time, and which placements would change."""

    moves: tuple[Move, ...]
    differences: tuple[Difference, ...]
    outcomes: Mapping[PlacementKey, Outcome]
    """The results of all evaluated placements, also of those that would not change."""
    until: datetime
    next_at: datetime | None
    """When something would happen after that, as far as is known."""
    oscillating: tuple[PlacementKey, ...] = ()
    """Placements that change with every pass; they were simulated for a limited time."""


def whatif(
    fleet: Fleet,
    changes: Iterable[Change],
    now: datetime,
    until: datetime | None = None,
    budget: CostBudget | None = None,
) -> Forecast:
    """Return the effect of changes on the decisions of a fleet, which is not changed.

    All placements together have one budget for evaluating expressions. The fleet caches what
    was evaluated for it as it is, so the next call gets further.
    """
    budget = budget or CostBudget()
    for key in fleet.placements:
        with suppress(BrokenSetError, CostBudgetExceededError):
            fleet.shape(key, budget).settle(fleet, now, budget)
    return _Simulation(fleet.copy(), until or now, budget).run(changes, now)


class _Simulation:
    """A copy of the fleet, moved forward in time."""

    def __init__(self, fleet: Fleet, until: datetime, budget: CostBudget) -> None:
        self._fleet = fleet
        self._budget = budget
        self._until = until
        self._before = {key: tuple(sorted(fleet.counts.own(key))) for key in fleet.placements}
        self._last: dict[PlacementKey, Outcome] = {}
        self._moved: dict[tuple[datetime, PlacementKey], tuple[set[str], set[str]]] = {}
        """The clusters of a placement at the beginning and at the end of an instant."""
        self._queue: dict[PlacementKey, None] = {}
        self._alarms = _Alarms()
        self._rate_limiter = RateLimiter()
        self._held: Counter[PlacementKey] = Counter()

    def run(self, changes: Iterable[Change], now: datetime) -> Forecast:
        due = [(now + change.after, number, change) for number, change in enumerate(changes)]
        heapify(due)
        self._begin(now)
        at = now
        for _ in range(_MOST_LOOKS):
            if self._queue:
                self._evaluate(next(iter(self._queue)), at)
                continue
            ring = self._alarms.next_at
            if due and (ring is None or due[0][0] <= ring):
                at, _, change = heappop(due)
                if at > self._until:
                    break
                self._touch(change.apply(self._fleet, at))
            elif ring is not None and ring <= self._until:
                at = ring
                self._queue.update(dict.fromkeys(self._alarms.ringing(at)))
            else:
                break
        return self._forecast(self._alarms.next_at)

    def _begin(self, now: datetime) -> None:
        """Find out which placements wait for what.

        What has been evaluated stays as it is until an event requeues it, though another evaluation
        might end differently: others may have changed since the last one.
        """
        for key, placement in sorted(self._fleet.placements.items()):
            if not placement.status.conditions:
                self._queue[key] = None
            elif (outcome := self._decide(key, now)) is not None:
                self._alarms.put(key, outcome.requeue_at)

    def _touch(self, touched: PlacementKeys) -> None:
        self._queue.update(dict.fromkeys(sorted(touched)))

    def _decide(self, key: PlacementKey, at: datetime) -> Outcome | None:
        try:
            return decide(self._fleet, key, at, self._budget)
        except BrokenSetError:
            # A controller would wait until the set is mended, and write nothing.
            return None

    def _evaluate(self, key: PlacementKey, at: datetime) -> None:
        del self._queue[key]
        placement = self._fleet.placements.get(key)
        if placement is None:
            # The decisions of a deleted placement are deleted, and no longer count for others.
            self._write(key, (), at)
            self._last.pop(key, None)
            return
        outcome = self._decide(key, at)
        if outcome is None or self._is_held(key, outcome, at):
            return
        self._last[key] = outcome
        self._write(key, outcome.slices, at)
        status = status_after(placement, outcome, at)
        if status is not None:
            self._touch(self._fleet.put_placement(replace(placement, status=status)))
        self._alarms.put(key, outcome.requeue_at)

    def _is_held(self, key: PlacementKey, outcome: Outcome, at: datetime) -> bool:
        if set(outcome.clusters) == set(self._fleet.counts.own(key)):
            return False
        held = self._rate_limiter.hold(key, at)
        if held is None:
            return False
        self._held[key] += 1
        if self._held[key] < _PATIENCE:
            self._alarms.put(key, held)
        return True

    def _write(self, key: PlacementKey, slices: Sequence[DecisionSlice], at: datetime) -> None:
        before = set(self._fleet.counts.own(key))
        after = {name for part in slices for name in part.clusters}
        if before == after:
            return
        had, _ = self._moved.get((at, key), (before, after))
        self._moved[at, key] = had, after
        desired = {(key[0], part.name): DecidedClusters(key, part.clusters) for part in slices}
        for old in self._fleet.counts.entries(key):
            desired.setdefault(old, DecidedClusters(None, ()))
        for where, entry in desired.items():
            self._touch(self._fleet.decide(where, entry if entry.owner is not None else None))

    def _forecast(self, next_at: datetime | None) -> Forecast:
        differences = []
        for key, outcome in sorted(self._last.items()):
            before, after = self._before.get(key, ()), outcome.clusters
            if before != after:
                differences.append(Difference(key, before, after, outcome))
        moves = tuple(
            Move(at, key, tuple(sorted(had - has)), tuple(sorted(has - had)))
            for (at, key), (had, has) in self._moved.items()
            if had != has
        )
        oscillating = tuple(sorted(key for key, held in self._held.items() if held >= _PATIENCE))
        return Forecast(moves, tuple(differences), self._last, self._until, next_at, oscillating)


class _Alarms:
    """When placements are requeued; of several times for one the earliest counts."""

    def __init__(self) -> None:
        self._due: dict[PlacementKey, datetime] = {}
        self._heap: list[tuple[datetime, PlacementKey]] = []

    @property
    def next_at(self) -> datetime | None:
        """Return when the next one rings."""
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def put(self, key: PlacementKey, at: datetime | None) -> None:
        """Ring for a placement at some time."""
        if at is not None and (key not in self._due or at < self._due[key]):
            self._due[key] = at
            heappush(self._heap, (at, key))

    def ringing(self, at: datetime) -> Iterator[PlacementKey]:
        """Yield the placements that are due."""
        while self.next_at is not None and self.next_at <= at:
            _, key = heappop(self._heap)
            del self._due[key]
            yield key

"""Clusters, sets, bindings, placements, decisions and scores, joined from caches.

Feeds `domain/placement/incremental/fleet.py`, which selects clusters, and reports which placements
a change affects. The placement controller calls `decide`; explanations and plans call the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeVar

import msgspec

from sully.api.cluster.types import (
    AddOnPlacementScore,
    ManagedCluster,
    ManagedClusterSet,
    ManagedClusterSetBinding,
    Placement,
    PlacementDecision,
)
from sully.client.informers.cache import Cache
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.placement.changes import Change
from sully.domain.placement.incremental.deciding import decide, inputs, totals
from sully.domain.placement.incremental.fleet import Fleet, PlacementKeys
from sully.domain.placement.options import OCM, PlacementOptions
from sully.domain.placement.results.outcome import Outcome
from sully.domain.placement.results.verdicts import PlacementExplanation
from sully.domain.placement.whatif import Forecast, whatif
from sully.machinery.cel import CostBudget
from sully.runtime.clock import Clock

T = TypeVar("T")


class FleetCaches(msgspec.Struct, frozen=True, kw_only=True):
    """The collections that placement depends on."""

    clusters: Cache[ManagedCluster]
    sets: Cache[ManagedClusterSet]
    bindings: Cache[ManagedClusterSetBinding]
    placements: Cache[Placement]
    decisions: Cache[PlacementDecision]
    scores: Cache[AddOnPlacementScore]


class FleetView:
    """The decisions of placements, as of the caches and the clock."""

    def __init__(
        self, caches: FleetCaches, *, clock: Clock, options: PlacementOptions = OCM
    ) -> None:
        fleet = self.fleet = Fleet(options)
        self._clock = clock
        self._listeners: list[Callable[[frozenset[Key]], None]] = []
        # Sets first and decisions before placements, because of references.
        self._follow(caches.sets, fleet.put_set, lambda key: fleet.remove_set(key.name))
        self._follow(caches.bindings, fleet.put_binding, lambda key: fleet.remove_binding(*key))
        self._follow(caches.scores, fleet.put_score, lambda key: fleet.remove_score(*key))
        self._follow(caches.clusters, fleet.put_cluster, lambda key: fleet.remove_cluster(key.name))
        self._follow(caches.decisions, fleet.put_decision, fleet.remove_decision)
        self._follow(caches.placements, fleet.put_placement, fleet.remove_placement)

    def decide(
        self, key: Key, now: datetime | None = None, budget: CostBudget | None = None
    ) -> Outcome | None:
        """Return what to write for a placement; None: leave it alone."""
        return decide(self.fleet, key, now or self._clock.now(), budget)

    def totals(self, key: Key, first: int | None = None) -> dict[str, int]:
        """Return what feasible clusters score for a placement: all, or the first by name."""
        return totals(self.fleet, key, self._clock.now(), first)

    def explain(self, placement: Placement) -> PlacementExplanation:
        """Explain a placement, which need not exist."""
        return PlacementExplanation(inputs(self.fleet, placement, self._clock.now()))

    def whatif(self, changes: Iterable[Change], until: datetime | None = None) -> Forecast:
        """Return what changes would do to all decisions."""
        return whatif(self.fleet, changes, self._clock.now(), until)

    def enqueue(self, add: Callable[[Key], None]) -> Callable[[], None]:
        """Add the keys of placements whose decisions may change to a queue."""

        def handle(keys: frozenset[Key]) -> None:
            for key in sorted(keys):
                add(key)

        self._listeners.append(handle)
        handle(frozenset(Key(*key) for key in self.fleet.placements))
        return lambda: self._listeners.remove(handle)

    def _follow(
        self,
        cache: Cache[T],
        put: Callable[[T], PlacementKeys],
        remove: Callable[[Key], PlacementKeys],
    ) -> None:
        def handle(old: T | None, new: T | None) -> None:
            if new is not None:
                self._notify(put(new))
            elif old is not None:
                self._notify(remove(key_of(old)))

        cache.on_change(handle)

    def _notify(self, affected: PlacementKeys) -> None:
        if affected:
            keys = frozenset(Key(*key) for key in affected)
            for listener in list(self._listeners):
                listener(keys)

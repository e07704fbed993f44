"""The whole fleet: clusters, sets, bindings, placements, decisions and scores, kept together.

A change costs only what it affects: an event of a cluster one evaluation of that cluster for each
shape of placement that it matters to (shapes.py), a decision one step in the ranks. `decide` in
deciding.py then returns what a placement should have. Each `put` and `remove` returns the
placements that may change. Times are arguments; `views/fleet.py` feeds this from caches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from sully.api.cluster.types import (
    HEALTH_KEYS,
    PLACEMENT_LABEL,
    AddOnPlacementScore,
    ManagedCluster,
    ManagedClusterSet,
    ManagedClusterSetBinding,
    Placement,
    PlacementDecision,
)
from sully.domain.placement.candidates import Candidate
from sully.domain.placement.incremental.decision_counts import (
    DecidedClusters,
    DecisionCounts,
    PlacementKey,
)
from sully.domain.placement.incremental.registry import ClusterChange, Registry
from sully.domain.placement.incremental.shapes import Shape
from sully.domain.placement.options import OCM, PlacementOptions
from sully.domain.placement.predicates import compile_expressions
from sully.domain.placement.removals import Removals
from sully.domain.placement.schedule import Rules
from sully.machinery.cel import CostBudget

PlacementKeys = set[PlacementKey]
ShapeKey = tuple[tuple[str, ...], bytes]


def key_of(placement: Placement) -> PlacementKey:
    return placement.metadata.namespace, placement.metadata.name


def rules_key(placement: Placement) -> bytes:
    """Return what placements with the same requirements share."""
    spec = placement.spec
    return msgspec.json.encode((spec.predicates, spec.tolerations, spec.prioritizer_policy))


class Fleet:
    """All objects that placement depends on, and what follows from them."""

    def __init__(self, options: PlacementOptions = OCM) -> None:
        self.options = options
        self.registry = Registry()
        self.counts = DecisionCounts()
        self._placements: dict[PlacementKey, Placement] = {}
        self._rules_keys: dict[PlacementKey, bytes] = {}
        self._namespaces: dict[str, PlacementKeys] = {}
        self._shapes: dict[ShapeKey, Shape] = {}
        self._users: dict[ShapeKey, PlacementKeys] = {}
        self._assigned: dict[PlacementKey, ShapeKey] = {}
        self.removals = Removals(options.removals_per_minute)

    def copy(self) -> Fleet:
        """Return one that can be changed without changing this: what `whatif` works on."""
        other = Fleet(self.options)
        other.registry, other.counts = self.registry.copy(), self.counts.copy()
        other._placements, other._rules_keys = self._placements.copy(), self._rules_keys.copy()
        other._namespaces = {name: keys.copy() for name, keys in self._namespaces.items()}
        other._shapes = {key: shape.copy() for key, shape in self._shapes.items()}
        other._users = {key: users.copy() for key, users in self._users.items()}
        other._assigned, other.removals = self._assigned.copy(), self.removals.copy()
        return other

    @property
    def placements(self) -> Mapping[PlacementKey, Placement]:
        """Return all placements by key."""
        return self._placements

    @property
    def clusters(self) -> Mapping[str, Candidate]:
        """Return all clusters by name."""
        return self.registry.clusters

    def put_cluster(self, cluster: ManagedCluster) -> PlacementKeys:
        """Take a cluster as it is now."""
        if not any(taint.key in HEALTH_KEYS for taint in cluster.spec.taints):
            self.removals.recovered(cluster.metadata.name)
        return self._cluster_changed(self.registry.put_cluster(cluster))

    def remove_cluster(self, name: str) -> PlacementKeys:
        """Forget a cluster."""
        self.removals.recovered(name)
        return self._cluster_changed(self.registry.remove_cluster(name))

    def _cluster_changed(self, change: ClusterChange) -> PlacementKeys:
        matters = change.matters
        return self._update_shapes(
            (change.name,),
            lambda shape: (
                (matters or shape.reads_everything) and not change.sets.isdisjoint(shape.sets)
            ),
        )

    def put_score(self, score: AddOnPlacementScore) -> PlacementKeys:
        """Take the scores of a cluster as they are now."""
        return self._score_changed(score.metadata.namespace, score.metadata.name, score)

    def remove_score(self, cluster: str, name: str) -> PlacementKeys:
        """Forget scores of a cluster."""
        return self._score_changed(cluster, name, None)

    def _score_changed(
        self, cluster: str, name: str, score: AddOnPlacementScore | None
    ) -> PlacementKeys:
        self.registry.put_score(cluster, name, score)
        sets = self.registry.sets_of(cluster)
        affected = self._update_shapes(
            (cluster,), lambda shape: shape.uses_score(name) and not sets.isdisjoint(shape.sets)
        )
        reading = self._update_shapes(
            (cluster,), lambda shape: shape.reads_everything and not sets.isdisjoint(shape.sets)
        )
        # OCM does not reschedule if only an expression reads the score.
        return affected | reading if self.options.compat.requeues_on_scores else affected

    def put_set(self, cluster_set: ManagedClusterSet) -> PlacementKeys:
        """Take a set as it is now."""
        name = cluster_set.metadata.name
        self._update_shapes(self.registry.put_set(cluster_set), lambda shape: name in shape.sets)
        return self._bound_to(name)

    def remove_set(self, name: str) -> PlacementKeys:
        """Forget a set."""
        self.registry.remove_set(name)
        # These are no longer used; if the set is created again, its members may differ.
        for key in [key for key in self._shapes if name in key[0]]:
            self._drop_shape(key)
        return self._bound_to(name)

    def put_binding(self, binding: ManagedClusterSetBinding) -> PlacementKeys:
        """Take a binding as it is now."""
        self.registry.put_binding(binding)
        return self._listing(binding.metadata.namespace, binding.metadata.name)

    def remove_binding(self, namespace: str, name: str) -> PlacementKeys:
        """Forget a binding."""
        self.registry.remove_binding(namespace, name)
        return self._listing(namespace, name)

    def put_placement(self, placement: Placement) -> PlacementKeys:
        """Take a placement as it is now."""
        key = key_of(placement)
        self._placements[key] = placement
        self._rules_keys[key] = rules_key(placement)
        self._namespaces.setdefault(key[0], set()).add(key)
        return {key}

    def remove_placement(self, key: PlacementKey) -> PlacementKeys:
        """Forget a placement; its decisions are removed by events of their own."""
        if self._placements.pop(key, None) is not None:
            del self._rules_keys[key]
            self._namespaces[key[0]].discard(key)
            self._release(key)
        return {key}

    def put_decision(self, decision: PlacementDecision) -> PlacementKeys:
        """Take a decision as it is now."""
        metadata = decision.metadata
        label = metadata.labels.get(PLACEMENT_LABEL)
        owner = (metadata.namespace, label) if label else None
        clusters = tuple(chosen.cluster_name for chosen in decision.status.decisions)
        return self.decide((metadata.namespace, metadata.name), DecidedClusters(owner, clusters))

    def remove_decision(self, at: tuple[str, str]) -> PlacementKeys:
        """Forget a decision."""
        return self.decide(at, None)

    def decide(self, at: tuple[str, str], entry: DecidedClusters | None) -> PlacementKeys:
        """Update the decision at a key, or delete it."""
        old = self.counts.entry(at)
        changed = self.counts.put(at, entry)
        if changed:
            for shape in self._shapes.values():
                shape.recount(changed)
        owners = (state.owner for state in (old, entry) if state is not None)
        return {owner for owner in owners if owner is not None}

    def shape(self, key: PlacementKey, budget: CostBudget | None = None) -> Shape:
        """Return the shape of a placement, as its namespace's bindings are now.

        Compiling its expressions is charged to the budget; raises what that raises.
        """
        placement = self._placements[key]
        sets = self.registry.eligible(key[0], placement.spec.cluster_sets)
        shape_key = (sets, self._rules_keys[key])
        if self._assigned.get(key) != shape_key:
            if budget is not None and shape_key not in self._shapes:
                compile_expressions(placement.spec.predicates, budget)
            self._release(key)
            if shape_key not in self._shapes:
                rules = Rules(placement, self.options)
                self._shapes[shape_key] = Shape(rules, sets, self.options)
                self._users[shape_key] = set()
            self._users[shape_key].add(key)
            self._assigned[key] = shape_key
        return self._shapes[shape_key]

    def available(self, name: str, sets: Sequence[str]) -> Candidate | None:
        """Return a cluster that is in one of the sets and is not being deleted."""
        return self.registry.available(name, sets)

    def all_available(self, sets: Sequence[str]) -> list[Candidate]:
        """Return all clusters of some sets that are not being deleted, in order of name."""
        return self.registry.all_available(sets)

    def count(self, name: str) -> int:
        """Return how often decisions name a cluster."""
        return self.counts.count(name)

    def _release(self, key: PlacementKey) -> None:
        old = self._assigned.pop(key, None)
        if old is not None:
            self._users[old].discard(key)
            if not self._users[old]:
                del self._users[old], self._shapes[old]

    def _drop_shape(self, key: ShapeKey) -> None:
        for user in self._users.pop(key):
            del self._assigned[user]
        del self._shapes[key]

    def _update_shapes(
        self, names: Sequence[str], is_affected: Callable[[Shape], bool]
    ) -> PlacementKeys:
        affected: PlacementKeys = set()
        for key, shape in self._shapes.items():
            if is_affected(shape):
                for name in names:
                    shape.touch(name)
                affected |= self._users[key]
        return affected

    def _bound_to(self, cluster_set: str) -> PlacementKeys:
        spaces = [ns for ns in self.registry.namespaces if self.registry.binds(ns, cluster_set)]
        return {key for namespace in spaces for key in self._listing(namespace, cluster_set)}

    def _listing(self, namespace: str, cluster_set: str) -> PlacementKeys:
        """Return the placements of a namespace that name a set, or none and so mean all."""
        listing: PlacementKeys = set()
        for key in self._namespaces.get(namespace, ()):
            cluster_sets = self._placements[key].spec.cluster_sets
            if not cluster_sets or cluster_set in cluster_sets:
                listing.add(key)
        return listing

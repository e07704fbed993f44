"""Which clusters there are, in which sets, and which sets a namespace may use.

Only relations between objects are kept here, in both directions where both are needed. Decisions
are `fleet.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from sully.api.cluster.types import (
    AddOnPlacementScore,
    ManagedCluster,
    ManagedClusterSet,
    ManagedClusterSetBinding,
)
from sully.domain.placement.candidates import NO_SCORES, Candidate
from sully.domain.placement.incremental.membership import (
    BrokenSetError,
    Membership,
    eligible_sets,
    membership,
)


class ClusterChange(msgspec.Struct, frozen=True):
    """A cluster as it was and as it is, with all sets that it was or is in."""

    name: str
    old: Candidate | None
    new: Candidate | None
    sets: frozenset[str]
    moved: bool
    """It is in other sets than before."""

    @property
    def matters(self) -> bool:
        """Report whether anything but an expression could distinguish the two."""
        if self.moved or self.old is None or self.new is None:
            return True
        return not self.old.same_inputs(self.new)


class Registry:
    """Clusters with their scores, sets and bindings."""

    def __init__(self) -> None:
        self._clusters: dict[str, Candidate] = {}
        self._scores: dict[str, dict[str, AddOnPlacementScore]] = {}
        self._rules: dict[str, Membership] = {}
        self._members: dict[str, set[str]] = {}
        self._bindings: dict[str, set[str]] = {}
        """The names of the bindings in a namespace, whether their sets exist or not."""

    def copy(self) -> Registry:
        """Return one that can be changed without changing this."""
        other = Registry()
        other._clusters, other._rules = self._clusters.copy(), self._rules.copy()
        other._scores = {name: scores.copy() for name, scores in self._scores.items()}
        other._members = {name: members.copy() for name, members in self._members.items()}
        other._bindings = {name: bound.copy() for name, bound in self._bindings.items()}
        return other

    @property
    def clusters(self) -> Mapping[str, Candidate]:
        """Return all clusters by name."""
        return self._clusters

    @property
    def namespaces(self) -> Iterable[str]:
        """Return the namespaces that have bindings."""
        return self._bindings.keys()

    def bound(self, namespace: str) -> set[str]:
        """Return the existing sets that are bound to a namespace."""
        return {name for name in self._bindings.get(namespace, ()) if name in self._rules}

    def binds(self, namespace: str, cluster_set: str) -> bool:
        """Report whether a namespace has a binding of that name."""
        return cluster_set in self._bindings.get(namespace, ())

    def eligible(self, namespace: str, cluster_sets: Sequence[str]) -> tuple[str, ...]:
        """Return the sets that a placement may use; raise BrokenSetError if one is unreadable."""
        names = eligible_sets(self.bound(namespace), cluster_sets)
        for name in names:
            if problem := self._rules[name].problem:
                raise BrokenSetError(f"ManagedClusterSet {name}: {problem}")
        return names

    def available(self, name: str, sets: Sequence[str]) -> Candidate | None:
        """Return a cluster that is in one of the sets and is not being deleted."""
        candidate = self._clusters.get(name)
        if candidate is None or candidate.is_terminating:
            return None
        return candidate if any(name in self._members[set_name] for set_name in sets) else None

    def all_available(self, sets: Sequence[str]) -> list[Candidate]:
        """Return all clusters of some sets that are not being deleted, in order of name."""
        names: set[str] = set().union(*(self._members[set_name] for set_name in sets))
        clusters = self._clusters
        candidates = [clusters[name] for name in sorted(names)]
        return [candidate for candidate in candidates if not candidate.is_terminating]

    def put_cluster(self, cluster: ManagedCluster) -> ClusterChange:
        """Take a cluster as it is now."""
        name = cluster.metadata.name
        return self._change(name, Candidate(cluster, self._scores.get(name, NO_SCORES)))

    def remove_cluster(self, name: str) -> ClusterChange:
        """Forget a cluster."""
        return self._change(name, None)

    def put_score(
        self, cluster: str, name: str, score: AddOnPlacementScore | None
    ) -> Candidate | None:
        """Update a score, or delete it; return its cluster."""
        scores = {**self._scores.get(cluster, {})}
        scores.pop(name, None)
        if score is not None:
            scores[name] = score
        if scores:
            self._scores[cluster] = scores
        else:
            self._scores.pop(cluster, None)
        candidate = self._clusters.get(cluster)
        if candidate is not None:
            # Another candidate: what was concluded with the old scores holds no longer.
            self._clusters[cluster] = Candidate(candidate.cluster, scores)
        return candidate

    def sets_of(self, name: str) -> frozenset[str]:
        """Return the sets that a cluster is in."""
        return frozenset(member for member, members in self._members.items() if name in members)

    def put_set(self, cluster_set: ManagedClusterSet) -> list[str]:
        """Update a set; return the clusters that were added or removed."""
        rule = membership(cluster_set)
        if self._rules.get(rule.name) == rule:
            return []
        before = self._members.get(rule.name, set())
        after = {name for name, one in self._clusters.items() if rule.has(one.labels)}
        self._rules[rule.name], self._members[rule.name] = rule, after
        return sorted(before ^ after)

    def remove_set(self, name: str) -> None:
        """Forget a set."""
        self._rules.pop(name, None)
        self._members.pop(name, None)

    def put_binding(self, binding: ManagedClusterSetBinding) -> None:
        """Add a binding; its name is that of its set, as admission requires."""
        self._bindings.setdefault(binding.metadata.namespace, set()).add(binding.metadata.name)

    def remove_binding(self, namespace: str, name: str) -> None:
        """Forget a binding."""
        bound = self._bindings.get(namespace, set())
        bound.discard(name)
        if not bound:
            self._bindings.pop(namespace, None)

    def _change(self, name: str, new: Candidate | None) -> ClusterChange:
        old = self._clusters.pop(name, None)
        if new is not None:
            self._clusters[name] = new
        if old is not None and new is not None and old.labels == new.labels:
            return ClusterChange(name, old, new, self.sets_of(name), moved=False)
        before = self.sets_of(name)
        for set_name, rule in self._rules.items():
            inside = new is not None and rule.has(new.labels)
            (self._members[set_name].add if inside else self._members[set_name].discard)(name)
        after = self.sets_of(name)
        return ClusterChange(name, old, new, before | after, moved=before != after)

"""Which clusters belong to which sets, kept up to date change by change.

Also those that are being deleted count here. Only labels matter, so a cluster that reports its
health wakes nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sully.api.cluster.types import ManagedCluster, ManagedClusterSet
from sully.client.informers.informer import Informer
from sully.client.transport import Key
from sully.domain.placement.membership import Membership, membership


class Members:
    """The clusters of each set: a source that tells of sets whose members changed."""

    def __init__(
        self, clusters: Informer[ManagedCluster], sets: Informer[ManagedClusterSet]
    ) -> None:
        self._clusters = clusters
        self._rules: dict[str, Membership] = {}
        self._members: dict[str, set[str]] = {}
        self._listeners: list[Callable[[str], None]] = []
        sets.on_change(self._set_changed)
        clusters.on_change(self._cluster_changed)

    def count(self, name: str) -> int | None:
        """Return how many clusters a set has; None if it is unknown, or its rule unreadable."""
        rule = self._rules.get(name)
        return None if rule is None or rule.problem else len(self._members[name])

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[str], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the keys of each set that changes."""

        def listen(name: str) -> None:
            for key in to_keys(name):
                add(key)

        self._listeners.append(listen)
        for name in self._rules:
            listen(name)
        return lambda: self._listeners.remove(listen)

    def _set_changed(self, old: ManagedClusterSet | None, new: ManagedClusterSet | None) -> None:
        if new is None:
            if old is not None:
                self._rules.pop(old.metadata.name, None)
                self._members.pop(old.metadata.name, None)
            return
        name = new.metadata.name
        if old is None or old.spec.cluster_selector != new.spec.cluster_selector:
            rule = self._rules[name] = membership(new)
            self._members[name] = {
                each.metadata.name
                for each in self._clusters.values()
                if rule.has(each.metadata.labels)
            }
        # Also without a change of the rule: somebody may have taken our condition away.
        self._tell(name)

    def _cluster_changed(self, old: ManagedCluster | None, new: ManagedCluster | None) -> None:
        if old is not None and new is not None and old.metadata.labels == new.metadata.labels:
            return
        cluster = new or old
        if cluster is None:
            return
        for name, rule in self._rules.items():
            members, at = self._members[name], cluster.metadata.name
            belongs = new is not None and rule.has(new.metadata.labels)
            if belongs != (at in members):
                (members.add if belongs else members.discard)(at)
                self._tell(name)

    def _tell(self, name: str) -> None:
        for listen in self._listeners:
            listen(name)

"""Changes of a fleet whose effect can be simulated; `whatif.py` does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

import msgspec
from msgspec.structs import replace

from sully.api.cluster.types import (
    ManagedCluster,
    ManagedClusterSet,
    ManagedClusterSetBinding,
    Placement,
    Taint,
)
from sully.domain.clusters.health import health_taints
from sully.domain.placement.incremental.decision_counts import PlacementKey
from sully.domain.placement.incremental.fleet import Fleet, PlacementKeys
from sully.machinery.selectors.labels import Selector

IMMEDIATELY = timedelta(0)

Taints = tuple[Taint, ...]


class Change(Protocol):
    """A change of a fleet, some time after the start."""

    @property
    def after(self) -> timedelta:
        """Return how long after the start it happens."""

    def apply(self, fleet: Fleet, now: datetime) -> PlacementKeys:
        """Apply it; return the placements that may change."""


class TaintCluster(msgspec.Struct, frozen=True):
    """Add a taint to a cluster; without a time it is added at the time of the change."""

    cluster: str
    taint: Taint
    after: timedelta = IMMEDIATELY

    def apply(self, fleet: Fleet, now: datetime) -> PlacementKeys:
        """Add the taint."""
        taint = replace(self.taint, time_added=self.taint.time_added or now)
        return _retaint(fleet, self.cluster, lambda taints: (*taints, taint))


class UntaintCluster(msgspec.Struct, frozen=True):
    """Remove all taints of a key from a cluster."""

    cluster: str
    key: str
    after: timedelta = IMMEDIATELY

    def apply(self, fleet: Fleet, now: datetime) -> PlacementKeys:
        """Remove the taints."""
        _ = now
        return _retaint(
            fleet,
            self.cluster,
            lambda taints: tuple(taint for taint in taints if taint.key != self.key),
        )


class SilenceClusters(msgspec.Struct, frozen=True):
    """Make all clusters with some labels unreachable."""

    selector: Selector
    after: timedelta = IMMEDIATELY

    def apply(self, fleet: Fleet, now: datetime) -> PlacementKeys:
        """Add the taint of unreachable clusters."""
        matching = [
            name
            for name, candidate in fleet.clusters.items()
            if self.selector.matches(candidate.labels)
        ]
        affected: PlacementKeys = set()
        for name in sorted(matching):
            affected |= _retaint(fleet, name, lambda taints: health_taints(taints, "Unknown", now))
        return affected


class DropCluster(msgspec.Struct, frozen=True):
    """Delete a cluster."""

    cluster: str
    after: timedelta = IMMEDIATELY

    def apply(self, fleet: Fleet, now: datetime) -> PlacementKeys:
        """Remove the cluster."""
        _ = now
        return fleet.remove_cluster(_find(fleet, self.cluster).metadata.name)


class LabelCluster(msgspec.Struct, frozen=True):
    """Set a label of a cluster; None removes it."""

    cluster: str
    label: str
    value: str | None
    after: timedelta = IMMEDIATELY

    def apply(self, fleet: Fleet, now: datetime) -> PlacementKeys:
        """Change the label."""
        _ = now
        cluster = _find(fleet, self.cluster)
        labels = {
            name: value for name, value in cluster.metadata.labels.items() if name != self.label
        }
        if self.value is not None:
            labels[self.label] = self.value
        return fleet.put_cluster(
            replace(cluster, metadata=replace(cluster.metadata, labels=labels))
        )


class PutObject(msgspec.Struct, frozen=True):
    """Create or update a cluster, a set, a binding or a placement."""

    obj: ManagedCluster | ManagedClusterSet | ManagedClusterSetBinding | Placement
    after: timedelta = IMMEDIATELY

    def apply(self, fleet: Fleet, now: datetime) -> PlacementKeys:
        """Store the object."""
        _ = now
        match self.obj:
            case ManagedCluster():
                return fleet.put_cluster(self.obj)
            case ManagedClusterSet():
                return fleet.put_set(self.obj)
            case ManagedClusterSetBinding():
                return fleet.put_binding(self.obj)
            case Placement():
                return fleet.put_placement(self.obj)


class DropPlacement(msgspec.Struct, frozen=True):
    """Delete a placement."""

    key: PlacementKey
    after: timedelta = IMMEDIATELY

    def apply(self, fleet: Fleet, now: datetime) -> PlacementKeys:
        """Remove the placement."""
        _ = now
        return fleet.remove_placement(self.key)


class DropSet(msgspec.Struct, frozen=True):
    """Delete a set; its clusters remain."""

    name: str
    after: timedelta = IMMEDIATELY

    def apply(self, fleet: Fleet, now: datetime) -> PlacementKeys:
        """Remove the set."""
        _ = now
        return fleet.remove_set(self.name)


class DropBinding(msgspec.Struct, frozen=True):
    """Delete the binding of a set to a namespace."""

    key: tuple[str, str]
    """Its namespace, and its name, which is that of the set."""
    after: timedelta = IMMEDIATELY

    def apply(self, fleet: Fleet, now: datetime) -> PlacementKeys:
        """Remove the binding."""
        _ = now
        return fleet.remove_binding(*self.key)


class NoSuchClusterError(LookupError):
    """A change names a cluster that the fleet does not have."""


def _find(fleet: Fleet, name: str) -> ManagedCluster:
    candidate = fleet.clusters.get(name)
    if candidate is None:
        raise NoSuchClusterError(name)
    return candidate.cluster


def _retaint(fleet: Fleet, name: str, change: Callable[[Taints], Taints]) -> PlacementKeys:
    cluster = _find(fleet, name)
    spec = replace(cluster.spec, taints=change(cluster.spec.taints))
    return fleet.put_cluster(replace(cluster, spec=spec))

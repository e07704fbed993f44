"""Changes of a fleet whose effect can be simulated; `whatif.py` does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from msgspec.structs import replace

from sully.api.cluster.types import (
    ManagedCluster,
    ManagedClusterSet,
    ManagedClusterSetBinding,
    Placement,
    Taint,
)
from sully.domain.clusters.health import health_taints
from sully.domain.placement.incremental.counting import PlacementKey
from sully.domain.placement.incremental.fleet import Fleet, PlacementKeys
from sully.machinery.labels import Selector

IMMEDIATELY = timedelta(0)

Taints = tuple[Taint, ...]


class Change(Protocol):
    """A change of a fleet, some time after the start."""

    @property
    def after(self) -> timedelta:
        """Return how long after the start it happens."""

    def apply(self, fleet: Fleet, now: datetime) -> PlacementKeys:
        """Apply it; return the placements that may change."""


@dataclass(frozen=True, slots=True)
class TaintCluster:
    """Add a taint to a cluster; without a time it is added at the time of the change."""

    cluster: str
    taint: Taint
    after: timedelta = IMMEDIATELY

    def apply(self, fleet: Fleet, now: datetime) -> PlacementKeys:
        """Add the taint."""
        taint = replace(self.taint, time_added=self.taint.time_added or now)
        return _retaint(fleet, self.cluster, lambda taints: (*taints, taint))


@dataclass(frozen=True, slots=True)
class UntaintCluster:
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


@dataclass(frozen=True, slots=True)
class SilenceClusters:
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


@dataclass(frozen=True, slots=True)
class DropCluster:
    """Delete a cluster."""

    cluster: str
    after: timedelta = IMMEDIATELY

    def apply(self, fleet: Fleet, now: datetime) -> PlacementKeys:
        """Remove the cluster."""
        _ = now
        return fleet.remove_cluster(_find(fleet, self.cluster).metadata.name)


@dataclass(frozen=True, slots=True)
class LabelCluster:
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


@dataclass(frozen=True, slots=True)
class PutObject:
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


@dataclass(frozen=True, slots=True)
class DropPlacement:
    """Delete a placement."""

    key: PlacementKey
    after: timedelta = IMMEDIATELY

    def apply(self, fleet: Fleet, now: datetime) -> PlacementKeys:
        """Remove the placement."""
        _ = now
        return fleet.remove_placement(self.key)


@dataclass(frozen=True, slots=True)
class DropSet:
    """Delete a set; its clusters remain."""

    name: str
    after: timedelta = IMMEDIATELY

    def apply(self, fleet: Fleet, now: datetime) -> PlacementKeys:
        """Remove the set."""
        _ = now
        return fleet.remove_set(self.name)


@dataclass(frozen=True, slots=True)
class DropBinding:
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

"""Changes of a fleet that people ask about before they happen; `whatif.py` plays them through."""

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
from sully.domain.placement.counting import PlacementKey
from sully.domain.placement.fleet import Fleet, Touched
from sully.machinery.labels import Selector

AT_ONCE = timedelta(0)

Taints = tuple[Taint, ...]


class Change(Protocol):
    """Something that happens to a fleet some time after the beginning."""

    @property
    def after(self) -> timedelta:
        """Return how long after the beginning it happens."""

    def apply(self, fleet: Fleet, now: datetime) -> Touched:
        """Make it happen; return the placements that may come out otherwise."""


@dataclass(frozen=True, slots=True)
class TaintCluster:
    """Put a taint on a cluster; without a time it is as old as the change."""

    cluster: str
    taint: Taint
    after: timedelta = AT_ONCE

    def apply(self, fleet: Fleet, now: datetime) -> Touched:
        """Add the taint."""
        taint = replace(self.taint, time_added=self.taint.time_added or now)
        return _retaint(fleet, self.cluster, lambda taints: (*taints, taint))


@dataclass(frozen=True, slots=True)
class UntaintCluster:
    """Take all taints of a key off a cluster."""

    cluster: str
    key: str
    after: timedelta = AT_ONCE

    def apply(self, fleet: Fleet, now: datetime) -> Touched:
        """Remove the taints."""
        _ = now
        return _retaint(
            fleet, self.cluster, lambda taints: tuple(one for one in taints if one.key != self.key)
        )


@dataclass(frozen=True, slots=True)
class SilenceClusters:
    """Lose contact with all clusters that carry some labels: they become unreachable."""

    selector: Selector
    after: timedelta = AT_ONCE

    def apply(self, fleet: Fleet, now: datetime) -> Touched:
        """Add the taint that the loss of contact brings."""
        hit = [name for name, one in fleet.clusters.items() if self.selector.matches(one.labels)]
        touched: Touched = set()
        for name in sorted(hit):
            touched |= _retaint(fleet, name, lambda taints: health_taints(taints, "Unknown", now))
        return touched


@dataclass(frozen=True, slots=True)
class DropCluster:
    """Take a cluster out of the fleet."""

    cluster: str
    after: timedelta = AT_ONCE

    def apply(self, fleet: Fleet, now: datetime) -> Touched:
        """Remove the cluster."""
        _ = now
        return fleet.remove_cluster(_find(fleet, self.cluster).metadata.name)


@dataclass(frozen=True, slots=True)
class LabelCluster:
    """Give a cluster a label; None takes it away."""

    cluster: str
    label: str
    value: str | None
    after: timedelta = AT_ONCE

    def apply(self, fleet: Fleet, now: datetime) -> Touched:
        """Change the label."""
        _ = now
        found = _find(fleet, self.cluster)
        labels = {
            name: value for name, value in found.metadata.labels.items() if name != self.label
        }
        if self.value is not None:
            labels[self.label] = self.value
        return fleet.put_cluster(replace(found, metadata=replace(found.metadata, labels=labels)))


@dataclass(frozen=True, slots=True)
class PutObject:
    """Add a cluster, a set, a binding or a placement, or give it another form."""

    obj: ManagedCluster | ManagedClusterSet | ManagedClusterSetBinding | Placement
    after: timedelta = AT_ONCE

    def apply(self, fleet: Fleet, now: datetime) -> Touched:
        """Take the object."""
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
    """Take a placement away."""

    key: PlacementKey
    after: timedelta = AT_ONCE

    def apply(self, fleet: Fleet, now: datetime) -> Touched:
        """Remove the placement."""
        _ = now
        return fleet.remove_placement(self.key)


@dataclass(frozen=True, slots=True)
class DropSet:
    """Take a set away; its clusters stay."""

    name: str
    after: timedelta = AT_ONCE

    def apply(self, fleet: Fleet, now: datetime) -> Touched:
        """Remove the set."""
        _ = now
        return fleet.remove_set(self.name)


@dataclass(frozen=True, slots=True)
class DropBinding:
    """Let the placements of a namespace use a set no more."""

    key: tuple[str, str]
    """Its namespace, and its name, which is that of the set."""
    after: timedelta = AT_ONCE

    def apply(self, fleet: Fleet, now: datetime) -> Touched:
        """Remove the binding."""
        _ = now
        return fleet.remove_binding(*self.key)


class NoSuchClusterError(LookupError):
    """A change names a cluster that the fleet does not have."""


def _find(fleet: Fleet, name: str) -> ManagedCluster:
    found = fleet.clusters.get(name)
    if found is None:
        raise NoSuchClusterError(name)
    return found.cluster


def _retaint(fleet: Fleet, name: str, change: Callable[[Taints], Taints]) -> Touched:
    found = _find(fleet, name)
    spec = replace(found.spec, taints=change(found.spec.taints))
    return fleet.put_cluster(replace(found, spec=spec))

"""The changes that a plan is about: objects that are created, updated or deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from sully.api.resource.annotations import CREATED_AT, CREATED_BY, expiry
from sully.api.resource.types import (
    DeviceTaint,
    DeviceTaintRule,
    ResourceSlice,
    ResourceSlicePatch,
)
from sully.client.informers.cache import Cache
from sully.client.objects import key_of
from sully.client.transport import Key, Kind
from sully.domain.planning.report import ObjectChange
from sully.domain.workloads.revisions import LAST_APPLIED
from sully.planning.simulation.cluster_copy import ClusterCopy
from sully.planning.simulation.virtual_clock import Callback
from sully.views.fleet_kinds import BINDINGS, CLUSTERS, PLACEMENTS, POLICIES, SETS
from sully.views.kinds import CLASSES, PATCHES, RULES, SLICES

DEVICE_KINDS: tuple[Kind[Any], ...] = (RULES, PATCHES, SLICES, CLASSES)
PLACEMENT_KINDS: tuple[Kind[Any], ...] = (CLUSTERS, PLACEMENTS, BINDINGS, SETS, POLICIES)
"""The kinds that a change can be about; a plan is about kinds of one tuple."""


class Put(msgspec.Struct, frozen=True):
    """An object that is created or updated."""

    kind: Kind[Any]
    obj: Any

    @property
    def key(self) -> Key:
        """Return the namespace and name of the object."""
        return key_of(self.obj)


class Remove(msgspec.Struct, frozen=True):
    """An object that is deleted."""

    kind: Kind[Any]
    key: Key


Change = Put | Remove
_EXPIRING = frozenset((RULES.plural, PATCHES.plural))
"""The resources that are deleted at the time of their expiry annotation."""
_MAX_SKEW = timedelta(minutes=1)
"""A `timeAdded` later than this is intended to be in the future."""


def is_about_placements(change: Change) -> bool:
    """Report whether a change is about clusters and placements, not about devices."""
    return any(change.kind.plural == kind.plural for kind in PLACEMENT_KINDS)


def apply_change(cluster: ClusterCopy, change: Change, on_expiry: Callback = lambda: None) -> None:
    """Apply a change to a copy of the cluster, and delete the object when it expires."""
    cache = caches_of(cluster)[change.kind.plural]
    if isinstance(change, Remove):
        cluster.remove(cache, change.key)
        return
    _schedule_expiry(cluster, cache, cluster.put(cache, change.obj), on_expiry)


def set_object(cluster: ClusterCopy, kind: Kind[Any], key: Key, obj: Any | None) -> None:
    """Make an object of a copy of the cluster be like this; None: make it not exist."""
    cache = caches_of(cluster)[kind.plural]
    if obj is None:
        cluster.remove(cache, key)
    else:
        cluster.put(cache, obj)


def _schedule_expiry(
    cluster: ClusterCopy, cache: Cache[Any], obj: Any, on_expiry: Callback = lambda: None
) -> None:
    time = expiry(obj.metadata.annotations) if cache.kind.plural in _EXPIRING else None
    if time is None:
        return
    version, key = obj.metadata.resource_version, key_of(obj)

    def expire() -> None:
        current = cache.get(key)
        # A changed object may expire at another time.
        if current is not None and current.metadata.resource_version == version:
            on_expiry()
            cluster.remove(cache, key)

    cluster.clock.call_at(time, expire)


def start_time(changes: Iterable[Change], taken: datetime) -> datetime:
    """Return when the changes are made: `timeAdded` may be later than the snapshot."""
    objects = [change.obj for change in changes if isinstance(change, Put)]
    times = [taint.time_added for obj in objects for taint in _taints(obj)]
    late = [time for time in times if time is not None and taken < time <= taken + _MAX_SKEW]
    return max(late, default=taken)


def _taints(obj: Any) -> Iterator[DeviceTaint]:
    """Yield the taints that an object sets."""
    if isinstance(obj, DeviceTaintRule):
        yield obj.spec.taint
    elif isinstance(obj, ResourceSlicePatch):
        yield from obj.spec.devices.taints
    elif isinstance(obj, ResourceSlice):
        yield from (taint for device in obj.spec.devices for taint in device.taints)
        yield from (entry.taint for entry in obj.spec.taints)


def schedule_expiry(cluster: ClusterCopy) -> None:
    """Delete all existing objects when they expire."""
    for cache in caches_of(cluster).values():
        for obj in list(cache.values()):
            _schedule_expiry(cluster, cache, obj)


def caches_of(cluster: ClusterCopy) -> Mapping[str, Cache[Any]]:
    """Return the caches that a change may be about, by plural."""
    return {
        RULES.plural: cluster.rules,
        PATCHES.plural: cluster.patches,
        SLICES.plural: cluster.slices,
        CLASSES.plural: cluster.classes,
    }


def describe(change: Change, existing: Any | None) -> ObjectChange:
    """Return what a change does to the existing object."""
    name = f"{change.kind.kind}/{change.key}"
    if isinstance(change, Remove):
        return ObjectChange(name, "deleted")
    if existing is None:
        return ObjectChange(name, "created")
    same = _user_fields(existing) == _user_fields(change.obj)
    return ObjectChange(name, "unchanged" if same else "changed")


def _user_fields(obj: Any) -> tuple[Any, ...]:
    """Return the fields of an object that users set."""
    managed = (LAST_APPLIED, CREATED_AT, CREATED_BY)
    annotations = obj.metadata.annotations.items()
    set_by_users = {name: value for name, value in annotations if name not in managed}
    return obj.spec, obj.metadata.labels, set_by_users

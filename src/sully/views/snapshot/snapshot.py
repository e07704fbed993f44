"""The objects of a cluster at one time, with the views over them, for commands and simulations.

It comes from a server (loading.py) or from a file (file.py), and is immutable; explanations try
changes on a snapshot `with_objects` or `without` some. Views are the same code that controllers
use, and are created on first use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import msgspec

from sully.client.informers.cache import Cache
from sully.client.objects import from_body, key_of, unreadable
from sully.client.transport import Key, Kind
from sully.domain.capabilities.control_plane import ControlPlane
from sully.domain.devices.device import EffectiveDevice
from sully.domain.eviction.judge import EvictionPolicy
from sully.views.devices.changes import Features
from sully.views.devices.exposures import Exposures
from sully.views.devices.inventory import Inventory
from sully.views.devices.usage import Usage
from sully.views.kinds import CLAIMS, CLASSES, CONSUMER_PODS, PATCHES, RULES, SLICES, TAINT_RECORDS

if TYPE_CHECKING:
    from sully.views.fleet import FleetView

T = TypeVar("T")

Resource = tuple[str, str]
"""Group and plural, whatever type the resource is read as."""


class Gap(msgspec.Struct, frozen=True):
    """A kind that is missing from a snapshot, and why."""

    kind: Kind[Any]
    reason: Literal["not served", "not allowed", "not in the file"]
    message: str = ""
    only_namespace: str = ""
    """The only namespace whose objects it has; empty: it has none."""


class Objects(msgspec.Struct, frozen=True):
    """The objects of one kind, of the type they were read as."""

    kind: Kind[Any]
    items: Sequence[Any]


class StoppedClock(msgspec.Struct, frozen=True):
    """A clock that always shows the same time."""

    time: datetime

    def now(self) -> datetime:
        """Return the time of the clock."""
        return self.time

    def monotonic(self) -> float:
        """Return 0: the clock does not move."""
        return 0.0

    async def sleep(self, seconds: float) -> None:
        """Fail: the clock does not move."""
        raise RuntimeError(f"cannot sleep {seconds} s with a stopped clock")


class Snapshot:
    """The objects of a cluster at one time."""

    def __init__(
        self,
        objects: Iterable[Objects],
        *,
        taken: datetime,
        gaps: Sequence[Gap] = (),
        features: Features | None = None,
        control_plane: ControlPlane | None = None,
    ) -> None:
        self.taken = taken
        self.gaps = tuple(gaps)
        # A server without the kinds of Sully runs none of its controllers.
        concluded = ControlPlane.SULLY if self.has_records else ControlPlane.KUBERNETES
        self.control_plane = control_plane or concluded
        self.features = features or features_of(self.control_plane)
        self._objects: dict[Resource, Objects] = {_resource(items.kind): items for items in objects}
        self._caches: dict[Kind[Any], Cache[Any]] = {}

    # Reading

    def of(self, kind: Kind[T]) -> Cache[T]:
        """Return the objects of a kind, as its type; none if it is not loaded."""
        cache = self._caches.get(kind)
        if cache is None:
            cache = self._caches[kind] = Cache(kind)
            loaded = self._objects.get(_resource(kind))
            cache.replace(_read_as(kind, loaded) if loaded is not None else ())
        return cache

    def get(self, kind: Kind[T], key: Key) -> T | None:
        """Return one object, or None."""
        return self.of(kind).get(key)

    def gap(self, kind: Kind[Any]) -> Gap | None:
        """Return what is missing of a kind, or None."""
        resource = _resource(kind)
        return next((gap for gap in self.gaps if _resource(gap.kind) == resource), None)

    @cached_property
    def inventory(self) -> Inventory:
        """Return the devices with effective attributes and taints."""
        return Inventory(
            slices=self.of(SLICES),
            classes=self.of(CLASSES),
            rules=self.of(RULES),
            patches=self.of(PATCHES),
            features=self.features,
        )

    def devices(self) -> Iterator[EffectiveDevice]:
        """Yield all devices, pool by pool."""
        for pool in sorted(self.inventory.pools()):
            yield from self.inventory.devices(pool).values()

    @cached_property
    def usage(self) -> Usage:
        """Return which pods and claims use which devices."""
        return Usage(pods=self.of(CONSUMER_PODS), claims=self.of(CLAIMS))

    @property
    def has_records(self) -> bool:
        """Report whether the server keeps records; the user may not be allowed to list them."""
        gap = self.gap(TAINT_RECORDS)
        return gap is None or gap.reason != "not served"

    @property
    def records_evictions(self) -> bool:
        """Report whether the evictor writes records: Kubernetes' controller does not."""
        return self.has_records and self.control_plane.evictor == "Sully"

    @property
    def policy(self) -> EvictionPolicy:
        """Return how pods are evicted in this cluster."""
        return self.control_plane.eviction

    @cached_property
    def exposures(self) -> Exposures:
        """Return the pods on tainted devices, at the time of the snapshot."""
        clock = StoppedClock(self.taken)
        usage = self.usage
        if not self.policy.compat.evicts_extended_resources:
            usage = Usage(
                pods=self.of(CONSUMER_PODS), claims=self.of(CLAIMS), extended_resources=False
            )
        return Exposures(
            self.inventory,
            usage,
            clock=clock,
            policy=self.policy,
            pauses=self.control_plane.honors_pauses,
            rates=self.control_plane.honors_rates,
        )

    @cached_property
    def fleet(self) -> FleetView:
        """Return the clusters and placements of a hub with default flags."""
        return self.fleet_with()

    def fleet_with(
        self, *, toleration_seconds: int | None = None, removals_per_minute: int | None = None
    ) -> FleetView:
        """Return the clusters and placements of a hub with these flags.

        A hub without our kinds behaves as Open Cluster Management does.
        """
        # Late imports: few commands are about clusters.
        from sully.domain.placement.options import OCM, PlacementOptions
        from sully.views.fleet import FleetCaches, FleetView
        from sully.views.fleet_kinds import (
            BINDINGS,
            CLUSTERS,
            DECISIONS,
            PLACEMENTS,
            POLICIES,
            SCORES,
            SETS,
        )

        caches = FleetCaches(
            clusters=self.of(CLUSTERS),
            sets=self.of(SETS),
            bindings=self.of(BINDINGS),
            placements=self.of(PLACEMENTS),
            decisions=self.of(DECISIONS),
            scores=self.of(SCORES),
        )
        gap = self.gap(POLICIES)
        is_sully = gap is None or gap.reason == "not allowed"
        options = (
            PlacementOptions(
                health_toleration_seconds=toleration_seconds,
                removals_per_minute=removals_per_minute,
            )
            if is_sully
            else OCM
        )
        return FleetView(caches, clock=StoppedClock(self.taken), options=options)

    # Modified copies

    def with_objects(self, kind: Kind[T], *objects: T) -> Snapshot:
        """Return a snapshot with these objects added or replaced."""
        by_key = {key_of(obj): obj for obj in objects}
        others = self._others(kind, by_key.keys())
        return self._with_items(kind, [*others, *by_key.values()])

    def without(self, kind: Kind[Any], *keys: Key) -> Snapshot:
        """Return a snapshot without these objects."""
        return self._with_items(kind, self._others(kind, keys))

    def updated(self, newer: Snapshot) -> Snapshot:
        """Return a snapshot with all objects of the kinds of a newer one, at its time."""
        return Snapshot(
            {**self._objects, **newer._objects}.values(),
            taken=newer.taken,
            gaps=self.gaps,
            features=self.features,
            control_plane=self.control_plane,
        )

    def _others(self, kind: Kind[T], keys: Collection[Key]) -> list[T]:
        return [obj for obj in self.of(kind).values() if key_of(obj) not in keys]

    def _with_items(self, kind: Kind[Any], items: Sequence[Any]) -> Snapshot:
        resource = _resource(kind)
        others = [objects for other, objects in self._objects.items() if other != resource]
        return Snapshot(
            [*others, Objects(kind, items)],
            taken=self.taken,
            gaps=[gap for gap in self.gaps if _resource(gap.kind) != resource],
            features=self.features,
            control_plane=self.control_plane,
        )


def features_of(control_plane: ControlPlane) -> Features:
    """Return what changes devices where these components act."""
    return Features(
        taints=control_plane.honors_taints,
        rules=control_plane.honors_rules,
        taint_slices=control_plane.honors_patches,
        patches=control_plane.honors_patches,
        patch_attributes=control_plane.honors_patched_values,
        patch_evictions_only=control_plane.is_mixed,
        suppression=control_plane.honors_suppressions,
        pool_owners=control_plane.scheduler == "Sully",
    )


def _resource(kind: Kind[Any]) -> Resource:
    return kind.group, kind.plural


def _read_as(kind: Kind[T], loaded: Objects) -> Sequence[T]:
    if loaded.kind.type == kind.type:
        return loaded.items
    if loaded.kind.untyped:
        return [from_body(kind, cast("Mapping[str, Any]", item)) for item in loaded.items]
    try:
        return [msgspec.convert(item, kind.type, from_attributes=True) for item in loaded.items]
    except msgspec.ValidationError as error:
        raise unreadable(kind, error) from error

"""A cluster at one moment, with the views over it: what commands and trials are answered from.

It comes from a server (loading.py) or from a file (file.py), and changes no more; a trial
is made on a snapshot `with_objects` or `without` some. Views are the same code that controllers
use, and are made when someone asks for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import msgspec

from sully.client.informers.cache import Cache
from sully.client.objects import from_body, key_of, unreadable
from sully.client.transport import Key, Kind
from sully.domain.devices.taints import EVICTING_EFFECTS
from sully.domain.eviction.judge import EvictionPolicy
from sully.machinery.compat import Compat
from sully.views.devices.changes import Features
from sully.views.devices.exposures import Exposures
from sully.views.devices.inventory import Inventory
from sully.views.devices.usage import Usage
from sully.views.kinds import CLAIMS, CLASSES, PATCHES, PODS, RULES, SLICES, TAINT_RECORDS

if TYPE_CHECKING:
    from sully.views.fleet import FleetView

T = TypeVar("T")

ALL_EFFECTS = EvictionPolicy(effects=EVICTING_EFFECTS)
"""Whoever stored a taint that asks budgets had them switched on, so all effects count."""
AS_KUBERNETES = EvictionPolicy(compat=Compat.KUBERNETES)
"""How the controller evicts that Kubernetes brings along."""
Resource = tuple[str, str]
"""A group and a plural: the same resource, as whatever type it is read."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A kind that is missing from a snapshot, and why."""

    kind: Kind[Any]
    why: Literal["not served", "not allowed", "not in the file"]
    message: str = ""
    but: str = ""
    """The one namespace of which it has all; empty: it has nothing."""


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects of one kind, as the type they were read as."""

    kind: Kind[Any]
    items: Sequence[Any]


@dataclass(frozen=True, slots=True)
class StoppedClock:
    """A clock that shows one moment for ever; nobody can wait for it."""

    moment: datetime

    def now(self) -> datetime:
        """Return the moment."""
        return self.moment

    def monotonic(self) -> float:
        """Return no time at all."""
        return 0.0

    async def sleep(self, seconds: float) -> None:
        """Refuse: the moment would never come."""
        raise RuntimeError(f"a stopped clock cannot wait {seconds} s")


class Snapshot:
    """What there was at one moment."""

    def __init__(
        self,
        objects: Iterable[Objects],
        *,
        taken: datetime,
        gaps: Sequence[Gap] = (),
        features: Features | None = None,
    ) -> None:
        self.taken = taken
        self.gaps = tuple(gaps)
        patches = self.gap(PATCHES)
        # A server without our kinds counts slices as Kubernetes does.
        ours = patches is None or patches.why != "not served"
        self.features = features or Features(pool_owners=ours)
        self._objects: dict[Resource, Objects] = {_resource(each.kind): each for each in objects}
        self._copies: dict[Kind[Any], Cache[Any]] = {}

    # Reading

    def of(self, kind: Kind[T]) -> Cache[T]:
        """Return the objects of a kind, as the type that is asked for; none if it is not loaded."""
        found = self._copies.get(kind)
        if found is None:
            found = self._copies[kind] = Cache(kind)
            known = self._objects.get(_resource(kind))
            found.replace(_read_as(kind, known) if known is not None else ())
        return found

    def get(self, kind: Kind[T], key: Key) -> T | None:
        """Return one object, or None."""
        return self.of(kind).get(key)

    def gap(self, kind: Kind[Any]) -> Gap | None:
        """Return why a kind is missing, or None if it is not."""
        wanted = _resource(kind)
        return next((each for each in self.gaps if _resource(each.kind) == wanted), None)

    @cached_property
    def inventory(self) -> Inventory:
        """Return the devices as they count."""
        return Inventory(
            slices=self.of(SLICES),
            classes=self.of(CLASSES),
            rules=self.of(RULES),
            patches=self.of(PATCHES),
            features=self.features,
        )

    @cached_property
    def usage(self) -> Usage:
        """Return who holds what."""
        return Usage(pods=self.of(PODS), claims=self.of(CLAIMS))

    @property
    def remembers(self) -> bool:
        """Report whether the server has records at all; they may be hidden from who asks."""
        gap = self.gap(TAINT_RECORDS)
        return gap is None or gap.why != "not served"

    @property
    def policy(self) -> EvictionPolicy:
        """Return how pods are made to leave here; our evictor keeps records."""
        return ALL_EFFECTS if self.remembers else AS_KUBERNETES

    @cached_property
    def exposures(self) -> Exposures:
        """Return who is on which tainted device, at the moment of the snapshot."""
        clock = StoppedClock(self.taken)
        return Exposures(self.inventory, self.usage, clock=clock, policy=self.policy)

    @cached_property
    def fleet(self) -> FleetView:
        """Return the clusters and placements, as this hub places where no flag says otherwise."""
        return self.fleet_with()

    def fleet_with(
        self, *, toleration_seconds: int | None = None, removals_per_minute: int | None = None
    ) -> FleetView:
        """Return the clusters and placements, as a hub with such flags places.

        One that does not have our kinds places as Open Cluster Management does.
        """
        # Late imports: only few questions are about clusters.
        from sully.domain.placement.options import OCM, PlacementOptions
        from sully.views.fleet import Caches, FleetView
        from sully.views.fleet_kinds import (
            BINDINGS,
            CLUSTERS,
            DECISIONS,
            PLACEMENTS,
            POLICIES,
            SCORES,
            SETS,
        )

        caches = Caches(
            clusters=self.of(CLUSTERS),
            sets=self.of(SETS),
            bindings=self.of(BINDINGS),
            placements=self.of(PLACEMENTS),
            decisions=self.of(DECISIONS),
            scores=self.of(SCORES),
        )
        gap = self.gap(POLICIES)
        ours = gap is None or gap.why == "not allowed"
        options = (
            PlacementOptions(
                health_toleration_seconds=toleration_seconds,
                removals_per_minute=removals_per_minute,
            )
            if ours
            else OCM
        )
        return FleetView(caches, clock=StoppedClock(self.taken), options=options)

    # Trying

    def with_objects(self, kind: Kind[T], *objects: T) -> Snapshot:
        """Return the same with these objects added, or put in the place of those of their name."""
        fresh = {key_of(each): each for each in objects}
        kept = self._others(kind, fresh.keys())
        return self._changed(kind, [*kept, *fresh.values()])

    def without(self, kind: Kind[Any], *keys: Key) -> Snapshot:
        """Return the same without these objects."""
        return self._changed(kind, self._others(kind, keys))

    def _others(self, kind: Kind[T], keys: Collection[Key]) -> list[T]:
        copy = self.of(kind)
        return [each for each in copy.values() if key_of(each) not in keys]

    def _changed(self, kind: Kind[Any], items: Sequence[Any]) -> Snapshot:
        others = [each for where, each in self._objects.items() if where != _resource(kind)]
        return Snapshot(
            [*others, Objects(kind, items)],
            taken=self.taken,
            gaps=[each for each in self.gaps if _resource(each.kind) != _resource(kind)],
            features=self.features,
        )


def _resource(kind: Kind[Any]) -> Resource:
    return kind.group, kind.plural


def _read_as(kind: Kind[T], known: Objects) -> Sequence[T]:
    if known.kind.type == kind.type:
        return known.items
    if known.kind.untyped:
        return [from_body(kind, cast("Mapping[str, Any]", each)) for each in known.items]
    try:
        return [msgspec.convert(each, kind.type, from_attributes=True) for each in known.items]
    except msgspec.ValidationError as error:
        raise unreadable(kind, error) from error

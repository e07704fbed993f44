"""What is tried out: objects that are put into the cluster, or taken away from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sully.api.resource.annotations import CREATED_BY, expiry
from sully.api.resource.types import (
    DeviceTaint,
    DeviceTaintRule,
    ResourceSlice,
    ResourceSlicePatch,
)
from sully.client.informers.cache import Cache
from sully.client.objects import key_of
from sully.client.transport import Key, Kind
from sully.domain.workloads.revisions import LAST_APPLIED
from sully.planning.timeline import Action
from sully.planning.world import World
from sully.views.fleet_kinds import BINDINGS, CLUSTERS, PLACEMENTS, POLICIES, SETS
from sully.views.kinds import CLASSES, PATCHES, RULES, SLICES

ABOUT_DEVICES: tuple[Kind[Any], ...] = (RULES, PATCHES, SLICES, CLASSES)
ABOUT_FLEET: tuple[Kind[Any], ...] = (CLUSTERS, PLACEMENTS, BINDINGS, SETS, POLICIES)
"""The kinds that a change can be about; a plan is about one sort or the other."""


@dataclass(frozen=True, slots=True)
class Put:
    """An object that is created or changed."""

    kind: Kind[Any]
    obj: Any

    @property
    def key(self) -> Key:
        """Return which object it is."""
        return key_of(self.obj)


@dataclass(frozen=True, slots=True)
class Remove:
    """An object that is deleted."""

    kind: Kind[Any]
    key: Key


Change = Put | Remove
_ENDING = frozenset((RULES.plural, PATCHES.plural))
"""What is deleted at the time that it names itself."""
_SOON = timedelta(minutes=1)
"""What is stamped later than this was meant to begin later."""


def is_about_fleet(change: Change) -> bool:
    """Report whether a change is about clusters and placements, not about devices."""
    return any(change.kind.plural == each.plural for each in ABOUT_FLEET)


def apply(world: World, change: Change, on_end: Action = lambda: None) -> None:
    """Let a change happen to a world, and put the end that it names itself on the agenda."""
    copy = copies(world)[change.kind.plural]
    if isinstance(change, Remove):
        world.remove(copy, change.key)
        return
    _let_expire(world, copy, world.put(copy, change.obj), on_end)


def _let_expire(world: World, copy: Cache[Any], obj: Any, on_end: Action = lambda: None) -> None:
    end = expiry(obj.metadata.annotations) if copy.kind.plural in _ENDING else None
    if end is None:
        return
    version, key = obj.metadata.resource_version, key_of(obj)

    def lift() -> None:
        known = copy.get(key)
        # Another state of it has an end of its own.
        if known is not None and known.metadata.resource_version == version:
            on_end()
            world.remove(copy, key)

    world.timeline.at(end, lift)


def begins(changes: Iterable[Change], taken: datetime) -> datetime:
    """Return when the changes happen: a server may have stamped a taint after we looked."""
    puts = [each.obj for each in changes if isinstance(each, Put)]
    times = [taint.time_added for obj in puts for taint in _taints(obj)]
    late = [each for each in times if each is not None and taken < each <= taken + _SOON]
    return max(late, default=taken)


def _taints(obj: Any) -> Iterator[DeviceTaint]:
    """Yield the taints that an object sets."""
    if isinstance(obj, DeviceTaintRule):
        yield obj.spec.taint
    elif isinstance(obj, ResourceSlicePatch):
        yield from obj.spec.devices.taints
    elif isinstance(obj, ResourceSlice):
        yield from (taint for device in obj.spec.devices for taint in device.taints)
        yield from (each.taint for each in obj.spec.taints)


def let_expire(world: World) -> None:
    """Put the ends of all that is there on the agenda."""
    for copy in copies(world).values():
        for obj in list(copy.values()):
            _let_expire(world, copy, obj)


def copies(world: World) -> Mapping[str, Cache[Any]]:
    """Return the collections that a change may be about, by plural."""
    return {
        RULES.plural: world.rules,
        PATCHES.plural: world.patches,
        SLICES.plural: world.slices,
        CLASSES.plural: world.classes,
    }


def told(change: Change, known: Any | None) -> str:
    """Say what a change does to what is known under its name, in a few words."""
    if isinstance(change, Remove):
        return f"{change.kind.kind}/{change.key} deleted"
    if known is None:
        return f"{change.kind.kind}/{change.key} created"
    same = _said(known) == _said(change.obj)
    return f"{change.kind.kind}/{change.key} {'unchanged' if same else 'changed'}"


def _said(obj: Any) -> tuple[Any, ...]:
    """Return what people write in an object; the rest is a server's."""
    theirs = (LAST_APPLIED, CREATED_BY)
    notes = {name: each for name, each in obj.metadata.annotations.items() if name not in theirs}
    return obj.spec, obj.metadata.labels, notes

"""Answers for who may not see what he asks about, from what he may see of his own namespace."""

from __future__ import annotations

from collections.abc import Callable

from sully.api.cluster.types import PLACEMENT_LABEL
from sully.api.sully.types import EvictionRecord
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.explaining.partial import (
    partly_cluster,
    partly_device,
    partly_placement,
    partly_rule,
)
from sully.domain.explaining.story import Explanation
from sully.explaining.devices import only, remembered
from sully.explaining.rules import kept_off
from sully.explaining.world import World
from sully.views.devices.name_index import Names
from sully.views.fleet_kinds import DECISIONS, PLACEMENTS

Partly = Callable[[World, Key, str], Explanation | None]
"""Answers from a world, about an object, with what there is in a namespace."""


def rule(world: World, key: Key, namespace: str) -> Explanation:
    """Tell what a rule does in a namespace."""

    def because_of_it(each: EvictionRecord) -> bool:
        wanted = ("DeviceTaintRule", key.name)
        return any((cause.kind, cause.name) == wanted for cause in each.spec.causes)

    return partly_rule(
        key.name,
        namespace,
        kept_off=tuple(kept_off(world, key.name)),
        records=world.evictions(because_of_it),
        now=world.now,
    )


def device(world: World, key: Key, namespace: str) -> Explanation:
    """Tell what a namespace has, or had, of a device."""
    held = list(world.snapshot.usage.held(Names()))
    mine = only((each.device for each in held), key.name)
    _, records = remembered(world, str(mine) if mine is not None else key.name)
    return partly_device(
        key.name,
        namespace,
        holdings=tuple(world.holding(x.claim, x.result) for x in held if x.device == mine),
        records=records,
        now=world.now,
    )


def placement(world: World, key: Key, namespace: str) -> Explanation | None:
    """Tell what a placement itself says."""
    del namespace
    found = world.snapshot.get(PLACEMENTS, key)
    return partly_placement(found, _decided(world, key), world.now) if found is not None else None


def cluster(world: World, key: Key, namespace: str) -> Explanation:
    """Tell which placements of a namespace have a cluster."""
    keys = sorted(key_of(each) for each in world.snapshot.of(PLACEMENTS).values())
    found = [str(each) for each in keys if key.name in _decided(world, each)]
    return partly_cluster(key.name, namespace, found)


def _decided(world: World, placement: Key) -> tuple[str, ...]:
    names = [
        one.cluster_name
        for each in world.snapshot.of(DECISIONS).values()
        if each.metadata.namespace == placement.namespace
        and each.metadata.labels.get(PLACEMENT_LABEL) == placement.name
        for one in each.status.decisions
    ]
    return tuple(sorted(names))

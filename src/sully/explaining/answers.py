"""Questions that can be asked, by the kind of object they are about, and who answers them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sully.client.transport import Key, Kind
from sully.controllers.clusters.kinds import POLICIES
from sully.domain.explaining.story import Explanation
from sully.explaining import devices, fleet, pods, rules
from sully.explaining.world import World
from sully.views.fleetkinds import BINDINGS, CLUSTERS, DECISIONS, PLACEMENTS, SETS
from sully.views.kinds import CLAIMS, PATCHES, RULES, SLICES
from sully.views.snapshotkinds import FLEET, HISTORY, SCHEDULABLE_PODS, SCHEDULING

Answer = Callable[[World, Key], Explanation | None]


@dataclass(frozen=True, slots=True)
class Question:
    """A kind of question."""

    kind: str
    answer: Answer
    reads: tuple[Kind[Any], ...]
    needs: tuple[Kind[Any], ...]
    """Without these kinds there is no answer."""
    namespaced: bool = False


def _device(world: World, key: Key) -> Explanation | None:
    found = devices.find(world, key.name)
    return devices.device(world, found) if found is not None else None


_DEVICES = (*SCHEDULING, *HISTORY)
_FLEET = (*FLEET, POLICIES)
_PLACED = (CLUSTERS, SETS, BINDINGS, PLACEMENTS, DECISIONS)

QUESTIONS = {
    "pod": Question("Pod", pods.pod, _DEVICES, (SCHEDULABLE_PODS, CLAIMS), namespaced=True),
    "claim": Question(
        "ResourceClaim", pods.claim, _DEVICES, (CLAIMS, SCHEDULABLE_PODS), namespaced=True
    ),
    "device": Question("Device", _device, _DEVICES, (SLICES, CLAIMS, SCHEDULABLE_PODS)),
    "rule": Question(
        "DeviceTaintRule",
        lambda world, key: rules.rule(world, key.name),
        _DEVICES,
        (RULES, SLICES, CLAIMS, SCHEDULABLE_PODS),
    ),
    "patch": Question(
        "ResourceSlicePatch",
        lambda world, key: rules.patch(world, key.name),
        _DEVICES,
        (PATCHES, SLICES, CLAIMS, SCHEDULABLE_PODS),
    ),
    "placement": Question(
        "Placement",
        lambda world, key: fleet.placement(world.hub, key),
        _FLEET,
        _PLACED,
        namespaced=True,
    ),
    "cluster": Question(
        "ManagedCluster",
        lambda world, key: fleet.cluster(world.hub, key.name),
        _FLEET,
        _PLACED,
    ),
}

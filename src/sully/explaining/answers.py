"""Questions that can be asked, by the kind of object they are about, and who answers them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sully.client.transport import Key, Kind
from sully.domain.explaining.story import Explanation
from sully.explaining import claims, devices, fleet, partial, pods, rules
from sully.explaining.kinds import ABOUT_DEVICES, SEEN_PODS
from sully.explaining.world import World
from sully.views.fleet_kinds import BINDINGS, CLUSTERS, DECISIONS, PLACEMENTS, SETS
from sully.views.kinds import CLAIMS, PATCHES, RULES, SLICES
from sully.views.snapshot.kinds import FLEET

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
    partly: partial.Partly | None = None
    """Answers who may not see all of the kinds that are needed."""


def _device(world: World, key: Key) -> Explanation | None:
    found = devices.find(world, key.name)
    return devices.device(world, found) if found is not None else devices.gone(world, key.name)


_PLACED = (CLUSTERS, SETS, BINDINGS, PLACEMENTS, DECISIONS)

QUESTIONS = {
    "pod": Question("Pod", pods.pod, ABOUT_DEVICES, (SEEN_PODS, CLAIMS), namespaced=True),
    "claim": Question(
        "ResourceClaim", claims.claim, ABOUT_DEVICES, (CLAIMS, SEEN_PODS), namespaced=True
    ),
    "device": Question(
        "Device",
        _device,
        ABOUT_DEVICES,
        (SLICES, CLAIMS, SEEN_PODS),
        partly=partial.device,
    ),
    "rule": Question(
        "DeviceTaintRule",
        lambda world, key: rules.rule(world, key.name),
        ABOUT_DEVICES,
        (RULES, SLICES, CLAIMS, SEEN_PODS),
        partly=partial.rule,
    ),
    "patch": Question(
        "ResourceSlicePatch",
        lambda world, key: rules.patch(world, key.name),
        ABOUT_DEVICES,
        (PATCHES, SLICES, CLAIMS, SEEN_PODS),
    ),
    "placement": Question(
        "Placement",
        lambda world, key: fleet.placement(world.hub, key),
        FLEET,
        _PLACED,
        namespaced=True,
        partly=partial.placement,
    ),
    "cluster": Question(
        "ManagedCluster",
        lambda world, key: fleet.cluster(world.hub, key.name),
        FLEET,
        _PLACED,
        partly=partial.cluster,
    ),
}

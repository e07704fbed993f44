"""A world with managed clusters and placements, and the placement controller in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import manifests
from controllers.recording_transport import RecordingTransport
from controllers.world import NAMESPACES, Make, Obj, World
from sully.api.cluster.types import PLACEMENT_LABEL, SET_LABEL
from sully.client.events import EVENTS
from sully.client.transport import Key, Kind
from sully.controllers.framework.manager import Manager
from sully.controllers.placement.controller import NAME, PlacementController
from sully.controllers.placement.settings import PlacementSettings, placement_options
from sully.controllers.placement.wiring import make_placement
from sully.machinery.cel import COST_BUDGET
from sully.machinery.compat import Compat
from sully.runtime.metrics import Metrics
from sully.views import fleet_kinds as kinds

CLUSTERS: Kind[Obj] = kinds.CLUSTERS.read_as(dict)
SETS: Kind[Obj] = kinds.SETS.read_as(dict)
BINDINGS: Kind[Obj] = kinds.BINDINGS.read_as(dict)
PLACEMENTS: Kind[Obj] = kinds.PLACEMENTS.read_as(dict)
DECISIONS: Kind[Obj] = kinds.DECISIONS.read_as(dict)
SCORES: Kind[Obj] = kinds.SCORES.read_as(dict)
TEAM, SET = "team", "prod"
AT = Key(TEAM, "web")


@dataclass
class Placing:
    """How the controller is made, and what it did."""

    strict: bool
    """Whether placements behave as in OCM."""
    settings: PlacementSettings = field(default_factory=PlacementSettings)
    transport: RecordingTransport | None = None
    metrics: Metrics = field(default_factory=Metrics)
    units: int = COST_BUDGET
    """What evaluating expressions may cost in one pass."""

    def make(self) -> Make:
        def made(world: World, manager: Manager) -> PlacementController:
            self.transport = self.transport or RecordingTransport(world, NAME)
            return make_placement(
                manager,
                env=manager.env(self.transport, NAME),
                metrics=self.metrics,
                options=placement_options(
                    self.settings, Compat.KUBERNETES if self.strict else Compat.SULLY
                ),
                units=self.units,
            )

        return made

    @asynccontextmanager
    async def placed(self, world: World, **spec: Any) -> AsyncIterator[None]:
        """Run the controller as long as the block lasts, with a placement `web` that is decided."""
        async with world.controlled(self.make()):
            await place(world, **spec)
            await world.settle()
            yield

    async def place(self, world: World, **spec: Any) -> None:
        """Run the controller until a placement `web` is decided, and no longer."""
        async with self.placed(world, **spec):
            return

    def writes(self) -> list[str]:
        """Return what was written since the last time a user asked."""
        assert self.transport is not None
        result, self.transport.calls = self.transport.calls, []
        return result


async def prepare(world: World, *clusters: str, **labels: Any) -> None:
    """Make a namespace that may use a set, and clusters in it."""
    await world.admin.create(NAMESPACES, {"metadata": {"name": TEAM}})
    await make_set(world, SET)
    await bind(world, SET)
    for name in clusters:
        await cluster(world, name, **labels)


async def make_set(world: World, name: str, **selector: Any) -> None:
    await world.admin.create(SETS, manifests.cluster_set(name, **selector))


async def bind(world: World, name: str, namespace: str = TEAM) -> None:
    await world.admin.create(BINDINGS, manifests.set_binding(name, namespace))


async def cluster(
    world: World,
    name: str,
    *taints: Obj,
    member: str = SET,
    status: Obj | None = None,
    finalizers: tuple[str, ...] = (),
    **labels: str,
) -> None:
    """Make a cluster; what comes with its status is written as an agent would."""
    labels = {SET_LABEL: member, **labels}
    body = manifests.cluster(name, *taints, labels=labels, finalizers=list(finalizers))
    await world.admin.create(CLUSTERS, body)
    if status:
        await world.admin.patch(CLUSTERS, Key("", name), {"status": status}, subresource="status")


async def taint(world: World, name: str, *taints: Obj) -> None:
    await world.admin.patch(CLUSTERS, Key("", name), {"spec": {"taints": list(taints)}})


async def report(world: World, name: str, status: str = "True") -> None:
    """Set whether a cluster is available; the server adds the taint of one that is not."""
    reported = {"type": "ManagedClusterConditionAvailable", "reason": "Test", "message": ""}
    reported |= {"status": status, "lastTransitionTime": "2030-01-01T12:00:00Z"}
    patch = {"status": {"conditions": [reported]}}
    await world.admin.patch(CLUSTERS, Key("", name), patch, subresource="status")


def no_select(key: str, value: str = "", effect: str = "NoSelect") -> Obj:
    return {"key": key, "effect": effect} | ({"value": value} if value else {})


async def place(world: World, name: str = "web", namespace: str = TEAM, **spec: Any) -> None:
    await world.admin.create(PLACEMENTS, manifests.placement(name, spec, namespace))


async def respec(world: World, name: str = "web", **spec: Any) -> None:
    await world.admin.patch(PLACEMENTS, Key(TEAM, name), {"spec": spec})


async def decided(world: World, name: str = "web") -> list[list[str]]:
    """Return the clusters of each decision of a placement, in the order of their names."""
    page = await world.admin.list(DECISIONS, TEAM)
    mine = [item for item in page.items if item["metadata"]["labels"].get(PLACEMENT_LABEL) == name]
    mine.sort(key=lambda item: int(item["metadata"]["name"].rpartition("-")[2]))
    return [named(item) for item in mine]


def named(decision: Obj) -> list[str]:
    return [one["clusterName"] for one in (decision.get("status") or {}).get("decisions") or ()]


async def status(world: World, name: str = "web") -> Obj:
    placement = await world.admin.get(PLACEMENTS, Key(TEAM, name))
    result: Obj = placement.get("status") or {}
    return result


async def condition(world: World, type_: str, name: str = "web") -> tuple[str, str, str]:
    """Return status, reason and message of a condition."""
    for condition in (await status(world, name)).get("conditions") or ():
        if condition["type"] == type_:
            return condition["status"], condition["reason"], condition["message"]
    return "", "", ""


async def events(world: World) -> list[tuple[str, str, str, str]]:
    """Return type, reason, action and message of all events about placements, as they came."""
    page = await world.admin.list(EVENTS, TEAM)
    items = [item for item in page.items if item["involvedObject"]["kind"] == "Placement"]
    items.sort(key=lambda item: int(item["metadata"]["name"].rpartition(".")[2], 16))
    return [(item["type"], item["reason"], item["action"], item["message"]) for item in items]

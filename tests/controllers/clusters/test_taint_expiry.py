"""Taints of clusters that end by themselves."""

from __future__ import annotations

from datetime import timedelta

import manifests
from controllers.clusters.hubbing import CLUSTERS, HubWorld
from controllers.world import Make, World
from sully.api.cluster.taints.history import (
    TAINT_HISTORY,
    TaintEntry,
    read_history,
    write_history,
)
from sully.client.events import EVENTS
from sully.client.transport import Key
from sully.controllers.clusters.taint_expiry import ClusterTaintExpiryController
from sully.controllers.framework.controller import Controller
from sully.controllers.framework.manager import Manager
from sully.machinery.formats.timestamps import format_time
from sully.views import fleet_kinds

NAME = "taint-expiry-controller"
TAINT = {"key": "maintenance", "effect": "NoSelect"}
OTHER = {"key": "other", "effect": "NoSelect"}


def make() -> Make:
    def made(world: World, manager: Manager) -> Controller:
        env = manager.env(world.transport(NAME), NAME)
        return ClusterTaintExpiryController(manager.informer(fleet_kinds.CLUSTERS), env=env)

    return made


async def taint(hub: HubWorld, seconds: float) -> None:
    """Create a cluster with two taints, one of which expires."""
    await hub.namespace("default")
    now = hub.clock.now().replace(microsecond=0)
    entry = TaintEntry(
        time=now,
        event="tainted",
        key="maintenance",
        effect="NoSelect",
        expires_at=format_time(hub.clock.now() + timedelta(seconds=seconds)),
    )
    history = {TAINT_HISTORY: write_history([entry])}
    body = manifests.cluster("c1", TAINT, OTHER, annotations=history)
    await hub.admin.create(CLUSTERS, body)


async def keys(hub: HubWorld) -> list[str]:
    await hub.settle()
    cluster = await hub.admin.get(CLUSTERS, Key("", "c1"))
    return [taint["key"] for taint in cluster["spec"].get("taints", ())]


async def history(hub: HubWorld) -> list[tuple[str, str, str]]:
    cluster = await hub.admin.get(CLUSTERS, Key("", "c1"))
    entries = read_history(cluster["metadata"]["annotations"])
    return [(entry.event, entry.key, entry.by) for entry in entries]


async def test_a_taint_is_removed_exactly_at_its_time(hub: HubWorld) -> None:
    await taint(hub, 3600)

    async with hub.controlled(make()):
        await hub.settle()
        hub.clock.advance(3599)
        assert await keys(hub) == ["maintenance", "other"]
        hub.clock.advance(1)
        assert await keys(hub) == ["other"]
        (event,) = (await hub.admin.list(EVENTS)).items

    assert (event["reason"], event["involvedObject"]["name"]) == ("Expired", "c1")
    assert event["message"] == "Removed the taint maintenance:NoSelect because it expired"
    assert (await history(hub))[-1] == ("untainted", "maintenance", "expiry")


async def test_a_taint_that_is_set_again_has_no_end(hub: HubWorld) -> None:
    await taint(hub, 3600)

    _, other = (await hub.admin.get(CLUSTERS, Key("", "c1")))["spec"]["taints"]

    async with hub.controlled(make()):
        await hub.admin.patch(CLUSTERS, Key("", "c1"), {"spec": {"taints": [other]}})
        assert await keys(hub) == ["other"]
        await hub.admin.patch(CLUSTERS, Key("", "c1"), {"spec": {"taints": [other, TAINT]}})
        await hub.settle()
        hub.clock.advance(3601)
        assert await keys(hub) == ["other", "maintenance"]

"""In whatever order things come, and whenever the hub starts, the end is the same."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

import manifests
from controllers.clusters.hubbing import BINDINGS, CLUSTERS, POLICY, SETS, HubWorld
from controllers.world import Step, World
from sully.client.transport import Key
from sully.machinery.formats.timestamps import format_time

SET_LABEL = "cluster.open-cluster-management.io/clusterset"


async def cluster(world: World) -> None:
    body = manifests.cluster("c1", accepted=True, labels={SET_LABEL: "s1"})
    await world.admin.create(CLUSTERS, body)
    status = {
        "type": "ManagedClusterConditionAvailable",
        "status": "False",
        "reason": "Test",
        "message": "",
        "lastTransitionTime": format_time(world.clock.now()),
    }
    patch = {"status": {"conditions": [status]}}
    await world.admin.patch(CLUSTERS, Key("", "c1"), patch, subresource="status")


async def set_(world: World) -> None:
    await world.admin.create(SETS, manifests.cluster_set("s1"))


async def binding(world: World) -> None:
    await world.admin.create(BINDINGS, manifests.set_binding("s1", "a"))


async def policy(world: World) -> None:
    rule = {
        "condition": {"type": "ManagedClusterConditionAvailable", "status": "False"},
        "taint": {"key": "sick", "effect": "NoSelectIfNew"},
    }
    await world.admin.create(POLICY, manifests.cluster_policy("p", rule))


STEPS: tuple[Step, ...] = (cluster, set_, binding, policy)
ORDERS = [
    pytest.param(order, start, id=f"{start} {' '.join(step.__name__ for step in order)}")
    for order in permutations(STEPS)
    for start in (0, 2, 4)
]


async def _state(world: HubWorld) -> dict[str, Any]:
    sets = await world.admin.get(SETS, Key("", "s1"))
    bound = await world.admin.get(BINDINGS, Key("a", "s1"))
    policies = await world.admin.get(POLICY, Key("", "p"))
    return {
        "taints": sorted(await world.taints("c1")),
        "accepted": await world.status("c1", "HubAcceptedManagedCluster"),
        "set": sets["status"]["conditions"][0]["message"],
        "bound": bound["status"]["conditions"][0]["status"],
        "policy": policies["status"]["conditions"][0]["message"],
    }


@pytest.mark.parametrize(("order", "start"), ORDERS)
async def test_orders(order: tuple[Step, ...], start: int) -> None:
    world = HubWorld()
    await world.namespace("a")
    for step in order[:start]:
        await step(world)
    async with world.hub():
        for step in order[start:]:
            await step(world)
        await world.calm()
        await world.pass_time(3)

        assert await _state(world) == {
            "taints": [
                "cluster.open-cluster-management.io/unavailable:NoSelect",
                "sick:NoSelectIfNew",
            ],
            "accepted": "True",
            "set": "1 ManagedClusters selected",
            "bound": "True",
            "policy": "1 clusters selected, 1 tainted.",
        }

"""Aggregated cluster roles follow those they gather from, in every order of events."""

from typing import Any

import pytest

from controllers.world import Step, World, orders, play
from sully.client.transport import Key
from sully.controllers.aggregation import CLUSTER_ROLES, AggregationController
from sully.controllers.framework.manager import Manager

Obj = dict[str, Any]


def make(world: World, manager: Manager) -> AggregationController:
    return AggregationController(
        roles=manager.informer(CLUSTER_ROLES), transport=world.transport(AggregationController.name)
    )


def _role(name: str, verb: str = "", labels: str = "", selects: str = "") -> Obj:
    rule = {"apiGroups": ["x.dev"], "resources": ["things"], "verbs": [verb]}
    role: Obj = {
        "metadata": {"name": name, "labels": dict.fromkeys(labels.split(), "yes")},
        "rules": [rule] if verb else [],
    }
    if selects:
        selector = {"matchLabels": {selects: "yes"}}
        role["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    return role


async def create_sum(world: World) -> None:
    await world.admin.create(CLUSTER_ROLES, _role("sum", labels="more", selects="part"))


async def create_total(world: World) -> None:
    await world.admin.create(CLUSTER_ROLES, _role("total", "lost", selects="more"))


async def create_get(world: World) -> None:
    await world.admin.create(CLUSTER_ROLES, _role("a", "get", labels="part"))


async def create_list(world: World) -> None:
    await world.admin.create(CLUSTER_ROLES, _role("b", "list", labels="part"))


async def rules(world: World, name: str) -> list[str]:
    role = await world.admin.get(CLUSTER_ROLES, Key("", name))
    return [rule["verbs"][0] for rule in role["rules"] or ()]


@pytest.mark.parametrize("steps", orders(create_sum, create_total, create_get, create_list))
@pytest.mark.parametrize("start", [0, 4])
async def test_rules_travel(world: World, steps: tuple[Step, ...], start: int) -> None:
    await play(world, steps, make, start=start, pauses=False)

    assert await rules(world, "sum") == ["get", "list"]
    assert await rules(world, "total") == ["get", "list"]


async def test_rules_go_with_the_role_they_came_from(world: World) -> None:
    async with world.controlled(make):
        for step in (create_sum, create_total, create_get, create_list):
            await step(world)
        await world.settle()
        await world.admin.delete(CLUSTER_ROLES, Key("", "a"))
        await world.settle()
        unlabelled = {"metadata": {"labels": {"part": None}}}
        after_one = await rules(world, "total")
        await world.admin.patch(CLUSTER_ROLES, Key("", "b"), unlabelled)
        await world.settle()

        assert [after_one, await rules(world, "total")] == [["list"], []]


async def test_what_is_written_by_hand_is_lost(world: World) -> None:
    async with world.controlled(make):
        await create_sum(world)
        await create_get(world)
        await world.settle()
        patch = {"rules": _role("x", "escalate")["rules"]}
        await world.admin.patch(CLUSTER_ROLES, Key("", "sum"), patch)
        await world.settle()

        assert await rules(world, "sum") == ["get"]


async def test_nothing_is_written_when_nothing_changes(world: World) -> None:
    async with world.controlled(make):
        await create_sum(world)
        await create_get(world)
        await world.settle()
        before = world.store.revision
        patch = {"metadata": {"annotations": {"note": "x"}}}
        await world.admin.patch(CLUSTER_ROLES, Key("", "a"), patch)
        await world.settle()

        assert world.store.revision == before + 1

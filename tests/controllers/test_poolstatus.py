"""Requests for the state of pools: answered once, and deleted after a while."""

from __future__ import annotations

from typing import Any

import manifests
from controllers.world import Obj, World
from manifests import DRIVER, gpus, slice_
from sully.client.transport import Key, Kind
from sully.controllers.framework.controller import Controller
from sully.controllers.framework.manager import Manager
from sully.controllers.poolstatus import PoolStatusController
from sully.views import kinds
from sully.views.devices.inventory import Inventory

SLICES: Kind[Obj] = kinds.SLICES.read_as(dict)
RULES: Kind[Obj] = kinds.RULES.read_as(dict)
REQUESTS: Kind[Obj] = kinds.POOL_STATUS_REQUESTS.read_as(dict)


def answering(world: World, manager: Manager) -> Controller:
    inventory = Inventory(
        slices=manager.informer(kinds.SLICES),
        classes=manager.informer(kinds.CLASSES),
        rules=manager.informer(kinds.RULES),
        patches=manager.informer(kinds.PATCHES),
    )
    return PoolStatusController(
        requests=manager.informer(kinds.POOL_STATUS_REQUESTS),
        claims=manager.informer(kinds.CLAIMS),
        inventory=inventory,
        transport=world.admin,
        clock=world.clock,
    )


async def ask(world: World, name: str = "x", driver: str = DRIVER, **spec: Any) -> None:
    body = manifests.body("ResourcePoolStatusRequest", name, {"driver": driver, **spec})
    await world.admin.create(REQUESTS, body)


async def answer(world: World, name: str = "x") -> Any:
    return (await world.admin.get(REQUESTS, Key("", name))).get("status")


async def names(world: World) -> list[str]:
    return [one["metadata"]["name"] for one in (await world.admin.list(REQUESTS)).items]


async def test_pools_of_the_driver_are_reported(world: World) -> None:
    await world.admin.create(SLICES, slice_("a", "node-1", *gpus(3)))
    await world.admin.create(SLICES, slice_("b", "node-2", *gpus(2)))
    taint = {"key": "example.com/bad", "effect": "NoSchedule"}
    selector = {"pool": "node-1", "device": "gpu-1"}
    rule = {"deviceSelector": selector, "taint": taint}
    await world.admin.create(RULES, {"metadata": {"name": "r"}, "spec": rule})
    await ask(world)
    await ask(world, "one", poolName="node-2")
    await ask(world, "other", driver="other.example.com")

    async with world.controlled(answering):
        await world.settle()

    status = await answer(world)
    rows = [(p["poolName"], p["totalDevices"], p["unavailableDevices"]) for p in status["pools"]]
    assert rows == [("node-1", 3, 1), ("node-2", 2, 0)]
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"]) == ("Complete", "True")
    assert condition["reason"] == "CalculationComplete"
    assert condition["message"] == "Calculated status for 2 pools"
    assert [p["poolName"] for p in (await answer(world, "one"))["pools"]] == ["node-2"]
    assert (await answer(world, "other"))["poolCount"] == 0


async def test_an_incomplete_pool_is_waited_for(world: World) -> None:
    await world.admin.create(SLICES, slice_("a", "node-1", count=2))
    await ask(world)

    async with world.controlled(answering):
        await world.settle()
        assert await answer(world) is None
        await world.admin.create(SLICES, slice_("b", "node-1", *gpus(1), count=2))
        await world.pass_time(60, step=1)

    assert (await answer(world))["pools"][0]["resourceSliceCount"] == 2


async def test_an_answer_stays_for_an_hour(world: World) -> None:
    await world.admin.create(SLICES, slice_("a", "node-1", *gpus(1)))
    await ask(world)

    async with world.controlled(answering):
        await world.settle()
        first = await answer(world)
        await world.admin.create(SLICES, slice_("b", "node-2", *gpus(1)))
        await world.pass_time(3500, step=500)
        assert await answer(world) == first
        await world.pass_time(200, step=100)

    assert await names(world) == []


async def test_a_request_without_an_answer_is_deleted_after_a_day(world: World) -> None:
    await world.admin.create(SLICES, slice_("a", "node-1", count=2))
    await ask(world)

    await world.pass_time(25 * 3600, step=3600)
    async with world.controlled(answering):
        await world.settle()

    assert await names(world) == []

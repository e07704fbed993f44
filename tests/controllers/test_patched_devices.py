"""Attributes that patches change decide what pods get; what they have, they keep."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import manifests
from controllers.scheduling.placing import (
    CLAIMS,
    REFUSED,
    held,
    prepare,
    wanting,
    where,
)
from controllers.world import Obj, World, running
from manifests import DRIVER
from sully.client.transport import Key, Kind
from sully.controllers.framework.manager import Manager
from sully.controllers.scheduling.wiring import add_scheduler
from sully.runtime.ids import Ids
from sully.scheduler.options import SchedulerOptions
from sully.views import kinds
from sully.views.devices.inventory import Inventory

PATCHES: Kind[Obj] = kinds.PATCHES.read_as(dict)
GOOD = [{"cel": {"expression": 'has(device.attributes["acme.com"].good)'}}]


@asynccontextmanager
async def scheduling(world: World) -> AsyncIterator[None]:
    manager = Manager(world.transport("informers"), clock=world.clock)
    inventory = Inventory(
        slices=manager.informer(kinds.SLICES),
        classes=manager.informer(kinds.CLASSES),
        rules=manager.informer(kinds.RULES),
        patches=manager.informer(kinds.PATCHES),
    )
    add_scheduler(
        manager,
        transport=world.transport("scheduler"),
        inventory=inventory,
        clock=world.clock,
        ids=Ids(),
        settings=SchedulerOptions(),
    )
    async with running(manager):
        await world.settle()
        yield


async def patch(world: World, **devices: Any) -> None:
    await world.admin.create(PATCHES, manifests.patch("x", devices))


async def test_a_patched_attribute_decides_until_its_patch_is_deleted(world: World) -> None:
    await prepare(world, devices=2)
    await wanting(world, "p", selectors=GOOD)
    async with scheduling(world):
        before = await where(world, "p")

        await patch(
            world,
            filter={"driver": DRIVER, "device": "gpu-1"},
            attributes={"acme.com/good": {"bool": True}},
        )
        await world.pass_time(20)

        assert before == REFUSED
        assert await held(world, "p") == ["node-1/gpu-1"]
        await world.admin.delete(PATCHES, Key("", "x"))
        await wanting(world, "q", selectors=GOOD)
        await world.pass_time(20)
        assert await where(world, "q") == REFUSED

    # What was allocated stays so.
    assert await held(world, "p") == ["node-1/gpu-1"]
    claim = await world.admin.get(CLAIMS, Key("a", "p"))
    assert "acme.com/good" in claim["metadata"]["annotations"]["sully.dev/allocated-attributes"]


async def test_a_taint_of_a_patch_prevents_scheduling(world: World) -> None:
    await prepare(world, devices=1)
    await patch(world, taints=[{"key": "example.com/hot", "effect": "NoSchedule"}])
    await wanting(world, "p")
    await wanting(world, "q", tolerations=[{"key": "example.com/hot", "operator": "Exists"}])
    async with scheduling(world):
        await world.pass_time(5)

    assert await where(world, "p") == REFUSED
    assert await held(world, "q") == ["node-1/gpu-0"]

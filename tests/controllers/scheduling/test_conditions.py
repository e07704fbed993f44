"""Devices that their driver must make ready before a pod goes to its node."""

from __future__ import annotations

from controllers.scheduling.placing import (
    CLAIMS,
    SLICES,
    Scheduling,
    held,
    prepare,
    publish,
    reserved,
    wanting,
    where,
)
from controllers.world import World
from manifests import DRIVER, slice_
from sully.client.transport import Key
from sully.scheduler.options import SchedulerOptions

READY, BROKEN = "example.com/attached", "example.com/failed"
WAITING = SchedulerOptions(binding_conditions=True)


async def attachable(world: World) -> None:
    await prepare(world, devices=0)
    device = {
        "name": "gpu-0",
        "bindsToNode": True,
        "bindingConditions": [READY],
        "bindingFailureConditions": [BROKEN],
    }
    await world.admin.create(SLICES, slice_("s", "fabric", device, allNodes=True))
    await wanting(world, "p")


async def report(world: World, type_: str) -> None:
    condition = {
        "type": type_,
        "status": "True",
        "reason": "Done",
        "message": "",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }
    device = {"driver": DRIVER, "pool": "fabric", "device": "gpu-0", "conditions": [condition]}
    await world.admin.patch(
        CLAIMS, Key("a", "p"), {"status": {"devices": [device]}}, subresource="status"
    )


async def test_a_pod_waits_for_its_device(world: World) -> None:
    await attachable(world)
    async with Scheduling(WAITING).running(world):
        await world.settle()
        before = (await where(world, "p"), await reserved(world, "p"))
        await report(world, READY)
        await world.settle()

    assert before == ("", ["p"])
    assert await where(world, "p") == "node-1"


async def test_a_device_that_fails_is_given_back(world: World) -> None:
    await attachable(world)
    async with Scheduling(WAITING).running(world):
        await world.settle()
        await publish(world, "node-1")
        await report(world, BROKEN)
        await world.pass_time(5, step=1)

    assert await held(world, "p") == ["node-1/gpu-0"], "one that needs no waiting comes first"
    assert await where(world, "p") == "node-1"


async def test_patience_ends(world: World) -> None:
    await attachable(world)
    async with Scheduling(WAITING).running(world):
        await world.settle()
        await publish(world, "node-1")
        await world.pass_time(590, step=59)
        before = await where(world, "p")
        await world.pass_time(15, step=1)

    assert before == ""
    assert await held(world, "p") == ["node-1/gpu-0"]
    assert await where(world, "p") == "node-1"

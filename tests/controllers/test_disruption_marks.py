"""Announcements that did not come true are taken back."""

from __future__ import annotations

import pytest

from controllers.lifecycles import open_namespace, pod, pods, pods_of
from controllers.world import PODS, World
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.controllers.framework.manager import Manager
from sully.controllers.workloads.disruption import StalePodDisruptionController
from sully.machinery.formats.timestamps import format_time


@pytest.fixture(autouse=True)
async def _namespace(world: World) -> None:
    await open_namespace(world)


def marks(world: World, manager: Manager) -> StalePodDisruptionController:
    transport = world.transport(StalePodDisruptionController.name)
    return StalePodDisruptionController(
        pods=pods_of(manager), transport=transport, clock=world.clock
    )


async def announce(world: World, reason: str) -> None:
    reported = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": "soon",
        "lastTransitionTime": format_time(world.clock.now()),
    }
    patch = {"status": {"conditions": [reported]}}
    await world.admin.patch(PODS, Key("a", "one"), patch, subresource="status")


async def target(world: World) -> str:
    (result,) = [
        condition
        for condition in (await world.admin.get(PODS, Key("a", "one")))["status"]["conditions"]
        if condition["type"] == "DisruptionTarget"
    ]
    return str(result["status"])


REASONS = {"EvictionByEvictionAPI": "False", "TerminationByKubelet": "True"}


@pytest.mark.parametrize(("reason", "want"), REASONS.items())
async def test_a_pod_that_stays_is_no_longer_announced(
    world: World, reason: str, want: str
) -> None:
    await pod(world, "one")
    async with world.controlled(marks) as manager:
        await world.settle()
        await announce(world, reason)
        await world.pass_time(115)
        assert await target(world) == "True"
        await world.pass_time(10)
        assert await target(world) == want
        assert manager.delayed == 0


async def test_a_pod_that_is_deleted_stays_announced(world: World) -> None:
    await pod(world, "one", finalizers=["x.example/hold"])
    async with world.controlled(marks):
        await announce(world, "EvictionByEvictionAPI")
        await world.admin.delete(PODS, Key("a", "one"))
        await world.pass_time(200)

    assert await target(world) == "True"
    assert key_of((await pods(world))[0]) == Key("a", "one")

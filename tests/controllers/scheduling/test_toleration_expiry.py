"""Tolerations for some time, end to end: nobody is put where he would be evicted immediately."""

from __future__ import annotations

import json

import pytest

from controllers.scheduling.placing import (
    REFUSED,
    RULES,
    Scheduling,
    condition,
    node,
    prepare,
    publish,
    rule,
    wanting,
    where,
)
from controllers.world import PODS, Obj, World
from planning import test_agreement as running
from sully.client.transport import Key
from sully.domain.scheduling.diagnosis import DEVICE_DIAGNOSIS
from sully.machinery.compat import Compat
from sully.machinery.formats.timestamps import format_time
from sully.scheduler.options import SchedulerOptions

KEY = "example.com/broken"


def tolerates(seconds: int) -> Obj:
    return {
        "key": KEY,
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": seconds,
    }


CASES = {
    "there is time": (59, False, "node-1"),
    "it is over": (60, False, REFUSED),
    "it is over, and nobody asks about that in Kubernetes": (60, True, "node-1"),
}


@pytest.mark.parametrize(("after", "strict", "want"), CASES.values(), ids=CASES.keys())
async def test_a_new_pod(world: World, after: int, strict: bool, want: str) -> None:
    await prepare(world)
    await rule(world, "NoExecute")
    world.clock.advance(after)
    async with Scheduling(
        SchedulerOptions(
            compat=Compat.KUBERNETES if strict else Compat.SULLY, binding_conditions=False
        )
    ).running(world):
        await wanting(world, "p", tolerations=[tolerates(60)])
        await world.settle()

    assert await where(world, "p") == want


async def test_the_account_shows_that_it_is_over(world: World) -> None:
    await prepare(world)
    await rule(world, "NoExecute")
    world.clock.advance(60)
    async with Scheduling().running(world):
        await wanting(world, "p", tolerations=[tolerates(60)])
        await world.settle()

    reported = await condition(world, "p", DEVICE_DIAGNOSIS)
    assert reported is not None
    (asked,) = json.loads(reported["message"])["requests"]
    assert asked["refused"] == {"taint": 1}
    assert [(taint["origin"], taint["expired"]) for taint in asked["taints"]] == [
        ("DeviceTaintRule/rule", True)
    ]


async def test_time_passes_while_pods_come(world: World) -> None:
    """What was found out about devices, and who was refused, is not taken for true indefinitely."""
    await prepare(world, devices=9)
    await rule(world, "NoExecute")
    results = []
    async with Scheduling().running(world):
        for place in range(5):
            seconds = (30, 60)[place % 2]
            await wanting(world, f"p{place}", tolerations=[tolerates(seconds)])
            await world.settle()
            results.append(await where(world, f"p{place}"))
            world.clock.advance(15)
            await world.settle()

    # At 0, 15, 30, 45 and 60 seconds; in turn for 30 and for 60.
    assert results == ["node-1", "node-1", REFUSED, "node-1", REFUSED]


async def test_a_device_that_does_not_evict_the_pod_is_preferred(world: World) -> None:
    await prepare(world, devices=0)
    await node(world, "node-2")
    sick = {"key": KEY, "effect": "NoExecute", "timeAdded": format_time(world.clock.now())}
    await publish(world, "node-1", 1, sick)
    await publish(world, "node-2", 1)
    async with Scheduling().running(world):
        await wanting(world, "first", tolerations=[tolerates(600)])
        await wanting(world, "second", tolerations=[tolerates(600)])
        await world.settle()

    assert await where(world, "first") == "node-2"
    assert await where(world, "second") == "node-1"


async def test_evicted_pods_are_not_rescheduled_to_be_evicted_again() -> None:
    """A replica set replaces the pod that was evicted, and that is the end of it."""
    scene = running.Scene(1, 1, (running.Workload(1, seconds=3),), ())
    async with running.controlled(scene) as world:
        await running.fill(world, scene)
        await world.admin.create(RULES, running.rule(scene))
        seen = set()
        for _ in range(60):
            await world.pass_time(1, step=1)
            seen |= {pod["metadata"]["name"] for pod in await running.pods(world)}
        (left,) = await running.pods(world)
        assert len(seen) == 2
        assert "nodeName" not in left["spec"]

        await world.admin.delete(RULES, Key("", "rule"))
        await world.pass_time(5, step=1)
        result = await world.admin.get(PODS, Key("a", left["metadata"]["name"]))
        assert result["spec"]["nodeName"]

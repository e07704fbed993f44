"""Pods that wait are requeued exactly when something changes that matters to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from controllers.scheduling.placing import (
    CLAIMS,
    CLASSES,
    NODES,
    RULES,
    SLICES,
    Scheduling,
    claim,
    node,
    pod,
    prepare,
    publish,
    rule,
    wanting,
    where,
)
from controllers.world import PODS, World
from sully.client.options import DeleteOptions
from sully.client.transport import Key

NOW = DeleteOptions(grace_period_seconds=0)
Step = Callable[[World], Awaitable[Any]]


async def full(world: World) -> None:
    await prepare(world)
    await wanting(world, "first")


async def ruled(world: World) -> None:
    await prepare(world)
    await rule(world)


async def bare(world: World) -> None:
    await prepare(world, devices=0)


async def cordoned(world: World) -> None:
    await bare(world)
    await publish(world, "node-1")
    await world.admin.patch(NODES, Key("", "node-1"), {"spec": {"unschedulable": True}})


async def more_nodes(world: World) -> None:
    await node(world, "node-2")
    await publish(world, "node-2")


async def release(world: World) -> None:
    empty = {"status": {"allocation": None, "reservedFor": None}}
    await world.admin.patch(CLAIMS, Key("a", "first"), empty, subresource="status")


WAKING: dict[str, tuple[Step, Step]] = {
    "a rule is deleted": (ruled, lambda world: world.admin.delete(RULES, Key("", "rule"))),
    "a rule is weakened": (
        ruled,
        lambda world: world.admin.patch(
            RULES, Key("", "rule"), {"spec": {"taint": {"effect": "None"}}}
        ),
    ),
    "a slice is published": (bare, lambda world: publish(world, "node-1")),
    "a device becomes free": (full, release),
    "a node comes": (full, more_nodes),
    "a node is opened": (
        cordoned,
        lambda world: world.admin.patch(
            NODES, Key("", "node-1"), {"spec": {"unschedulable": None}}
        ),
    ),
}


@pytest.mark.parametrize(("start", "change"), WAKING.values(), ids=WAKING.keys())
async def test_what_wakes_a_pod_that_wants_a_device(
    world: World, start: Step, change: Step
) -> None:
    await start(world)
    async with Scheduling().running(world):
        await world.settle()
        await wanting(world, "p")
        await world.settle()
        before = await where(world, "p")
        await change(world)
        await world.settle()

    assert before.startswith("0/1 nodes are available: 1 ")
    assert (await where(world, "p")).startswith("node-")


async def test_a_class_that_comes_later(world: World) -> None:
    await prepare(world)
    await wanting(world, "p", class_name="late")
    async with Scheduling().running(world):
        await world.settle()
        before = await where(world, "p")
        await world.admin.create(CLASSES, {"metadata": {"name": "late"}, "spec": {}})
        await world.settle()

    assert "request r: device class late does not exist." in before
    assert await where(world, "p") == "node-1"


async def test_a_claim_that_comes_later(world: World) -> None:
    await prepare(world)
    await pod(world, "p", "p")
    async with Scheduling().running(world) as transport:
        await world.settle()
        assert transport.calls == []
        await claim(world, "p")
        await world.settle()

    assert await where(world, "p") == "node-1"


async def test_a_gate_that_is_removed(world: World) -> None:
    await prepare(world)
    await pod(world, "p", schedulingGates=[{"name": "example.com/g"}])
    async with Scheduling().running(world):
        await world.settle()
        await world.admin.patch(PODS, Key("a", "p"), {"spec": {"schedulingGates": None}})
        await world.settle()

    assert await where(world, "p") == "node-1"


async def test_a_pod_that_is_evicted_frees_its_resources(world: World) -> None:
    await prepare(world, devices=0)
    async with Scheduling().running(world):
        await pod(world, "first", cpu="6")
        await world.settle()
        await pod(world, "p", cpu="3")
        await world.settle()
        before = await where(world, "p")
        await world.admin.delete(PODS, Key("a", "first"), NOW)
        await world.settle()

    assert before.startswith("0/1 nodes are available: 1 Insufficient cpu. preemption:")
    assert await where(world, "p") == "node-1"


async def test_time_alone_wakes_nobody(world: World) -> None:
    await full(world)
    async with Scheduling().running(world) as transport:
        await wanting(world, "p")
        await world.settle()
        before = list(transport.calls)
        await world.pass_time(3600, step=600)

    assert transport.calls == before


async def test_what_does_not_matter_wakes_nobody(world: World) -> None:
    await prepare(world)
    async with Scheduling().running(world) as transport:
        await pod(world, "p", nodeSelector={"on": "mars"})
        await world.settle()
        before = list(transport.calls)
        await rule(world)
        await claim(world, "unrelated")
        await world.admin.patch(
            SLICES, Key("", "s-node-1"), {"metadata": {"labels": {"some": "label"}}}
        )
        await world.settle()

    assert before == ["patch pods/status"]
    assert transport.calls == before

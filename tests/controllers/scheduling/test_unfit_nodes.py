"""Nodes that do not fit are skipped until they gain something."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from controllers.scheduling.placing import (
    CLAIMS,
    CLASSES,
    NODES,
    Scheduling,
    node,
    pod,
    prepare,
    publish,
    wanting,
    where,
)
from controllers.world import PODS, World
from sully.client.options import DeleteOptions
from sully.client.transport import Key
from sully.scheduler.equivalence.unfit_nodes import MANY

NOW = DeleteOptions(grace_period_seconds=0)
BARE = [f"bare-{index:02d}" for index in range(MANY)]
Step = Callable[[World], Awaitable[Any]]


async def full(world: World) -> None:
    """Have a pod find its node after many that could not take it."""
    await prepare(world, "node-1", devices=3)
    for item in BARE:
        await node(world, item)


async def release(world: World) -> None:
    await world.admin.delete(PODS, Key("a", "full"), NOW)
    empty = {"status": {"allocation": None, "reservedFor": None}}
    await world.admin.patch(CLAIMS, Key("a", "full"), empty, subresource="status")


async def make_full(world: World) -> None:
    """Give a bare node one device, and to a pod."""
    await publish(world, BARE[3])
    await wanting(world, "full")


async def label(world: World) -> None:
    body = {"metadata": {"labels": {"kind": "gpu"}}}
    await world.admin.patch(NODES, Key("", BARE[2]), body)


async def change_class(world: World) -> None:
    body = {"spec": {"selectors": [{"cel": {"expression": "true"}}]}}
    await world.admin.patch(CLASSES, Key("", "gpu"), body)


async def _new(world: World) -> None:
    await node(world, "bare-00a")
    await publish(world, "bare-00a")


GAINS: dict[str, tuple[Step | None, Step, str]] = {
    "a class that reports nothing new": (None, change_class, "node-1"),
    "devices are published": (None, lambda world: publish(world, BARE[7]), BARE[7]),
    "a device becomes free": (make_full, release, BARE[3]),
    "a new node": (None, _new, "bare-00a"),
    "labels that do not help": (None, label, "node-1"),
}


@pytest.mark.parametrize("case", GAINS)
async def test_a_node_is_asked_again_when_it_may_have_gained(case: str) -> None:
    before, event, expected = GAINS[case]
    world = World()
    await full(world)
    if before is not None:
        await before(world)
    async with Scheduling().running(world):
        await world.settle()
        for name in ("first", "second"):
            await wanting(world, name)
            await world.settle()
            assert await where(world, name) == "node-1"
        await event(world)
        await world.settle()
        await wanting(world, "third")
        await world.settle()

        assert await where(world, "third") == expected


async def test_capacity_that_an_evicted_pod_frees_is_found() -> None:
    world = World()
    await full(world)
    async with Scheduling().running(world):
        for index in range(MANY + 1):
            await pod(world, f"big-{index:02d}", cpu="6")
        await world.settle()
        places = {await where(world, f"big-{index:02d}") for index in range(MANY + 1)}
        # It has room, but comes after all others because it is fuller.
        await node(world, "large", cpu="400")
        await pod(world, "most", cpu="340", nodeSelector={"on": "large"})
        await world.settle()
        for name in ("one", "two"):
            await pod(world, name, cpu="6")
            await world.settle()
            assert await where(world, name) == "large"
        await world.admin.delete(PODS, Key("a", "big-04"), NOW)
        await world.settle()
        await pod(world, "three", cpu="6")
        await world.settle()

        assert places == {*BARE, "node-1"}
        assert await where(world, "three") == BARE[4]


async def test_a_pod_that_is_refused_hears_of_all_nodes() -> None:
    world = World()
    await full(world)
    async with Scheduling().running(world):
        for name in ("one", "two", "three", "four"):
            await wanting(world, name)
            await world.settle()
        pod = await world.admin.get(PODS, Key("a", "four"))

    message = pod["status"]["conditions"][0]["message"]
    assert message.startswith(f"0/{MANY + 1} nodes are available: {MANY + 1} cannot allocate all")

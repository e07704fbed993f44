"""Several schedulers together, on the same pods: no device goes to two claims, no pod is lost."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.recording_transport import RecordingTransport
from controllers.scheduling.placing import (
    CLAIMS,
    Scheduling,
    claim,
    pod,
    prepare,
    reserved,
    wanting,
    where,
)
from controllers.world import PODS, World
from property_examples import examples
from sully.client.calls import Call
from sully.client.direct import Reply
from sully.controllers.scheduling.wiring import USER_AGENT


class Slow(RecordingTransport):
    """A transport on which calls take their time, each another."""

    def __init__(self, world: World, seed: int) -> None:
        super().__init__(world, "system:kube-scheduler", USER_AGENT)
        self._chance = random.Random(seed)

    async def _call(self, call: Call) -> Reply:
        for _ in range(self._chance.randrange(6)):
            await asyncio.sleep(0)
        return await super()._call(call)


async def holders(world: World) -> dict[tuple[str, str], list[str]]:
    """Return which claims hold which device."""
    results: dict[tuple[str, str], list[str]] = {}
    for holder in (await world.admin.list(CLAIMS, "a")).items:
        allocation = (holder.get("status") or {}).get("allocation") or {"devices": {}}
        for result in allocation["devices"].get("results", ()):
            device = result["pool"], result["device"]
            results.setdefault(device, []).append(holder["metadata"]["name"])
    return results


class Shared(World):
    """A world that several schedulers work in until it is over."""

    def __init__(self) -> None:
        super().__init__()
        self.over = asyncio.Event()


async def work(world: Shared, scheduling: Scheduling) -> None:
    async with scheduling.running(world):
        await world.over.wait()


async def play(seeds: list[int], *, pods: int, devices: int) -> World:
    """Let a scheduler for each seed work on the same pods."""
    world = Shared()
    await prepare(world, "node-1", "node-2", devices=devices)
    await claim(world, "shared")
    await pod(world, "s-0", "shared")
    for index in range(pods):
        await wanting(world, f"p-{index}")
    await pod(world, "s-1", "shared")
    async with asyncio.TaskGroup() as tasks:
        for place, seed in enumerate(seeds):
            scheduling = Scheduling(transport=Slow(world, seed), newest_first=place % 2 == 1)
            tasks.create_task(work(world, scheduling))
        for _ in range(60):
            await asyncio.sleep(0)
        await world.pass_time(40, step=1)
        world.over.set()
    return world


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=3, unique=True), st.integers(1, 3))
@settings(max_examples=examples(15))
def test_never_a_device_twice(seeds: list[int], devices: int) -> None:
    async def run() -> None:
        world = await play(seeds, pods=6, devices=devices)
        taken = await holders(world)
        assert all(len(claims) == 1 for claims in taken.values()), taken
        assert len(taken) == min(2 * devices, 7), "none lies idle"
        served = {claims[0] for claims in taken.values()}
        for item in (await world.admin.list(PODS, "a")).items:
            name = item["spec"]["resourceClaims"][0]["resourceClaimName"]
            assert bool(item["spec"].get("nodeName")) == (name in served)
            if name in served:
                assert item["metadata"]["name"] in await reserved(world, name)

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(3))
async def test_one_that_stops_leaves_the_rest_to_the_other(seed: int) -> None:
    world = World()
    await prepare(world, "node-1", "node-2", devices=3)
    async with Scheduling(transport=Slow(world, seed)).running(world):
        async with Scheduling(transport=Slow(world, seed + 100)).running(world):
            for index in range(3):
                await wanting(world, f"p-{index}")
            await asyncio.sleep(0)
        for index in range(3, 6):
            await wanting(world, f"p-{index}")
        await world.pass_time(40, step=1)

    taken = await holders(world)
    assert len(taken) == 6
    assert all(len(claims) == 1 for claims in taken.values())
    assert all([(await where(world, f"p-{index}")).startswith("node-") for index in range(6)])

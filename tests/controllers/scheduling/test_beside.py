"""A scheduler beside another one takes only the pods that name it."""

from __future__ import annotations

from controllers.scheduling.placing import Scheduling, pod, prepare, where
from controllers.world import World
from sully.scheduler.options import SchedulerOptions

BESIDE = SchedulerOptions(binding_conditions=False, schedulers=frozenset(("sully",)))


async def test_pods_of_others_are_left_alone(world: World) -> None:
    scheduling = Scheduling(BESIDE)
    await prepare(world, devices=0)
    await pod(world, "theirs")
    async with scheduling.running(world):
        await pod(world, "ours", schedulerName="sully")
        await pod(world, "theirs-too", schedulerName="default-scheduler")
        await world.settle()

        assert await where(world, "ours") == "node-1"
        assert await where(world, "theirs") == await where(world, "theirs-too") == ""
    assert scheduling.looked_at == ["ours"]


async def test_pods_of_other_schedulers_use_resources(world: World) -> None:
    await prepare(world, devices=0)
    await pod(world, "theirs", cpu="6", nodeName="node-1")
    async with Scheduling(BESIDE).running(world):
        await pod(world, "big", cpu="4", schedulerName="sully")
        await pod(world, "small", cpu="2", schedulerName="sully")
        await world.settle()

        assert "Insufficient cpu" in await where(world, "big")
        assert await where(world, "small") == "node-1"

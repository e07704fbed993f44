"""What is counted about scheduling."""

from __future__ import annotations

from controllers.scheduling.placing import (
    CLASSES,
    NODES,
    Scheduling,
    claim,
    pod,
    prepare,
    wanting,
)
from controllers.world import PODS, World
from sully.client.options import DeleteOptions
from sully.client.transport import Key

NOW = DeleteOptions(grace_period_seconds=0)
PROFILE = 'profile="default-scheduler"'
WANT = {
    f'scheduler_schedule_attempts_total{{{PROFILE},result="error"}} 1.0',
    f'scheduler_schedule_attempts_total{{{PROFILE},result="scheduled"}} 2.0',
    f'scheduler_schedule_attempts_total{{{PROFILE},result="unschedulable"}} 3.0',
    f'scheduler_scheduling_attempt_duration_seconds_count{{{PROFILE},result="scheduled"}} 2.0',
    "scheduler_scheduling_algorithm_duration_seconds_count 6.0",
    "scheduler_pod_scheduling_attempts_sum 3.0",
    'scheduler_pod_scheduling_sli_duration_seconds_sum{attempts="2"} 60.0',
    'scheduler_pending_pods{queue="active"} 0.0',
    'scheduler_pending_pods{queue="unschedulable"} 1.0',
    'scheduler_pending_pods{queue="gated"} 1.0',
    'scheduler_pending_pods{queue="backoff"} 0.0',
    'scheduler_resourceclaim_creates_total{status="success"} 1.0',
}


async def wrong(world: World) -> None:
    """Have a pod whose selector cannot decide about a device, and let it go."""
    failing = {"cel": {"expression": 'device.attributes["x"].y == 1'}}
    await claim(world, "wrong", selectors=[failing])
    await pod(world, "wrong", "wrong")
    await world.settle()
    await world.admin.delete(PODS, Key("a", "wrong"), NOW)


async def test_what_is_shown(world: World) -> None:
    scheduling = Scheduling()
    await prepare(world)
    patch = {"spec": {"extendedResourceName": "example.com/gpu"}}
    await world.admin.patch(CLASSES, Key("", "gpu"), patch)
    async with scheduling.running(world):
        await wrong(world)
        await pod(world, "extended", limits={"example.com/gpu": "1"})
        await world.settle()
        await wanting(world, "device")
        await pod(world, "elsewhere", nodeSelector={"to": "mars"})
        await pod(world, "gated", schedulingGates=[{"name": "example.com/g"}])
        await world.pass_time(60, step=10)
        await world.admin.patch(NODES, Key("", "node-1"), {"metadata": {"labels": {"to": "mars"}}})
        await world.settle()
        shown = scheduling.metrics.render().decode().splitlines()

    assert set(shown) >= WANT

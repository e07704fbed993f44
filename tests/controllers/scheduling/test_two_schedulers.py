"""Another scheduler allocates the same devices, on a server that accepts a device in two claims."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from controllers.recording_transport import RecordingTransport
from controllers.scheduling.placing import (
    CLAIMS,
    Scheduling,
    claim,
    event_messages,
    held,
    pod,
    prepare,
    reserved,
    where,
)
from controllers.world import PODS, World
from embedded import REFERENCE
from manifests import DRIVER
from sully.client.transport import Key
from sully.controllers.scheduling.allocation_check import (
    NEW_POD_SECONDS,
    QUIET_SECONDS,
    UNSCHEDULABLE_POD_SECONDS,
)
from sully.controllers.scheduling.wiring import USER_AGENT
from sully.scheduler.options import SchedulerOptions

OURS = "sully"
BESIDE = SchedulerOptions(binding_conditions=False, schedulers=frozenset((OURS,)))
GPU = "node-1/gpu-0"


class Plain(World):
    """A server of Kubernetes: it does not check that a device is allocated once."""

    def __init__(self) -> None:
        super().__init__()
        self.serve(scheme=REFERENCE, strict=True)


@pytest.fixture
def world() -> Plain:
    return Plain()


def beside(world: World) -> Scheduling:
    """Return our scheduler, which knows that it is not alone."""
    transport = RecordingTransport(world, "system:kube-scheduler", USER_AGENT)
    return Scheduling(BESIDE, transport=transport, alone=False)


async def decide(world: World, name: str, *, for_pod: str = "theirs") -> None:
    """Allocate the device to a claim, as another scheduler does that has not seen our decision."""
    result = {"request": "r", "driver": DRIVER, "pool": "node-1", "device": "gpu-0"}
    body = await world.admin.get(CLAIMS, Key("a", name))
    uid = (await world.admin.get(PODS, Key("a", for_pod)))["metadata"]["uid"]
    body["status"] = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": for_pod, "uid": uid}],
    }
    await world.admin.update(CLAIMS, body, "status")


async def rivals(world: World, **theirs: Any) -> None:
    """Make one device, and two pods that want it."""
    await prepare(world)
    await claim(world, "theirs")
    await pod(world, "theirs", "theirs", **theirs)
    world.clock.advance(1)
    await claim(world, "ours")


async def test_alone_in_the_cluster_nothing_waits(world: Plain) -> None:
    scheduling = beside(world)
    await prepare(world)
    async with scheduling.running(world) as calls:
        await claim(world, "ours")
        await pod(world, "ours", "ours", schedulerName=OURS)
        await world.settle()

        assert await where(world, "ours") == "node-1"
        assert calls.calls.count("list resourceclaims") == 2


async def test_written_before_we_write(world: Plain) -> None:
    """Our cache did not show it yet: nothing is written."""
    scheduling = beside(world)
    await rivals(world)
    async with scheduling.running(world) as calls:
        calls.before["list resourceclaims"] = lambda: decide(world, "theirs")
        await pod(world, "ours", "ours", schedulerName=OURS)
        await world.pass_time(NEW_POD_SECONDS + 0.5, step=1)

        assert await held(world, "theirs") == [GPU]
        assert await held(world, "ours") == []
        assert "update resourceclaims/status" not in calls.calls
        assert await event_messages(world, "FailedScheduling") == [
            f'ours: running PreBind plugin "DynamicResources": device {DRIVER}/{GPU} got'
            " allocated to claim a/theirs in the meantime"
        ]


@pytest.mark.parametrize("seconds", [0.05, 0.5, 5.0, NEW_POD_SECONDS - 1])
async def test_decided_before_us_and_written_later(world: Plain, seconds: float) -> None:
    """A pod that waits for another scheduler may have a decision that is not written yet."""
    scheduling = beside(world)
    await rivals(world)
    async with scheduling.running(world) as calls:
        await pod(world, "ours", "ours", schedulerName=OURS)
        await world.pass_time(seconds, step=0.05)
        await decide(world, "theirs")
        await world.pass_time(NEW_POD_SECONDS, step=1)

        assert await held(world, "theirs") == [GPU]
        assert await held(world, "ours") == []
        assert "update resourceclaims/status" not in calls.calls


@pytest.mark.parametrize("seconds", [0.0, 0.2, QUIET_SECONDS - 0.1])
async def test_pod_that_comes_while_we_write(world: Plain, seconds: float) -> None:
    """The other scheduler decided on a new pod before it saw what we wrote."""
    scheduling = beside(world)
    await prepare(world)
    await claim(world, "theirs")
    await claim(world, "ours")

    async def create() -> None:
        await pod(world, "theirs", "theirs")

    async with scheduling.running(world) as calls:
        await pod(world, "first", "absent")  # there is another scheduler
        await world.admin.delete(PODS, Key("a", "first"))
        await world.settle()
        calls.before["update resourceclaims/status"] = create
        await pod(world, "ours", "ours", schedulerName=OURS)
        await world.pass_time(QUIET_SECONDS + 0.1, step=0.05)
        assert await held(world, "ours") == [GPU]
        await world.pass_time(seconds, step=0.05)
        await decide(world, "theirs")
        await world.pass_time(NEW_POD_SECONDS + 1, step=0.5)

        assert "create pods/binding" not in calls.calls
        assert "got allocated to claim a/theirs" in await where(world, "ours")


async def conflict(
    world: World, calls: RecordingTransport, call: str = "update resourceclaims/status"
) -> None:
    """Have another scheduler write at the same moment as ours."""
    calls.before[call] = lambda: decide(world, "theirs")
    await pod(world, "ours", "ours", schedulerName=OURS)
    await world.pass_time(2 * NEW_POD_SECONDS + 2, step=0.5)


@pytest.mark.parametrize("call", ["update resourceclaims", "update resourceclaims/status"])
async def test_written_while_we_write(world: Plain, call: str) -> None:
    """The pod is not bound. The claim keeps its device: otherwise it would seem to be free."""
    scheduling = beside(world)
    await rivals(world)
    async with scheduling.running(world) as calls:
        await conflict(world, calls, call)

        assert await held(world, "theirs") == await held(world, "ours") == [GPU]
        assert "got allocated to claim a/theirs in the meantime" in await where(world, "ours")
        assert "create pods/binding" not in calls.calls
    assert b"sully_scheduler_device_conflicts_total 1" in scheduling.metrics.render()


async def test_the_other_claim_is_released(world: Plain) -> None:
    """Our claim is allocated again, so that the other scheduler sees that the device is in use."""
    scheduling = beside(world)
    await rivals(world)
    async with scheduling.running(world) as calls:
        await conflict(world, calls)
        await world.admin.delete(PODS, Key("a", "theirs"))
        await world.admin.patch(CLAIMS, Key("a", "theirs"), {"status": None}, subresource="status")
        before = len(calls.calls)
        await world.pass_time(30, step=1)

        writes = [call for call in calls.calls[before:] if call == "update resourceclaims/status"]
        assert len(writes) == 2, "one that deallocates, one that allocates"
        assert await held(world, "ours") == [GPU]
        assert await reserved(world, "ours") == ["ours"]
        assert await where(world, "ours") == "node-1"


async def test_our_pod_is_deleted(world: Plain) -> None:
    scheduling = beside(world)
    await rivals(world)
    async with scheduling.running(world) as calls:
        await conflict(world, calls)
        await world.admin.delete(PODS, Key("a", "ours"))
        # What the claim controller does.
        await world.admin.patch(CLAIMS, Key("a", "ours"), {"status": None}, subresource="status")
        await world.pass_time(30, step=1)

        assert await held(world, "ours") == []
        assert await held(world, "theirs") == [GPU]


WAITS = {
    "a new pod": ({}, 2 * NEW_POD_SECONDS),
    "a pod that was unschedulable": ({"unschedulable": True}, 2 * UNSCHEDULABLE_POD_SECONDS),
    "a pod that no scheduler takes": (
        {"schedulerName": "absent", "age": 61},
        2 * UNSCHEDULABLE_POD_SECONDS,
    ),
    "a pod that is gated": ({"schedulingGates": [{"name": "g"}]}, 0.0),
    "a pod with a node": ({"nodeName": "node-1"}, 0.0),
    "a pod of ours": ({"schedulerName": OURS}, 0.0),
}


@pytest.mark.parametrize(("theirs", "seconds"), WAITS.values(), ids=WAITS)
async def test_how_long_a_binding_waits(
    world: Plain, theirs: dict[str, Any], seconds: float
) -> None:
    scheduling = beside(world)
    foreign_options = dict(theirs)
    unschedulable, age = foreign_options.pop("unschedulable", False), foreign_options.pop("age", 0)
    await prepare(world, devices=2)
    if foreign_options.get("schedulerName") != OURS:
        await claim(world, "theirs")
        await pod(world, "theirs", "theirs", **foreign_options)
    if unschedulable:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        patch = {"status": {"conditions": [condition]}}
        await world.admin.patch(PODS, Key("a", "theirs"), patch, subresource="status")
    world.clock.advance(age)
    await claim(world, "ours")
    await pod(world, "ours", "ours", schedulerName=OURS)
    began = world.clock.now()
    async with scheduling.running(world):
        while await where(world, "ours") != "node-1":
            await world.pass_time(0.25, step=0.25)

    assert (
        timedelta(0)
        <= world.clock.now() - began - timedelta(seconds=seconds)
        <= timedelta(seconds=0.5)
    )


async def test_of_two_that_check_the_older_claim_stays(world: Plain) -> None:
    """The scheduler of the other claim checks as well, and finds ours."""
    await prepare(world)
    await claim(world, "ours")
    world.clock.advance(1)
    await claim(world, "theirs")
    await pod(world, "theirs", "theirs", schedulerName=OURS, nodeSelector={"on": "nowhere"})
    scheduling = beside(world)
    async with scheduling.running(world) as calls:
        calls.before["update resourceclaims/status"] = lambda: decide(world, "theirs")
        await pod(world, "ours", "ours", schedulerName=OURS)
        await world.settle()

        assert await held(world, "ours") == [GPU]
        assert await where(world, "ours") == "node-1"

"""Pods that get no devices carry an account of why, as long as they get none."""

from __future__ import annotations

from controllers.recording_transport import broken
from controllers.scheduling.placing import (
    CLAIMS,
    REFUSED,
    RULES,
    SLICES,
    Scheduling,
    claim,
    condition,
    join_late,
    node,
    pod,
    prepare,
    publish,
    rule,
    wanting,
    where,
)
from controllers.world import PODS, World
from sully.client.transport import Key
from sully.domain.scheduling.diagnosis import DEVICE_DIAGNOSIS, Diagnosis, decode
from sully.machinery.compat import Compat
from sully.scheduler.options import SchedulerOptions


async def account(world: World, name: str) -> Diagnosis | None:
    result = await condition(world, name, DEVICE_DIAGNOSIS)
    return decode(result["message"]) if result is not None else None


async def test_a_refusal_comes_with_an_account(world: World) -> None:
    await prepare(world, devices=3)
    await rule(world)
    await wanting(world, "p")
    async with Scheduling().running(world) as transport:
        await world.settle()

    got, reported = await account(world, "p"), await condition(world, "p", DEVICE_DIAGNOSIS)
    assert got is not None
    assert reported is not None
    assert (reported["status"], reported["reason"]) == ("True", "DevicesTainted")
    assert got.requests[0].refused == {"taint": 3}
    assert [(taint.origin, taint.devices) for taint in got.requests[0].taints] == [
        ("DeviceTaintRule/rule", 3)
    ]
    assert await where(world, "p") == REFUSED, "the text of Kubernetes stays as it is"
    assert transport.calls == ["patch pods/status"], "both are written at once"


async def test_the_account_names_who_has_the_devices(world: World) -> None:
    await prepare(world, devices=2)
    async with Scheduling().running(world):
        await wanting(world, "first", count=2)
        await world.settle()
        await wanting(world, "p")
        await world.settle()

    got = await account(world, "p")
    assert got is not None
    assert got.requests[0].refused == {"inUse": 2}
    assert [(holder.claim, holder.devices) for holder in got.requests[0].holders] == [
        ("a/first", 2)
    ]


async def test_a_pod_that_gets_its_node_loses_the_account(world: World) -> None:
    await prepare(world)
    await rule(world)
    await wanting(world, "p")
    async with Scheduling().running(world):
        await world.settle()
        before = await account(world, "p")
        await world.admin.delete(RULES, Key("", "rule"))
        await world.settle()

    assert before is not None
    assert await where(world, "p") == "node-1"
    assert await account(world, "p") is None


async def test_an_account_that_a_crash_left_behind_is_deleted(world: World) -> None:
    await prepare(world)
    await rule(world)
    await wanting(world, "p")
    async with Scheduling().running(world) as transport:
        await world.settle()
        # As if it stopped between the binding and the tidying.
        transport.failures["patch pods/status"] = broken(100)
        await world.admin.delete(RULES, Key("", "rule"))
        await world.settle()
    assert (await where(world, "p"), await account(world, "p") is None) == ("node-1", False)
    async with Scheduling().running(world):
        await world.settle()

    assert await account(world, "p") is None


async def test_kubernetes_writes_no_account(world: World) -> None:
    await prepare(world)
    await rule(world)
    await wanting(world, "p")
    async with Scheduling(SchedulerOptions(compat=Compat.KUBERNETES)).running(world):
        await world.settle()

    assert await where(world, "p") == REFUSED
    assert await account(world, "p") is None


async def test_an_account_alone_is_written_every_half_minute(world: World) -> None:
    await prepare(world, devices=0)
    await wanting(world, "p", count=9)
    async with Scheduling().running(world) as transport:
        await world.settle()
        await publish(world, "node-1", 1)
        for devices in (2, 3):
            await _grow(world, devices)
            await world.settle()
        before = transport.calls.count("patch pods/status")
        await world.pass_time(29, step=1)
        during = transport.calls.count("patch pods/status")
        await world.pass_time(2, step=1)
        after = transport.calls.count("patch pods/status")
        await world.pass_time(120, step=10)

    got = await account(world, "p")
    assert got is not None
    assert got.requests[0].available == 3, "the last state is not lost"
    assert (before, during, after) == (1, 1, 2)
    assert transport.calls.count("patch pods/status") == 2


async def _grow(world: World, devices: int) -> None:
    indexes = [{"name": f"gpu-{index}"} for index in range(devices)]
    await world.admin.patch(SLICES, Key("", "s-node-1"), {"spec": {"devices": indexes}})


async def test_a_claim_that_is_allocated_elsewhere(world: World) -> None:
    await prepare(world, "node-1", "node-2")
    await claim(world, "shared")
    await pod(world, "p", "shared", nodeSelector={"on": "node-1"})
    async with Scheduling().running(world):
        await world.settle()
        await pod(world, "q", "shared", nodeSelector={"on": "node-2"})
        await world.settle()

    got = await account(world, "q")
    assert got is not None
    assert got.reason == "ClaimElsewhere"
    assert [(item.claim, item.nodes) for item in got.blocked] == [("a/shared", 1)]


async def test_a_claim_that_should_not_be_joined(world: World) -> None:
    await join_late(world, Scheduling())

    got = await account(world, "q")
    assert got is not None
    assert got.reason == "ClaimTainted"
    assert got.blocked[0].device == "gpu.example.com/node-1/gpu-0"
    assert got.blocked[0].taints[0].origin == "DeviceTaintRule/rule"


async def test_a_pod_that_is_refused_for_something_else_then_has_none(world: World) -> None:
    await prepare(world)
    await rule(world)
    await wanting(world, "p", class_name="late")
    async with Scheduling().running(world):
        await world.settle()

    assert "device class late does not exist" in await where(world, "p")
    assert await account(world, "p") is None


async def test_pods_that_ask_the_same_each_have_their_own(world: World) -> None:
    pods = 40
    await prepare(world, "node-1", "node-2", "node-3", devices=1)
    await rule(world)
    async with Scheduling().running(world):
        for index in range(pods):
            await wanting(world, f"p-{index}")
        await world.settle()

    indexes = [await account(world, f"p-{index}") for index in range(pods)]
    assert [message.requests[0].claim for message in indexes if message is not None] == [
        f"a/p-{index}" for index in range(pods)
    ]
    assert all(
        message is not None and message.requests[0].refused == {"taint": 3} for message in indexes
    )


async def test_a_pod_without_claims_has_no_account(world: World) -> None:
    await prepare(world, devices=0)
    await node(world, "node-2")
    await pod(world, "p", cpu="100")
    async with Scheduling().running(world):
        await world.settle()

    assert "Insufficient cpu" in await where(world, "p")
    assert await account(world, "p") is None
    assert (await world.admin.list(CLAIMS, "a")).items == []


async def test_who_is_bound_by_another_user_has_no_account(world: World) -> None:
    await prepare(world, devices=0)
    await wanting(world, "p", count=9)
    async with Scheduling().running(world):
        await world.settle()
        # An account that is still to be written, because the last one was just now.
        await publish(world, "node-1", 1)
        await world.settle()
        binding = {
            "kind": "Binding",
            "metadata": {"name": "p", "namespace": "a"},
            "target": {"kind": "Node", "name": "node-1"},
        }
        await world.admin.create(PODS, binding, "binding")
        await world.pass_time(60, step=5)

    assert await where(world, "p") == "node-1"
    assert await account(world, "p") is None

"""Pods that get a node, with and without devices."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.scheduling.placing import (
    CLAIMS,
    REFUSED,
    Scheduling,
    claim,
    event_messages,
    held,
    join_late,
    node,
    pod,
    prepare,
    publish,
    reserved,
    rule,
    wanting,
    where,
)
from controllers.world import PODS, World
from sully.api.resource.annotations import ALLOCATED_ATTRIBUTES
from sully.client.events import EVENTS
from sully.client.transport import Key
from sully.domain.claims.lifecycle import FINALIZER
from sully.machinery.compat import Compat
from sully.machinery.gates import Gates
from sully.scheduler.options import SchedulerOptions


async def test_a_pod_without_claims(world: World) -> None:
    await prepare(world, devices=0)
    await pod(world, "p")
    async with Scheduling().running(world) as transport:
        await world.settle()

    assert await where(world, "p") == "node-1"
    assert await event_messages(world, "Scheduled") == ["p: Successfully assigned a/p to node-1"]
    assert transport.calls == ["create pods/binding"]


WRITES = ["update resourceclaims", "update resourceclaims/status", "create pods/binding"]
PROTECTING = {"before the allocation": (True, WRITES), "with it": (False, WRITES[1:])}


@pytest.mark.parametrize(("protects", "writes"), PROTECTING.values(), ids=PROTECTING.keys())
async def test_a_claim_is_allocated_protected_and_reserved(
    world: World, protects: bool, writes: list[str]
) -> None:
    await prepare(world)
    await wanting(world, "p")
    async with Scheduling(protects=protects).running(world) as transport:
        await world.settle()

    assert await where(world, "p") == "node-1"
    assert await held(world, "p") == ["node-1/gpu-0"]
    assert await reserved(world, "p") == ["p"]
    claim = await world.admin.get(CLAIMS, Key("a", "p"))
    assert claim["metadata"]["finalizers"] == [FINALIZER]
    assert (
        '"gpu.example.com/node-1/gpu-0"' in claim["metadata"]["annotations"][ALLOCATED_ATTRIBUTES]
    )
    assert transport.calls == writes


async def test_kubernetes_writes_no_annotation_but_the_time(world: World) -> None:
    await prepare(world)
    await wanting(world, "p")
    async with Scheduling(SchedulerOptions(compat=Compat.KUBERNETES)).running(world):
        await world.settle()

    claim = await world.admin.get(CLAIMS, Key("a", "p"))
    assert "annotations" not in claim["metadata"]
    assert "allocationTimestamp" in claim["status"]["allocation"]


async def test_pods_spread_over_nodes(world: World) -> None:
    await prepare(world, "node-1", "node-2", "node-3", devices=0)
    for name in ("p", "q", "r"):
        await pod(world, name)
    async with Scheduling().running(world):
        await world.settle()

    assert sorted([await where(world, letter) for letter in "pqr"]) == [
        "node-1",
        "node-2",
        "node-3",
    ]


async def test_each_device_goes_to_one_claim(world: World) -> None:
    await prepare(world, "node-1", "node-2", devices=3)
    names = [f"p-{index}" for index in range(8)]
    async with Scheduling().running(world):
        for name in names:
            await wanting(world, name)
        await world.settle()

    taken = [device for name in names for device in await held(world, name)]
    assert len(taken) == len(set(taken)) == 6
    reported = [await where(world, name) for name in names]
    assert sum(message.startswith("0/2 nodes") for message in reported) == 2


async def test_the_more_important_pod_comes_first(world: World) -> None:
    await prepare(world)
    await wanting(world, "low")
    await claim(world, "high")
    await pod(world, "high", "high", priorityClassName="system-cluster-critical")
    async with Scheduling().running(world):
        await world.settle()

    assert await where(world, "high") == "node-1"
    assert await where(world, "low") == REFUSED


async def test_a_claim_that_two_pods_share(world: World) -> None:
    await prepare(world)
    await claim(world, "shared")
    await pod(world, "p", "shared")
    await pod(world, "q", "shared")
    async with Scheduling().running(world):
        await world.settle()

    assert [await where(world, letter) for letter in "pq"] == ["node-1", "node-1"]
    assert await reserved(world, "shared") == ["p", "q"]


async def test_a_claim_that_many_pods_share_is_written_once_for_each(world: World) -> None:
    await prepare(world)
    await claim(world, "shared")
    names = [f"p{number:02}" for number in range(40)]
    async with Scheduling().running(world) as transport:
        await pod(world, names[0], "shared")
        await world.settle()
        transport.calls.clear()
        for name in names[1:]:
            await pod(world, name, "shared")
        await world.settle()

    assert {await where(world, name) for name in names} == {"node-1"}
    assert sorted(await reserved(world, "shared")) == names
    assert await event_messages(world, "FailedScheduling") == []
    assert transport.calls.count("update resourceclaims/status") == len(names) - 1


async def test_a_pod_follows_its_claim_to_the_node(world: World) -> None:
    await prepare(world, "node-1")
    await claim(world, "shared")
    await pod(world, "p", "shared")
    async with Scheduling().running(world):
        await world.settle()
        await node(world, "node-0")
        await world.settle()
        await pod(world, "q", "shared")
        await world.settle()

    assert await where(world, "q") == "node-1"


async def test_a_claim_that_nobody_uses_is_moved(world: World) -> None:
    await prepare(world, "node-1", "node-2")
    await claim(world, "c")
    result = {"request": "r", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}
    fields = [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]
    allocation = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
    }
    patch = {"status": {"allocation": allocation}}
    await world.admin.patch(CLAIMS, Key("a", "c"), patch, subresource="status")
    await pod(world, "p", "c", nodeSelector={"on": "node-2"})
    async with Scheduling().running(world):
        await world.settle()

    assert await where(world, "p") == "node-2"
    assert await held(world, "c") == ["node-2/gpu-0"]


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "a constraint that no node meets": (
        {
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {},
                }
            ]
        },
        "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing"
        " required label). preemption: 0/1 nodes are available: 1 Preemption is not helpful for"
        " scheduling.",
    ),
    "a field that is not evaluated": (
        {"schedulingGroup": {"podGroupName": "g"}},
        "0/1 nodes are available: this scheduler does not evaluate spec.schedulingGroup.",
    ),
    "a node that does not exist": (
        {"nodeSelector": {"on": "mars"}},
        "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. preemption:"
        " 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
    ),
    "another user's pod": ({"schedulerName": "another"}, ""),
    "a gate": ({"schedulingGates": [{"name": "example.com/g"}]}, "Scheduling is blocked due to"),
}


@pytest.mark.parametrize(("spec", "want"), REFUSALS.values(), ids=REFUSALS.keys())
async def test_pods_that_stay(world: World, spec: dict[str, Any], want: str) -> None:
    await prepare(world, devices=0)
    await pod(world, "p", **spec)
    async with Scheduling().running(world) as transport:
        await world.settle()

    got = await where(world, "p")
    assert got == want or (want and got.startswith(want))
    assert "create pods/binding" not in transport.calls


async def test_a_refusal_is_reported_once(world: World) -> None:
    await prepare(world, devices=0)
    await wanting(world, "p")
    async with Scheduling().running(world) as transport:
        await world.settle()
        await node(world, "node-2", unschedulable=True)
        await world.settle()
        calls = list(transport.calls)
        await rule(world)
        await world.settle()

    assert calls == ["patch pods/status"] * 2
    assert transport.calls == calls
    assert len(await event_messages(world, "FailedScheduling")) == 2


async def test_why_a_pod_waits_is_reported_again_before_the_event_expires(world: World) -> None:
    await prepare(world)
    await wanting(world, "first")
    await wanting(world, "second")
    async with Scheduling().running(world):
        await world.settle()
        reported = [
            (failure["metadata"]["name"], failure["count"]) for failure in await failures(world)
        ]
        await world.pass_time(1800, step=60)
        again = [
            (failure["metadata"]["name"], failure["count"]) for failure in await failures(world)
        ]
        for failure in await failures(world):
            await world.admin.delete(EVENTS, Key("a", failure["metadata"]["name"]))
        await world.pass_time(1800, step=60)
        (late,) = await failures(world)

    assert [(name, count) for name, count in again] == [(name, 2) for name, _ in reported]
    assert (late["involvedObject"]["name"], late["message"]) == ("second", REFUSED)


async def failures(world: World) -> list[dict[str, Any]]:
    page = await world.admin.list(EVENTS, "a")
    return [item for item in page.items if item["reason"] == "FailedScheduling"]


async def test_who_joins_a_claim_would_be_evicted_immediately(world: World) -> None:
    await join_late(world, Scheduling())

    assert "holds a device with an untolerated NoExecute taint" in await where(world, "q")


async def test_kubernetes_lets_it_join(world: World) -> None:
    await join_late(world, Scheduling(SchedulerOptions(compat=Compat.KUBERNETES)))

    assert await where(world, "q") == "node-1"


@pytest.fixture
def advising(world: World) -> World:
    """Return a world in which taints may advise against a device."""
    world.serve(gates=Gates({"SullyPreferNoSchedule": True}))
    return world


async def test_a_taint_that_advises_against(advising: World) -> None:
    world, advice = advising, {"key": "example.com/old", "effect": "PreferNoSchedule"}
    await prepare(world, devices=0)
    await node(world, "node-2")
    await publish(world, "node-1", 1, advice)
    await publish(world, "node-2", 1)
    async with Scheduling(SchedulerOptions(honors_preference=True)).running(world):
        for name in "pq":
            await wanting(world, name)
            await world.settle()

    assert [await where(world, letter) for letter in "pq"] == ["node-2", "node-1"]


async def test_after_a_restart_what_is_taken_stays_taken(world: World) -> None:
    await prepare(world)
    await wanting(world, "p")
    async with Scheduling().running(world):
        await world.settle()
    await wanting(world, "q")
    async with Scheduling().running(world):
        await world.settle()

    assert await where(world, "q") == REFUSED
    assert (await world.admin.get(PODS, Key("a", "p")))["spec"]["nodeName"] == "node-1"

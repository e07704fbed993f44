"""Pods that ask for extended resources which devices provide."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.recording_transport import broken
from controllers.scheduling.placing import (
    CLAIMS,
    CLASSES,
    NODES,
    Scheduling,
    claim,
    event_messages,
    node,
    pod,
    prepare,
    publish,
    wanting,
    where,
)
from controllers.world import PODS, Obj, World
from sully.client.transport import Key
from sully.domain.claims.lifecycle import EXTENDED, FINALIZER

GPU = "example.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"
STEPS = (
    "create resourceclaims",
    "update resourceclaims/status",
    "patch pods/status",
    "create pods/binding",
)


async def backed(world: World, *nodes: str, devices: int = 1) -> None:
    await prepare(world, *nodes, devices=devices)
    patch = {"spec": {"extendedResourceName": GPU}}
    await world.admin.patch(CLASSES, Key("", "gpu"), patch)


async def asking(world: World, name: str, resource: str = GPU, count: int = 1) -> None:
    await pod(world, name, limits={resource: str(count)})


async def claims(world: World) -> list[Obj]:
    return list((await world.admin.list(CLAIMS, "a")).items)


@pytest.mark.parametrize("resource", [GPU, IMPLICIT])
async def test_a_claim_is_made_for_the_pod(world: World, resource: str) -> None:
    await backed(world, devices=2)
    await asking(world, "p", resource, 2)
    async with Scheduling().running(world) as transport:
        await world.settle()

    (made,) = await claims(world)
    metadata, status = made["metadata"], made["status"]
    name = metadata["name"]
    pod = await world.admin.get(PODS, Key("a", "p"))
    assert await where(world, "p") == "node-1"
    assert name.startswith("p-extended-resources-")
    assert metadata["generateName"] == "p-extended-resources-"
    assert metadata["annotations"][EXTENDED] == "true"
    assert metadata["finalizers"] == [FINALIZER]
    assert metadata["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]
    (request,) = made["spec"]["devices"]["requests"]
    assert request["name"] == "container-0-request-0"
    assert request["exactly"] == {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 2,
    }
    results = status["allocation"]["devices"]["results"]
    assert [result["device"] for result in results] == ["gpu-0", "gpu-1"]
    assert [item["name"] for item in status["reservedFor"]] == ["p"]
    assert pod["status"]["extendedResourceClaimStatus"] == {
        "requestMappings": [
            {
                "containerName": "c",
                "resourceName": resource,
                "requestName": "container-0-request-0",
            }
        ],
        "resourceClaimName": name,
    }
    assert transport.calls == list(STEPS)


async def test_beside_a_claim_of_its_own(world: World) -> None:
    await backed(world, devices=2)
    await claim(world, "own")
    await pod(world, "p", "own", limits={GPU: "1"})
    async with Scheduling().running(world):
        await world.settle()

    taken = [
        result["device"]
        for claim in await claims(world)
        for result in claim["status"]["allocation"]["devices"]["results"]
    ]
    assert sorted(taken) == ["gpu-0", "gpu-1"]
    assert await where(world, "p") == "node-1"


async def test_a_node_that_has_the_resource_itself(world: World) -> None:
    await backed(world)
    resources = {"cpu": "8", "memory": "32Gi", "pods": "110", GPU: "1"}
    body = {
        "metadata": {"name": "node-0"},
        "status": {"capacity": resources, "allocatable": resources},
    }
    await world.admin.create(NODES, body)
    async with Scheduling().running(world):
        for name in ("p", "q", "r"):
            await asking(world, name)
            await world.settle()

    assert sorted([await where(world, letter) for letter in "pq"]) == ["node-0", "node-1"]
    assert (await where(world, "r")).startswith(
        "0/2 nodes are available: 1 Insufficient example.com/gpu, 1 cannot allocate all claims."
    )
    assert len(await claims(world)) == 1


async def test_each_device_once(world: World) -> None:
    await backed(world, "node-1", "node-2", devices=2)
    async with Scheduling().running(world):
        for name in ("p", "q", "r", "s", "t"):
            await asking(world, name)
        await wanting(world, "u")
        await world.settle()

    taken = [
        (result["pool"], result["device"])
        for claim in await claims(world)
        for result in claim.get("status", {})
        .get("allocation", {"devices": {}})["devices"]
        .get("results", ())
    ]
    assert len(taken) == len(set(taken)) == 4


async def test_a_class_that_comes_later(world: World) -> None:
    await prepare(world)
    await asking(world, "p")
    async with Scheduling().running(world):
        await world.settle()
        before = await where(world, "p")
        await world.admin.patch(CLASSES, Key("", "gpu"), {"spec": {"extendedResourceName": GPU}})
        await world.settle()

    assert before.startswith("0/1 nodes are available: 1 Insufficient example.com/gpu.")
    assert await where(world, "p") == "node-1"


@pytest.mark.parametrize("step", STEPS)
async def test_a_write_that_fails_is_tried_again(world: World, step: str) -> None:
    await backed(world)
    async with Scheduling().running(world) as transport:
        transport.failures[step] = broken(2)
        await asking(world, "p")
        await world.pass_time(10, step=1)

    assert await where(world, "p") == "node-1"
    assert len(await claims(world)) == 1


@pytest.mark.parametrize("step", STEPS)
async def test_an_answer_that_gets_lost(world: World, step: str) -> None:
    await backed(world)
    async with Scheduling().running(world) as transport:
        transport.losses[step] = broken()
        await asking(world, "p")
        await world.pass_time(10, step=1)

    assert await where(world, "p") == "node-1"
    assert len(await claims(world)) == 1
    assert await event_messages(world, "FailedScheduling") == []


async def test_what_a_stop_left_behind_is_replaced(world: World) -> None:
    await backed(world)
    async with Scheduling().running(world) as transport:
        transport.failures["create pods/binding"] = broken(100)
        await asking(world, "p")
        await world.settle()
    (before,) = await claims(world)
    async with Scheduling().running(world):
        await world.settle()

    (after,) = await claims(world)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert await where(world, "p") == "node-1"
    assert await event_messages(world, "FailedScheduling") == [
        "p: 0/1 nodes are available: 1 cannot schedule extended resource claim. deletion of"
        " ResourceClaim completed, preemption: 0/1 nodes are available: 1 Preemption is not"
        " helpful for scheduling."
    ]


async def test_a_pod_that_cannot_be_bound_gives_its_devices_back(world: World) -> None:
    await backed(world)

    async def steal() -> None:
        other = {"request": "r", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}
        await wanting(world, "thief")
        patch: dict[str, Any] = {"status": {"allocation": {"devices": {"results": [other]}}}}
        await world.admin.patch(CLAIMS, Key("a", "thief"), patch, subresource="status")

    async with Scheduling().running(world) as transport:
        transport.before["update resourceclaims/status"] = steal
        await asking(world, "p")
        await world.pass_time(3, step=1)
        reported = await event_messages(world, "FailedScheduling")
        await node(world, "node-2")
        await publish(world, "node-2")
        await world.pass_time(5, step=1)

    assert any("is allocated to claim a/thief" in message for message in reported)
    assert await where(world, "p") == "node-2"
    assert sorted(claim["metadata"]["name"].split("-")[0] for claim in await claims(world)) == [
        "p",
        "thief",
    ]

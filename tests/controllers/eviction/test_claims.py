"""Through which claims a pod is on a device: from templates, replaced, shared, of groups."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.eviction.evicting import (
    CLAIMS,
    Evicting,
    allocate,
    bound_pod,
    claim,
    event_messages,
    fate,
    prepare,
    rule,
)
from controllers.world import PODS, Obj, World, orders, play
from manifests import claim_references, claim_spec, pod_spec
from sully.client.options import DeleteOptions
from sully.client.transport import Key

POD = Key("a", "p")
NOW = DeleteOptions(grace_period_seconds=0)
GROUPS = {"DRAWorkloadResourceClaims": True}
TEAM = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "team", "uid": "g"}


async def templated_pod(world: World) -> Obj:
    spec = pod_spec(template="t", nodeName="node-1")
    return await world.create(PODS, "a", "p", spec=spec)


async def generated_claim(world: World, uid: str) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
    metadata = {"ownerReferences": [owner]}
    await world.create(CLAIMS, "a", "p-gpu-x", metadata=metadata, spec=claim_spec())
    await allocate(world, "p-gpu-x", pods=("p",))


async def name_claim(world: World, **entry: str) -> None:
    change = {"status": {"resourceClaimStatuses": [{"name": "gpu"} | entry]}}
    await world.admin.patch(PODS, POD, change, subresource="status")


async def make_claim(world: World) -> None:
    uid = (await world.admin.get(PODS, POD))["metadata"]["uid"]
    await generated_claim(world, uid)


async def set_claim_status(world: World) -> None:
    await name_claim(world, resourceClaimName="p-gpu-x")


async def make_rule(world: World) -> None:
    await rule(world)


@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize("steps", orders(make_claim, set_claim_status, make_rule))
async def test_a_claim_from_a_template_in_every_order(
    world: World, steps: tuple[Any, ...], start: int
) -> None:
    evicting = Evicting()
    await prepare(world)
    await templated_pod(world)

    await play(world, steps, evicting.make(), start=start, pauses=True)

    assert await fate(world, "p") == "evicted"
    assert evicting.calls() == ["get", "patch", "delete"]
    assert await event_messages(world) == ["p: Marking for deletion"]


async def test_a_claim_that_the_pod_does_not_know_of_is_not_its_own(world: World) -> None:
    await prepare(world)
    await templated_pod(world)
    await make_claim(world)
    await rule(world)
    async with world.controlled(Evicting().make()):
        await world.pass_time(5)
        assert await fate(world, "p") == "stays"
        await name_claim(world)  # no claim is needed
        await world.pass_time(5)

    assert await fate(world, "p") == "stays"


async def test_a_claim_of_another_pod_is_ignored_until_it_is_replaced(world: World) -> None:
    await prepare(world)
    await templated_pod(world)
    await generated_claim(world, "another")
    await set_claim_status(world)
    async with world.controlled(Evicting().make()):
        await rule(world)
        await world.pass_time(5)
        assert await fate(world, "p") == "stays"
        await world.admin.delete(CLAIMS, Key("a", "p-gpu-x"))
        await make_claim(world)
        await world.settle()

    assert await fate(world, "p") == "evicted"


async def test_consumers_that_do_not_exist_are_skipped(world: World) -> None:
    await prepare(world)
    await claim(world, "shared")
    for name in ("p", "q", "gone"):
        await bound_pod(world, name, "shared")
    await allocate(world, "shared", pods=("gone", "p", "q"))
    await world.admin.delete(PODS, Key("a", "gone"), NOW)
    async with world.controlled(Evicting().make()):
        await rule(world)
        await world.settle()

    assert [await fate(world, name) for name in ("p", "q", "gone")] == [
        "evicted",
        "evicted",
        "gone",
    ]


async def member(world: World, name: str, *claims: str) -> None:
    spec = pod_spec(
        nodeName="node-1",
        resourceClaims=claim_references(*claims),
        schedulingGroup={"podGroupName": "team"},
    )
    await world.create(PODS, "a", name, spec=spec)


SWITCHES = {
    "on": (Evicting(gates=GROUPS), "evicted"),
    "off": (Evicting(), "stays"),
    "on, as Kubernetes": (Evicting(gates=GROUPS, strict=True), "evicted"),
}


@pytest.mark.parametrize("name", SWITCHES)
async def test_a_claim_of_a_group_is_held_by_members_that_refer_to_it(
    world: World, name: str
) -> None:
    like, want = SWITCHES[name]
    evicting = Evicting(gates=like.gates, strict=like.strict)
    await prepare(world)
    await claim(world, "shared")
    await member(world, "p", "shared")
    await member(world, "idle")
    await bound_pod(world, "stranger", "shared")
    await allocate(world, "shared", pods=())
    change = {"status": {"reservedFor": [TEAM]}}
    await world.admin.patch(CLAIMS, Key("a", "shared"), change, subresource="status")
    async with world.controlled(evicting.make()):
        await rule(world)
        await world.pass_time(5)

    assert await fate(world, "p") == want
    assert [await fate(world, name) for name in ("idle", "stranger")] == ["stays", "stays"]

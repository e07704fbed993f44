"""Pods that got their node past the scheduler reserve the claims that are allocated."""

from __future__ import annotations

import pytest

from controllers.claims.using import (
    CLAIMS,
    Claiming,
    allocate,
    bind,
    claim,
    claims,
    controller,
    delete,
    pod,
    prepare,
    prepare_template,
    set_status,
    state,
    used_by,
)
from controllers.recording_transport import broken
from controllers.world import PODS, World
from sully.client.options import DeleteOptions
from sully.client.transport import Key
from sully.machinery.errors import Conflict

SLOWLY = DeleteOptions(grace_period_seconds=30)


async def test_a_bound_pod_reserves_an_allocated_claim(world: World) -> None:
    await prepare(world)
    await claim(world)
    await allocate(world)
    made = await pod(world, node="node-1", named="c")
    async with world.controlled(controller()):
        await world.settle()

    assert await state(world) == "allocated p protected"
    result = await world.admin.get(CLAIMS, Key("a", "c"))
    assert result["status"]["reservedFor"] == [used_by(made)]


async def test_a_pod_that_is_bound_later(world: World) -> None:
    await prepare(world)
    await claim(world)
    await allocate(world)
    await pod(world, named="c")
    async with world.controlled(controller()):
        await world.settle()
        assert await state(world) == "allocated protected"
        await bind(world)
        await world.settle()

    assert await state(world) == "allocated p protected"


async def test_a_claim_that_is_allocated_later(world: World) -> None:
    await prepare(world)
    await claim(world)
    await pod(world, node="node-1", named="c")
    async with world.controlled(controller()):
        await world.settle()
        # Nobody allocates for such a pod.
        assert await state(world) == "free"
        await allocate(world)
        await world.settle()

    assert await state(world) == "allocated p protected"


async def test_a_made_claim_is_reserved(world: World) -> None:
    await prepare_template(world)
    await pod(world, node="node-1", g="t")
    async with world.controlled(controller()):
        await world.settle()
        (name,) = await claims(world)
        await allocate(world, name)
        await world.settle()

    assert await state(world, name) == "allocated p protected"


async def test_those_who_share_a_claim_are_added_one_by_one(world: World) -> None:
    await prepare(world)
    await claim(world)
    await allocate(world)
    for name in ("p1", "p2", "p3"):
        await pod(world, name, node="node-1", named="c")
    async with world.controlled(controller()):
        await world.pass_time(5)

    assert sorted((await state(world)).split()[1].split(",")) == ["p1", "p2", "p3"]


async def test_a_user_who_was_quicker_is_not_overwritten(world: World) -> None:
    claiming = Claiming()
    await prepare(world)
    await claim(world)
    other = await pod(world, "other", named="c")
    await allocate(world)

    async def reserve() -> None:
        status = {"status": {"reservedFor": [used_by(other)]}}
        await world.admin.patch(CLAIMS, Key("a", "c"), status, subresource="status")

    async with world.controlled(claiming.make):
        await world.settle()
        claiming.asked.before["patch resourceclaims/status"] = reserve
        await pod(world, node="node-1", named="c")
        await world.pass_time(1)

    assert await state(world) == "allocated other,p protected"


async def test_a_refusal_is_tried_again(world: World) -> None:
    claiming = Claiming()
    await prepare(world)
    await claim(world)
    await allocate(world)
    async with world.controlled(claiming.make):
        claiming.asked.failures["patch resourceclaims/status"] = broken(error=Conflict)
        await pod(world, node="node-1", named="c")
        await world.pass_time(1)

    assert await state(world) == "allocated p protected"


async def test_a_full_claim_takes_the_next_when_a_pod_is_deleted(world: World) -> None:
    await prepare(world)
    await claim(world)
    users = [used_by(await pod(world, f"u{index}", named="c")) for index in range(256)]
    await allocate(world, "c", *users)
    await pod(world, node="node-1", named="c")
    async with world.controlled(controller()):
        await world.settle()
        assert "p" not in (await state(world)).split()[1].split(",")
        await delete(world, PODS, "u7")
        await world.pass_time(1)

    reserved = (await state(world)).split()[1].split(",")
    assert len(reserved) == 256
    assert ("p" in reserved, "u7" in reserved) == (True, False)


@pytest.mark.parametrize("why", ["finished", "terminating"])
async def test_a_pod_that_is_done_or_is_deleted_reserves_nothing(world: World, why: str) -> None:
    await prepare(world)
    await claim(world)
    await pod(world, node="node-1", named="c")
    if why == "finished":
        await set_status(world, phase="Succeeded")
    else:
        await delete(world, PODS, "p", SLOWLY)
    await allocate(world)
    async with world.controlled(controller()):
        await world.settle()

    assert await state(world) == "allocated protected"


async def test_a_claim_on_its_way_out_takes_nobody(world: World) -> None:
    await prepare(world)
    await claim(world)
    user = await pod(world, "user", node="node-1", named="c")
    await allocate(world, "c", used_by(user))
    await delete(world, CLAIMS, "c")
    await pod(world, node="node-1", named="c")
    async with world.controlled(controller()):
        await world.settle()

    assert await state(world) == "allocated user protected terminating"


async def test_a_claim_that_was_made_for_another_pod_is_left_alone(world: World) -> None:
    await prepare_template(world)
    other = await pod(world, "other", h="t")
    await claim(world, "c", other)
    await allocate(world)
    await pod(world, node="node-1", g="t")
    entry = {"name": "g", "resourceClaimName": "c"}
    await set_status(world, resourceClaimStatuses=[entry])
    async with world.controlled(controller()):
        await world.settle()

    assert await state(world) == "allocated protected"


async def test_the_claim_of_an_extended_resource(world: World) -> None:
    await prepare(world)
    made = await pod(world, node="node-1", extended="example.com/gpu")
    await claim(world, "c", made)
    mapping = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "r"}
    extended = {"resourceClaimName": "c", "requestMappings": [mapping]}
    await set_status(world, extendedResourceClaimStatus=extended)
    async with world.controlled(controller()):
        await world.settle()
        await allocate(world)
        await world.settle()

    assert await state(world) == "allocated p protected"

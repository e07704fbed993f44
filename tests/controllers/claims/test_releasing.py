"""What nobody needs any more is given back: reservations, devices, finalizers, claims."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.claims.using import (
    CLAIMS,
    RESULT,
    Claiming,
    allocate,
    claim,
    controller,
    delete,
    get_claim,
    nobody,
    pod,
    prepare,
    set_status,
    state,
    used_by,
)
from controllers.lifecycles import Late
from controllers.recording_transport import broken
from controllers.world import PODS, World
from sully.client.options import DeleteOptions
from sully.client.transport import Key
from sully.domain.claims.lifecycle import EXTENDED

SLOWLY = DeleteOptions(grace_period_seconds=30)
FAST = ["patch resourceclaims/status", "patch resourceclaims"]


async def test_a_pod_that_does_not_exist_uses_nothing(world: World) -> None:
    claiming = Claiming()
    await prepare(world)
    await claim(world)
    async with world.controlled(claiming.make):
        await world.settle()
        await allocate(world, "c", nobody(), protected=False)
        await world.settle()

    # Without the finalizer another user allocated it, and has to take the devices back.
    assert await state(world) == "allocated"
    assert claiming.asked.calls == ["get pods", "patch resourceclaims/status"]


async def test_the_last_pod_gives_the_devices_back(world: World) -> None:
    claiming = Claiming()
    await prepare(world)
    await claim(world)
    user = await pod(world, node="node-1", named="c")
    report = {name: RESULT[name] for name in ("driver", "pool", "device")}
    await allocate(world, "c", used_by(user), devices=[report])
    async with world.controlled(claiming.make):
        await world.settle()
        await delete(world, PODS, "p")
        await world.settle()

    result = await get_claim(world)
    assert result is not None
    assert result["status"] == {}
    assert await state(world) == "free"
    # The pod's end was seen, so nobody had to ask.
    assert claiming.asked.calls == FAST


async def test_those_who_stay_keep_the_devices(world: World) -> None:
    await prepare(world)
    await claim(world)
    users = [await pod(world, name, node="node-1", named="c") for name in ("p1", "p2", "p3")]
    await allocate(world, "c", *map(used_by, users))
    async with world.controlled(controller()):
        await world.settle()
        await delete(world, PODS, "p2")
        await world.settle()
        assert await state(world) == "allocated p1,p3 protected"
        await delete(world, PODS, "p1")
        await delete(world, PODS, "p3")
        await world.settle()

    assert await state(world) == "free"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_finished_pod_uses_nothing(world: World, phase: str) -> None:
    await prepare(world)
    await claim(world)
    user = await pod(world, node="node-1", named="c")
    await allocate(world, "c", used_by(user))
    async with world.controlled(controller()):
        await world.settle()
        await set_status(world, phase=phase)
        await world.settle()

    assert await state(world) == "free"


async def test_a_pod_that_ends_slowly_keeps_its_devices_to_the_end(world: World) -> None:
    await prepare(world)
    await claim(world)
    user = await pod(world, node="node-1", named="c")
    await allocate(world, "c", used_by(user))
    async with world.controlled(controller()):
        await delete(world, PODS, "p", SLOWLY)
        await world.settle()
        assert await state(world) == "allocated p protected"
        await delete(world, PODS, "p")
        await world.settle()

    assert await state(world) == "free"


async def test_a_pod_that_was_deleted_before_it_had_a_node(world: World) -> None:
    await prepare(world)
    await claim(world)
    user = await pod(world, named="c")
    await world.admin.patch(PODS, Key("a", "p"), {"metadata": {"finalizers": ["x.io/y"]}})
    await allocate(world, "c", used_by(user))
    async with world.controlled(controller()):
        await world.settle()
        assert await state(world) == "allocated p protected"
        await delete(world, PODS, "p", DeleteOptions())
        await world.settle()

    assert await state(world) == "free"


async def test_a_new_pod_of_the_same_name_is_not_the_one(world: World) -> None:
    await prepare(world)
    await claim(world)
    await pod(world, node="node-1", named="c")
    await allocate(world, "c", nobody(name="p"), protected=False)
    async with world.controlled(controller()):
        await world.pass_time(1)

    result = await get_claim(world)
    assert result is not None
    (entry,) = result["status"]["reservedFor"]
    assert entry["uid"] != nobody()["uid"]


async def test_a_pod_that_the_cache_has_not_seen_keeps_its_claim(world: World) -> None:
    claiming = Claiming()
    await prepare(world)
    await claim(world)
    late = Late(world, "pods")
    async with world.controlled(claiming.make):
        await world.settle()
        with late:
            user = await pod(world, node="node-1", named="c")
            await allocate(world, "c", used_by(user))
            await world.settle()
            assert await state(world) == "allocated p protected"
        await world.settle()

    assert claiming.writes() == []


async def test_others_than_pods_are_kept(world: World) -> None:
    await prepare(world)
    await claim(world)
    other = {"apiGroup": "example.com", "resource": "jobs", "name": "j", "uid": "u1"}
    await allocate(world, "c", other, nobody())
    async with world.controlled(controller()):
        await world.settle()

    assert await state(world) == "allocated j protected"


async def test_what_nobody_used_yet_stays_allocated(world: World) -> None:
    claiming = Claiming()
    await prepare(world)
    await claim(world)
    await allocate(world)
    async with world.controlled(claiming.make):
        await world.settle()

    assert await state(world) == "allocated protected"
    assert claiming.asked.calls == []


async def test_a_finalizer_without_an_allocation_is_how_the_scheduler_begins(world: World) -> None:
    await prepare(world)
    await claim(world)
    await world.admin.patch(
        CLAIMS,
        Key("a", "c"),
        {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}},
    )
    async with world.controlled(controller()):
        await world.settle()

    assert await state(world) == "protected"


async def test_a_deleted_claim_waits_for_its_pods(world: World) -> None:
    await prepare(world)
    await claim(world)
    user = await pod(world, node="node-1", named="c")
    await allocate(world, "c", used_by(user))
    async with world.controlled(controller()):
        await delete(world, CLAIMS, "c")
        await world.settle()
        assert await state(world) == "allocated p protected terminating"
        await delete(world, PODS, "p")
        await world.settle()

    assert await state(world) == "gone"


@pytest.mark.parametrize("allocated", [True, False])
async def test_a_deleted_claim_that_nobody_uses_is_deleted(world: World, allocated: bool) -> None:
    await prepare(world)
    await claim(world)
    more: dict[str, Any] = {} if allocated else {"allocation": None}
    await allocate(world, "c", **more)
    async with world.controlled(controller()):
        await world.settle()
        await delete(world, CLAIMS, "c")
        await world.settle()

    assert await state(world) == "gone"


async def test_other_finalizers_are_left_alone(world: World) -> None:
    await prepare(world)
    await claim(world)
    await allocate(world)
    both = {"metadata": {"finalizers": ["x.io/y", "resource.kubernetes.io/delete-protection"]}}
    await world.admin.patch(CLAIMS, Key("a", "c"), both)
    await delete(world, CLAIMS, "c")
    async with world.controlled(controller()):
        await world.settle()

    result = await get_claim(world)
    assert result is not None
    assert result["metadata"]["finalizers"] == ["x.io/y"]


async def test_a_failure_between_the_two_writes(world: World) -> None:
    claiming = Claiming()
    await prepare(world)
    await claim(world)
    user = await pod(world, node="node-1", named="c")
    await allocate(world, "c", used_by(user))
    async with world.controlled(claiming.make):
        await world.settle()
        # One for the first attempt, one for that which the first write itself causes.
        claiming.asked.failures["patch resourceclaims"] = broken(2)
        await delete(world, PODS, "p")
        await world.settle()
        assert await state(world) == "protected"
        await world.pass_time(1)

    assert await state(world) == "free"


async def test_whoever_reserves_in_between_keeps_the_devices(world: World) -> None:
    claiming = Claiming()
    await prepare(world)
    await claim(world)
    users = [await pod(world, "p1", "node-1", "c"), await pod(world, "p2", named="c")]
    await allocate(world, "c", used_by(users[0]))

    async def reserve() -> None:
        status = {"status": {"reservedFor": list(map(used_by, users))}}
        await world.admin.patch(CLAIMS, Key("a", "c"), status, subresource="status")

    async with world.controlled(claiming.make):
        await world.settle()
        claiming.asked.before["patch resourceclaims/status"] = reserve
        await delete(world, PODS, "p1")
        await world.pass_time(1)

    assert await state(world) == "allocated p2 protected"


# -- claims that were made for pods ---------------------------------------------------------------


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@pytest.mark.parametrize("allocated", [True, False])
async def test_the_claim_of_a_finished_pod_is_deleted(
    world: World, phase: str, allocated: bool
) -> None:
    await prepare(world)
    owner = await pod(world, node="node-1")
    await claim(world, "c", owner)
    if allocated:
        await allocate(world, "c", used_by(owner))
    async with world.controlled(controller()):
        await world.settle()
        assert await state(world) != "gone"
        await set_status(world, phase=phase)
        await world.settle()

    assert await state(world) == "gone"


async def test_the_claim_of_a_pod_that_went_is_deleted(world: World) -> None:
    claiming = Claiming()
    await prepare(world)
    owner = await pod(world, node="node-1")
    await claim(world, "c", owner)
    await allocate(world, "c", used_by(owner))
    async with world.controlled(claiming.make):
        await world.settle()
        await delete(world, PODS, "p")
        await world.settle()

    assert await state(world) == "gone"
    assert claiming.asked.calls == [*FAST, "delete resourceclaims"]


async def test_the_claim_of_a_pod_that_was_replaced_is_deleted(world: World) -> None:
    await prepare(world)
    owner = await pod(world)
    await claim(world, "c", owner)
    await delete(world, PODS, "p")
    await pod(world)
    async with world.controlled(controller()):
        await world.settle()

    assert await state(world) == "gone"


async def test_the_claim_of_a_pod_that_was_never_seen_is_the_garbage_collectors(
    world: World,
) -> None:
    await prepare(world)
    owner = await pod(world)
    await claim(world, "c", owner)
    await delete(world, PODS, "p")
    async with world.controlled(controller()):
        await world.settle()

    assert await state(world) == "free"


async def test_a_claim_that_was_let_go_stays(world: World) -> None:
    """Deleted with its dependents orphaned: then the owner reference is removed before the pod."""
    await prepare(world)
    owner = await pod(world, node="node-1")
    await claim(world, "c", owner)
    late = Late(world, "resourceclaims")
    async with world.controlled(controller()):
        await world.settle()
        with late:
            await world.admin.patch(CLAIMS, Key("a", "c"), {"metadata": {"ownerReferences": None}})
            await delete(world, PODS, "p")
            await world.settle()
        await world.pass_time(1)

    assert await state(world) == "free"


async def test_the_claim_of_an_extended_resource_is_deleted_with_its_pod(world: World) -> None:
    await prepare(world)
    owner = await pod(world, node="node-1")
    await claim(world, "c", owner, annotations={EXTENDED: "true"})
    await allocate(world, "c", used_by(owner))
    async with world.controlled(controller()):
        await world.settle()
        await set_status(world, phase="Succeeded")
        await world.settle()

    assert await state(world) == "gone"


async def test_a_claim_of_ones_own_stays_when_its_pod_is_done(world: World) -> None:
    await prepare(world)
    await claim(world)
    user = await pod(world, node="node-1", named="c")
    await allocate(world, "c", used_by(user))
    async with world.controlled(controller()):
        await set_status(world, phase="Succeeded")
        await world.settle()

    assert await state(world) == "free"

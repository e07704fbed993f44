"""What has not happened yet need not happen."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.eviction.evicting import (
    CLAIMS,
    SLICES,
    Evicting,
    event_messages,
    fate,
    for_seconds,
    holder,
    marked,
    prepare,
    publish,
    retaint,
    rule,
    set_effect,
    slice_body,
    unrule,
)
from controllers.world import World
from sully.client.transport import Key

POD = Key("a", "p")


async def untaint(world: World) -> None:
    await retaint(world)


async def weaken(world: World) -> None:
    await retaint(world, marked("NoSchedule"))


async def unpublish(world: World) -> None:
    await world.admin.delete(SLICES, Key("", "s"))


async def publish_again(world: World) -> None:
    await world.admin.create(SLICES, slice_body((), "s2", 1, 2))


async def deallocate(world: World) -> None:
    nothing = {"status": {"allocation": None, "reservedFor": None}}
    await world.admin.patch(CLAIMS, POD, nothing, subresource="status")


async def unclaim(world: World) -> None:
    await world.admin.delete(CLAIMS, POD)


CANCELS = [untaint, weaken, unpublish, publish_again, deallocate, unclaim]


@pytest.mark.parametrize("cancel", CANCELS)
async def test_what_has_not_happened_yet_can_be_cancelled(world: World, cancel: Any) -> None:
    evicting = Evicting()
    await prepare(world)
    await holder(world, "p", tolerations=(for_seconds(60),))
    await publish(world, marked())
    async with world.controlled(evicting.make()):
        await world.pass_time(30)
        assert await event_messages(world) == []
        await cancel(world)
        await world.pass_time(100, step=10)

    assert await fate(world, "p") == "stays"
    assert await event_messages(world) == ["p: Cancelling deletion"]
    assert evicting.calls() == []


@pytest.mark.parametrize("how", ["delete", "weaken"])
async def test_a_rule_that_is_deleted_or_weakens_cancels(world: World, how: str) -> None:
    await prepare(world)
    await holder(world, "p", tolerations=(for_seconds(60),))
    await rule(world)
    async with world.controlled(Evicting().make()):
        await world.pass_time(30)
        await (unrule(world) if how == "delete" else set_effect(world, "None"))
        await world.pass_time(100, step=10)

    assert await fate(world, "p") == "stays"
    assert await event_messages(world) == ["p: Cancelling deletion"]


async def test_a_slice_that_is_deleted_and_comes_cancels_and_evicts(world: World) -> None:
    await prepare(world)
    await holder(world, "p", tolerations=(for_seconds(60),))
    await publish(world, marked())
    async with world.controlled(Evicting().make()):
        await world.pass_time(30)
        await unpublish(world)
        await world.settle()
        await publish(world, {**marked(), "timeAdded": "2030-01-01T12:00:00Z"})
        await world.pass_time(30)

    assert await event_messages(world) == ["p: Cancelling deletion", "p: Marking for deletion"]


async def test_older_slices_count_again_when_the_newest_is_deleted(world: World) -> None:
    await prepare(world)
    await holder(world, "p")
    await publish(world, marked())
    await publish_again(world)
    async with world.controlled(Evicting().make()):
        await world.settle()
        assert await fate(world, "p") == "stays"
        await world.admin.delete(SLICES, Key("", "s2"))
        await world.settle()

    assert await fate(world, "p") == "evicted"

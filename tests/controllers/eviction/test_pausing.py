"""A rule that is paused evicts no pod, and its status reports it."""

from __future__ import annotations

import pytest

from controllers.eviction.evicting import (
    Evicting,
    conditions,
    event_messages,
    fate,
    for_seconds,
    holder,
    holders,
    left,
    marked,
    pause,
    prepare,
    publish,
    rule,
    status,
    unrule,
)
from controllers.world import World, play
from sully.domain.eviction.status import PAUSED

NEEDS_ONE = "1 pod needs to be evicted in 1 namespace."
VALUES = {"true": True, "firmware not ready": True, "false": False, "False": False, "": False}


@pytest.mark.parametrize(("value", "holds"), VALUES.items())
async def test_what_the_annotation_means(world: World, value: str, holds: bool) -> None:
    async with Evicting().beside_a_holder(world):
        await rule(world, paused=value)
        await world.pass_time(30)

        assert await fate(world, "p") == ("stays" if holds else "evicted")
        assert (PAUSED in await conditions(world)) is holds


async def test_pods_that_would_be_evicted_are_still_counted_and_reported_why_not(
    world: World,
) -> None:
    async with Evicting().beside_a_holder(world):
        await rule(world, paused="firmware not ready")
        await world.pass_time(2)

        assert await status(world) == ("True", "PodsPendingEviction", NEEDS_ONE)
        reported = (await conditions(world))[PAUSED]
        assert (reported["status"], reported["reason"]) == ("True", "Paused")
        assert reported["message"] == "firmware not ready"
        assert await event_messages(world) == []


async def paused_rule(world: World) -> None:
    await rule(world, paused="true")


async def resume(world: World) -> None:
    await pause(world, None)


async def test_resuming_continues_and_takes_the_condition_away(world: World) -> None:
    await prepare(world)
    await holder(world, "p")
    async with world.controlled(Evicting().make()):
        await rule(world, paused="true")
        await world.pass_time(5)
        await pause(world, None)
        await world.settle()
        assert await fate(world, "p") == "evicted"
        await world.pass_time(2)

        assert PAUSED not in await conditions(world)
        assert (await status(world))[1] == "Completed"


async def test_pausing_in_mid_eviction_stops_the_rest_and_resuming_keeps_the_rate(
    world: World,
) -> None:
    await prepare(world)
    await holders(world, 20)
    async with world.controlled(Evicting().make()):
        await rule(world, rate=1)
        await world.pass_time(2, step=0.5)
        assert len(await left(world)) == 12
        await pause(world, "wait")
        await world.pass_time(3, step=0.5)
        assert len(await left(world)) == 12
        await pause(world, None)
        await world.settle()
        # Three tokens came back meanwhile.
        assert len(await left(world)) == 15
        await world.pass_time(1, step=0.5)
        assert len(await left(world)) == 16
    assert [message for message in await event_messages(world) if "Cancelling" in message] == []


async def test_another_taint_evicts_and_the_paused_rule_gets_no_credit(world: World) -> None:
    await prepare(world)
    await holder(world, "p")
    async with world.controlled(Evicting().make()):
        await rule(world, name="held", paused="true")
        await rule(world, name="acting")
        await world.pass_time(2)

        assert await fate(world, "p") == "evicted"
        assert (await status(world, "acting"))[1] == "Completed"
        assert await status(world, "held") == ("False", "NotStarted", "")


async def test_a_pod_whose_time_comes_in_a_pause_waits_for_its_end(world: World) -> None:
    await prepare(world)
    await holder(world, "p", tolerations=(for_seconds(10),))
    async with world.controlled(Evicting().make()):
        await rule(world)
        await world.pass_time(5)
        await pause(world, "true")
        await world.pass_time(10)
        assert await fate(world, "p") == "stays"
        await pause(world, "false")
        await world.settle()

    assert await fate(world, "p") == "evicted"


async def test_a_rule_that_is_deleted_while_paused_cancels(world: World) -> None:
    await prepare(world)
    await holder(world, "p")
    async with world.controlled(Evicting().make()):
        await rule(world, paused="true")
        await world.pass_time(5)
        await unrule(world)
        await world.pass_time(5)

    assert await fate(world, "p") == "stays"
    assert await event_messages(world) == ["p: Cancelling deletion"]


async def test_a_pause_does_not_let_new_pods_in(world: World) -> None:
    """What blocks scheduling is the taint of the device, and that stays."""
    evicting = Evicting()
    await prepare(world)
    await publish(world, devices=1)
    async with world.controlled(evicting.make()):
        await rule(world, paused="true")
        await world.settle()
        assert evicting.inventory is not None
        (pool,) = evicting.inventory.pools()
        known = evicting.inventory.pool(pool)
        assert known is not None
        (published,) = known.devices()
        device = evicting.inventory.device(published.id)

    assert device is not None
    assert [taint.taint.effect for taint in device.taints] == ["NoExecute"]


@pytest.mark.parametrize("start", range(3))
async def test_whenever_the_controller_starts_the_end_is_the_same(world: World, start: int) -> None:
    await prepare(world)
    await holder(world, "p")

    await play(world, (paused_rule, resume), Evicting().make(), start=start, pauses=True)

    assert await fate(world, "p") == "evicted"
    assert await event_messages(world) == ["p: Marking for deletion"]


OFF = {"strict": Evicting(strict=True), "gate": Evicting(gates={"SullyEvictionGuards": False})}


@pytest.mark.parametrize("name", OFF)
async def test_where_it_is_off_the_annotation_means_nothing(world: World, name: str) -> None:
    evicting = Evicting(strict=OFF[name].strict, gates=OFF[name].gates)
    await prepare(world)
    await holder(world, "p")
    async with world.controlled(evicting.make()):
        await rule(world, paused="true")
        await world.pass_time(20)

        assert await fate(world, "p") == "evicted"
        assert PAUSED not in await conditions(world)


async def test_taints_of_drivers_have_no_pause(world: World) -> None:
    await prepare(world)
    await holder(world, "p")
    async with world.controlled(Evicting().make()):
        await rule(world, paused="true")
        await publish(world, marked())
        await world.settle()

    assert await fate(world, "p") == "evicted"

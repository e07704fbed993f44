"""Pods that vanish, servers that fail, and reasons that go away in between."""

from __future__ import annotations

from controllers.eviction.evicting import (
    Evicting,
    event_messages,
    fate,
    rule,
    set_effect,
)
from controllers.recording_transport import broken
from controllers.world import PODS, World
from sully.client.options import DeleteOptions
from sully.client.transport import Key
from sully.controllers.eviction.controller import BACKOFF

POD = Key("a", "p")
NOW = DeleteOptions(grace_period_seconds=0)


async def test_a_pod_that_vanishes_before_it_is_looked_at(world: World) -> None:
    evicting = Evicting()
    async with evicting.beside_a_holder(world) as transport:
        transport.failures["get pods"] = broken()
        await rule(world)
        await world.settle()
        await world.admin.delete(PODS, POD, NOW)
        await world.pass_time(10)

    assert "delete" not in evicting.calls()
    assert await event_messages(world) == []
    assert evicting.metric("pod_deletions_total") == 0


async def test_a_failure_is_tried_again(world: World) -> None:
    evicting = Evicting()
    async with evicting.beside_a_holder(world) as transport:
        transport.failures["get pods"] = broken()
        await rule(world)
        await world.settle()
        assert await fate(world, "p") == "stays"
        await world.pass_time(1)

    assert evicting.calls() == ["get", "get", "patch", "delete"]
    assert await event_messages(world) == ["p: Marking for deletion"]


def test_the_first_retry_comes_after_five_milliseconds() -> None:
    assert [BACKOFF.delay(failures) for failures in (1, 2, 3, 100)] == [0.005, 0.01, 0.02, 1000]


async def test_what_is_marked_already_is_not_marked_again(world: World) -> None:
    evicting = Evicting()
    async with evicting.beside_a_holder(world) as transport:
        transport.failures["delete pods"] = broken()
        await rule(world)
        await world.pass_time(1)

    assert evicting.calls() == ["get", "patch", "delete", "get", "delete"]
    assert await fate(world, "p") == "evicted"


async def test_a_late_delete_shows_in_the_latency(world: World) -> None:
    async def take_long() -> None:
        world.clock.advance(3)

    evicting = Evicting()
    async with evicting.beside_a_holder(world) as transport:
        transport.before["delete pods"] = take_long
        await rule(world)
        await world.settle()

    assert evicting.metric("pod_deletion_duration_seconds_sum") == 3


async def test_a_taint_that_is_removed_meanwhile_spares_the_pod(world: World) -> None:
    async def weaken() -> None:
        await set_effect(world, "None")
        await world.settle()

    evicting = Evicting()
    await rule(world, "None")
    async with evicting.beside_a_holder(world) as transport:
        transport.before["get pods"] = weaken
        await set_effect(world, "NoExecute")
        await world.pass_time(10)

    assert evicting.calls() == ["get"]
    assert await fate(world, "p") == "stays"
    assert await event_messages(world) == ["p: Cancelling deletion"]

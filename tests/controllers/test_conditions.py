"""Conditions are written when they change, and never over another user's."""

from __future__ import annotations

from datetime import timedelta

import pytest

import manifests
from controllers.world import World
from sully.client.transport import Key
from sully.controllers.framework.conditions import write_conditions
from sully.domain.placement.results.conditions import PlacementCondition
from sully.machinery.errors import Conflict
from sully.views.fleet_kinds import SETS

GOOD, BAD = (
    PlacementCondition("A", "True", "Good", "well"),
    PlacementCondition("A", "False", "Bad", "ill"),
)
OTHER = PlacementCondition("B", "True", "Good", "")


async def _report(world: World, *findings: PlacementCondition, **others: object) -> bool:
    set_ = await world.admin.get(SETS, Key("", "s"))
    now = world.clock.now()
    return await write_conditions(
        world.admin,
        SETS,
        set_,
        findings,
        now=now,
        field_manager="test",
        other_fields=others or None,
    )


async def _conditions(world: World) -> list[tuple[str, str, str]]:
    result = await world.admin.get(SETS.read_as(dict), Key("", "s"))
    every = result["status"]["conditions"]
    return [(item["type"], item["status"], item["lastTransitionTime"]) for item in every]


@pytest.fixture
async def world() -> World:
    """Return a world with a set in it."""
    made = World()
    await made.admin.create(SETS, manifests.cluster_set("s"))
    return made


async def test_what_does_not_change_is_not_written(world: World) -> None:
    assert await _report(world, GOOD)
    before = world.store.revision

    world.clock.advance(60)

    assert not await _report(world, GOOD)
    assert world.store.revision == before


async def test_a_time_moves_with_the_status_only(world: World) -> None:
    await _report(world, GOOD)
    world.clock.advance(60)
    reworded = PlacementCondition("A", "True", "Good", "very well")
    await _report(world, reworded, OTHER)
    assert await _conditions(world) == [
        ("A", "True", "2030-01-01T12:00:00Z"),
        ("B", "True", "2030-01-01T12:01:00Z"),
    ]

    world.clock.advance(60)
    await _report(world, BAD)

    assert await _conditions(world) == [
        ("A", "False", "2030-01-01T12:02:00Z"),
        ("B", "True", "2030-01-01T12:01:00Z"),
    ]


async def test_who_was_overtaken_does_not_write(world: World) -> None:
    stale = await world.admin.get(SETS, Key("", "s"))
    await _report(world, OTHER)

    now = world.clock.now() + timedelta(seconds=1)
    with pytest.raises(Conflict):
        await write_conditions(world.admin, SETS, stale, [GOOD], now=now, field_manager="test")

    assert [condition[0] for condition in await _conditions(world)] == ["B"]


async def test_another_object_of_the_name_is_not_written(world: World) -> None:
    stale = await world.admin.get(SETS, Key("", "s"))
    await world.admin.delete(SETS, Key("", "s"))
    await world.admin.create(SETS, manifests.cluster_set("s"))

    with pytest.raises(Conflict):
        await write_conditions(
            world.admin, SETS, stale, [GOOD], now=world.clock.now(), field_manager="test"
        )

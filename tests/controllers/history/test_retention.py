"""Records are forgotten when they are old, each at its own time."""

from __future__ import annotations

from controllers.history.remembering import (
    EVICTIONS,
    KEEP,
    RECORDS,
    evicted,
    forgetting_evictions,
    forgetting_rules,
    historian,
    namespace,
    rule,
    unrule,
)
from controllers.world import World

DAYS = KEEP.total_seconds()


async def test_an_eviction_is_forgotten_exactly_when_it_is_old(world: World) -> None:
    await namespace(world)
    await rule(world)
    await evicted(world, "first")
    world.clock.advance(10)
    await evicted(world, "second")

    async with world.controlled(forgetting_evictions):
        await world.settle()
        world.clock.advance(DAYS - 11)
        await world.settle()
        before = await world.names(EVICTIONS)
        world.clock.advance(1)
        await world.settle()
        between = await world.names(EVICTIONS)
        world.clock.advance(10)
        await world.settle()
        after = await world.names(EVICTIONS)

    assert sorted(before) == ["a/first-uid", "a/second-uid"]
    assert between == ["a/second-uid"]
    assert after == []


async def test_nobody_is_woken_before_the_first_is_old(world: World) -> None:
    await namespace(world)
    await rule(world)
    for index in range(20):
        await evicted(world, f"p{index}")

    async with world.controlled(forgetting_evictions) as manager:
        await world.settle()

        assert manager.delayed == 20
        assert world.clock.sleeping <= 2


async def test_what_grew_old_while_nobody_looked_is_deleted_immediately(world: World) -> None:
    await namespace(world)
    await rule(world)
    await evicted(world, "p")
    world.clock.advance(DAYS + 1)

    async with world.controlled(forgetting_evictions):
        await world.settle()

    assert await world.names(EVICTIONS) == []


async def test_a_rule_is_forgotten_only_after_it_was_deleted(world: World) -> None:
    await rule(world)

    async with world.controlled(historian, forgetting_rules):
        await world.settle()
        world.clock.advance(DAYS + 1)
        await world.settle()
        standing = await world.names(RECORDS)
        await unrule(world)
        await world.settle()
        world.clock.advance(DAYS - 1)
        await world.settle()
        deleted = await world.names(RECORDS)
        world.clock.advance(1)
        await world.settle()

    assert standing == deleted
    assert len(standing) == 1
    assert await world.names(RECORDS) == []

"""Whatever the order in which the collector learns of things, and however late, the end is one."""

from __future__ import annotations

import time

import pytest

from controllers.lifecycles import Late
from controllers.owners import (
    FOREGROUND,
    ORPHAN,
    SECRETS,
    collector,
    config_map,
    delete,
    get,
    names,
    owned_by,
)
from controllers.world import CONFIG_MAPS, Obj, Step, World, orders, play
from sully.client.transport import Key
from sully.controllers.framework.manager import Manager
from sully.controllers.garbagecollection.controller import GarbageCollector
from sully.controllers.garbagecollection.graph import Graph
from sully.machinery.errors import NotFound


async def create_child(world: World) -> None:
    await config_map(world, "child", await _owner(world), block=True)


async def create_second_child(world: World) -> None:
    await world.create(SECRETS, "a", "child", metadata=owned_by(await _owner(world)))


async def _owner(world: World) -> Obj:
    try:
        return await get(world, "owner")
    except NotFound:
        return {"metadata": {"name": "owner", "uid": world.owner_uid}}


async def delete_owner(world: World) -> None:
    await delete(world, "owner")


async def delete_in_foreground(world: World) -> None:
    await delete(world, "owner", FOREGROUND)


@pytest.mark.parametrize("pauses", [True, False], ids=["one by one", "all at once"])
@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize(
    "steps",
    [
        *orders(create_child, create_second_child, delete_owner),
        *orders(create_child, create_second_child, delete_in_foreground),
    ],
)
async def test_every_order_ends_with_nothing(
    world: World, owner: Obj, steps: tuple[Step, ...], start: int, pauses: bool
) -> None:
    world.owner_uid = owner["metadata"]["uid"]

    await play(world, steps, collector, start=start, pauses=pauses)

    assert await names(world) == []
    assert await world.names(SECRETS) == []


async def change_child(world: World) -> None:
    await world.admin.patch(CONFIG_MAPS, Key("a", "child"), {"data": {"a": "b"}})


async def orphan_owner(world: World) -> None:
    await delete(world, "owner", ORPHAN)


@pytest.mark.parametrize("pauses", [True, False], ids=["one by one", "all at once"])
@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize(
    "steps",
    [
        order
        for order in orders(create_child, orphan_owner, create_second_child)
        if order.values[0].index(orphan_owner) == 2
    ]
    + [
        order
        for order in orders(change_child, orphan_owner, create_child)
        if order.values[0].index(create_child) == 0
    ],
)
async def test_every_order_leaves_the_orphans(
    world: World, owner: Obj, steps: tuple[Step, ...], start: int, pauses: bool
) -> None:
    await play(world, steps, collector, start=start, pauses=pauses)

    assert await names(world) == ["child"]
    left = [(await world.admin.list(kind)).items for kind in (CONFIG_MAPS, SECRETS)]
    assert [obj["metadata"].get("ownerReferences") for result in left for obj in result] == [
        None for result in left for _ in result
    ]


async def test_an_orphan_whose_event_is_late_stays(world: World, owner: Obj) -> None:
    late = Late(world, "secrets")
    async with world.controlled(collector):
        await world.settle()
        with late:
            await world.create(SECRETS, "a", "child", metadata=owned_by(owner))
            await delete(world, "owner", ORPHAN)
            await world.settle()
            assert await names(world) == []
        await world.pass_time(10)

    (child,) = (await world.admin.list(SECRETS)).items
    assert "ownerReferences" not in child["metadata"]


async def test_an_owner_whose_event_is_late_counts(world: World, owner: Obj) -> None:
    late = Late(world, "secrets")
    async with world.controlled(collector) as manager:
        await world.settle()
        with late:
            secret = await world.create(SECRETS, "a", "owner")
            await config_map(world, "child", secret | {"kind": "Secret"})
            await world.pass_time(10)
            assert await names(world) == ["child", "owner"]
        await world.pass_time(10)
        assert await names(world) == ["child", "owner"]
        assert manager.delayed == 0

        with late:
            await world.admin.delete(SECRETS, Key("a", "owner"))
            again = await world.create(SECRETS, "a", "again")
            await config_map(world, "second", again | {"kind": "Secret"})
            await world.admin.delete(SECRETS, Key("a", "again"))
            await world.pass_time(10)
        await world.pass_time(10)

    assert await names(world) == ["owner"]


async def test_an_owner_that_is_never_seen_may_still_go(world: World, owner: Obj) -> None:
    """It came and went while a watch was broken: no event reports it."""

    def blind(world: World, manager: Manager) -> GarbageCollector:
        return collector(world, manager, without="secrets")

    async with world.controlled(blind):
        secret = await world.create(SECRETS, "a", "owner")
        await config_map(world, "child", secret | {"kind": "Secret"})
        await world.pass_time(10)
        assert await names(world) == ["child", "owner"]
        await world.admin.delete(SECRETS, Key("a", "owner"))
        await world.pass_time(10)

    assert await names(world) == ["owner"]


async def test_many_dependents_cost_no_more_each_than_few(world: World, owner: Obj) -> None:
    few = await _cost_of_dependents(world, owner, 250)
    many = await _cost_of_dependents(world, await config_map(world, "owner"), 1000)

    # Four times as many; were each compared with all others it would be sixteen times the cost.
    assert many < 10 * few


async def _cost_of_dependents(world: World, owner: Obj, count: int) -> float:
    """Return how much of a processor it takes to remove so many together with their owner."""
    for number in range(count):
        await config_map(world, f"child-{number}", owner)
    async with world.controlled(collector):
        await world.settle()
        begun = time.process_time()
        await delete(world, "owner")
        await world.settle()
        took = time.process_time() - begun
    assert await names(world) == []
    return took


async def test_memory_follows_what_there_is(world: World, owner: Obj) -> None:
    graphs: list[Graph] = []

    def recording(world: World, manager: Manager) -> GarbageCollector:
        made = collector(world, manager)
        graphs.append(made._graph)
        return made

    async with world.controlled(recording):
        await world.settle()
        before = len(graphs[0])
        for _ in range(3):
            for number in range(20):
                await config_map(world, f"child-{number}", owner)
            await world.settle()
            for number in range(20):
                await delete(world, f"child-{number}")
            await world.settle()

        assert len(graphs[0]) == before
        assert list(graphs[0].dependents(owner["metadata"]["uid"])) == []

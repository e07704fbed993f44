"""Objects go with their owners, whatever the order in which anyone learns of it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from controllers.lifecycles import Late
from controllers.world import CONFIG_MAPS, NAMESPACES, Obj, Step, World, orders, play
from sully.client.events import EVENTS, EventRecorder
from sully.client.options import DeleteOptions
from sully.client.transport import Key, Kind
from sully.controllers.garbagecollection.controller import COMPONENT, GarbageCollector
from sully.controllers.garbagecollection.graph import Graph
from sully.controllers.garbagecollection.owners import collected_kinds
from sully.controllers.manager import Manager
from sully.machinery.errors import NotFound

SECRETS: Kind[Obj] = Kind("", "v1", "secrets", "Secret", dict)
ORPHAN = DeleteOptions(propagation_policy="Orphan")
FOREGROUND = DeleteOptions(propagation_policy="Foreground")
BACKGROUND = DeleteOptions(propagation_policy="Background")


def collector(world: World, manager: Manager, without: str = "") -> GarbageCollector:
    graph, kinds = Graph(), collected_kinds(world.api.scheme)
    for kind in kinds.all:
        if kind.plural != without:
            graph.follow(manager.informer(kind))
    transport = world.transport(GarbageCollector.name)
    recorder = EventRecorder(transport, COMPONENT, clock=world.clock)
    manager.alongside(recorder.run)
    return GarbageCollector(graph=graph, kinds=kinds, transport=transport, recorder=recorder)


def owned_by(*owners: Obj, block: bool = False) -> Obj:
    refs = [
        {
            "apiVersion": owner.get("apiVersion", "v1"),
            "kind": owner.get("kind", "ConfigMap"),
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": block,
        }
        for owner in owners
    ]
    return {"ownerReferences": refs}


async def config_map(
    world: World, name: str, *owners: Obj, namespace: str = "a", **more: Any
) -> Obj:
    block = more.pop("block", False)
    return await world.create(
        CONFIG_MAPS, namespace, name, metadata=owned_by(*owners, block=block) | more
    )


async def names(world: World) -> list[str]:
    return [key.removeprefix("a/") for key in await world.names(CONFIG_MAPS)]


async def delete(world: World, name: str, options: DeleteOptions = BACKGROUND) -> None:
    await world.admin.delete(CONFIG_MAPS, Key("a", name), options)


async def get(world: World, name: str) -> Obj:
    return await world.admin.get(CONFIG_MAPS, Key("a", name))


@pytest.fixture
async def owner(world: World) -> Obj:
    await world.namespace("a")
    return await config_map(world, "owner")


async def test_a_dependent_goes_after_its_owner(world: World, owner: Obj) -> None:
    child = await config_map(world, "child", owner)
    await config_map(world, "grandchild", child)
    await config_map(world, "other")
    async with world.controlled(collector):
        await world.settle()
        await delete(world, "owner")
        await world.settle()

    assert await names(world) == ["other"]


async def test_what_was_left_behind_while_nobody_watched_goes(world: World, owner: Obj) -> None:
    await config_map(world, "child", owner)
    await delete(world, "owner")
    assert await names(world) == ["child"]

    async with world.controlled(collector):
        await world.settle()

    assert await names(world) == []


async def test_an_orphan_stays_and_forgets_its_owner(world: World, owner: Obj) -> None:
    await config_map(world, "child", owner, block=True)
    async with world.controlled(collector):
        await world.settle()
        await delete(world, "owner", ORPHAN)
        assert (await get(world, "owner"))["metadata"]["finalizers"] == ["orphan"]
        await world.settle()

    assert await names(world) == ["child"]
    assert "ownerReferences" not in (await get(world, "child"))["metadata"]


async def test_an_orphan_keeps_its_other_owners(world: World, owner: Obj) -> None:
    second = await config_map(world, "second")
    await config_map(world, "child", owner, second)
    async with world.controlled(collector):
        await world.settle()
        await delete(world, "owner", ORPHAN)
        await world.settle()

    refs = (await get(world, "child"))["metadata"]["ownerReferences"]
    assert [ref["name"] for ref in refs] == ["second"]


async def test_in_the_foreground_the_owner_goes_last(world: World, owner: Obj) -> None:
    child = await config_map(world, "child", owner, block=True)
    await config_map(world, "grandchild", child, block=True, finalizers=["x.example/hold"])
    async with world.controlled(collector):
        await world.settle()
        await delete(world, "owner", FOREGROUND)
        await world.settle()
        assert await names(world) == ["child", "grandchild", "owner"]
        assert (await get(world, "child"))["metadata"]["finalizers"] == ["foregroundDeletion"]

        free = {"metadata": {"finalizers": None}}
        await world.admin.patch(CONFIG_MAPS, Key("a", "grandchild"), free)
        await world.settle()

    assert await names(world) == []


async def test_in_the_foreground_only_those_that_block_are_awaited(
    world: World, owner: Obj
) -> None:
    await config_map(world, "child", owner, finalizers=["x.example/hold"])
    async with world.controlled(collector):
        await world.settle()
        await delete(world, "owner", FOREGROUND)
        await world.settle()

    assert await names(world) == ["child"]
    assert "deletionTimestamp" in (await get(world, "child"))["metadata"]


async def test_in_the_foreground_a_shared_dependent_lets_go(world: World, owner: Obj) -> None:
    second = await config_map(world, "second")
    await config_map(world, "child", owner, second, block=True)
    async with world.controlled(collector):
        await world.settle()
        await delete(world, "owner", FOREGROUND)
        await world.settle()

    assert await names(world) == ["child", "second"]
    refs = (await get(world, "child"))["metadata"]["ownerReferences"]
    assert [ref["name"] for ref in refs] == ["second"]


async def test_a_circle_of_owners_can_be_deleted_in_the_foreground(
    world: World, owner: Obj
) -> None:
    child = await config_map(world, "child", owner, block=True)
    await world.admin.patch(
        CONFIG_MAPS, Key("a", "owner"), {"metadata": owned_by(child, block=True)}
    )
    async with world.controlled(collector):
        await world.settle()
        assert await names(world) == ["child", "owner"]
        await delete(world, "owner", FOREGROUND)
        await world.settle()

    assert await names(world) == []


async def test_one_that_owns_itself_can_be_deleted_in_the_foreground(
    world: World, owner: Obj
) -> None:
    await world.admin.patch(
        CONFIG_MAPS, Key("a", "owner"), {"metadata": owned_by(owner, block=True)}
    )
    async with world.controlled(collector):
        await world.settle()
        await delete(world, "owner", FOREGROUND)
        await world.settle()

    assert await names(world) == []


async def test_a_second_deletion_can_change_the_policy(world: World, owner: Obj) -> None:
    await config_map(world, "child", owner, block=True, finalizers=["x.example/hold"])
    async with world.controlled(collector):
        await world.settle()
        await delete(world, "owner", FOREGROUND)
        await world.settle()
        assert await names(world) == ["child", "owner"]
        await delete(world, "owner", BACKGROUND)
        await world.settle()

    assert await names(world) == ["child"]


BAD: dict[str, dict[str, str]] = {
    "another uid": {"uid": "11111111-1111-1111-1111-111111111111"},
    "another name": {"name": "nobody"},
    "another kind": {"kind": "Secret"},
}


@pytest.mark.parametrize("change", BAD.values(), ids=BAD.keys())
async def test_who_names_an_owner_that_does_not_exist_goes(
    world: World, owner: Obj, change: dict[str, str]
) -> None:
    refs = [owned_by(owner)["ownerReferences"][0] | change]
    async with world.controlled(collector):
        await world.settle()
        await world.create(CONFIG_MAPS, "a", "child", metadata={"ownerReferences": refs})
        await world.settle()

    assert await names(world) == ["owner"]


UNKNOWN: dict[str, dict[str, str]] = {
    "a kind nobody serves": {"kind": "Widget"},
    "a group nobody serves": {"apiVersion": "x.example/v1"},
    "a version nobody serves": {"apiVersion": "v7"},
}


@pytest.mark.parametrize("change", UNKNOWN.values(), ids=UNKNOWN.keys())
async def test_what_cannot_be_known_is_kept(
    world: World, owner: Obj, change: dict[str, str]
) -> None:
    refs = [owned_by(owner)["ownerReferences"][0] | change]
    async with world.controlled(collector) as manager:
        await world.settle()
        await world.create(CONFIG_MAPS, "a", "child", metadata={"ownerReferences": refs})
        await world.pass_time(60)
        assert manager.delayed == 0

    assert await names(world) == ["child", "owner"]


async def test_an_owner_in_another_namespace_owns_nothing(world: World, owner: Obj) -> None:
    await world.namespace("b")
    async with world.controlled(collector):
        await world.settle()
        await config_map(world, "child", owner, namespace="b")
        await world.settle()

    assert await world.names(CONFIG_MAPS) == ["a/owner"]
    said = (await world.admin.list(EVENTS, "b")).items
    uid = owner["metadata"]["uid"]
    assert [(each["reason"], each["type"], each["message"]) for each in said] == [
        (
            "OwnerRefInvalidNamespace",
            "Warning",
            f"ownerRef [v1/ConfigMap, namespace: b, name: owner, uid: {uid}]"
            ' does not exist in namespace "b"',
        )
    ]
    assert said[0]["source"] == {"component": COMPONENT}


async def test_what_has_no_namespace_cannot_be_owned_from_one(world: World, owner: Obj) -> None:
    async with world.controlled(collector) as manager:
        await world.settle()
        made = {"metadata": {"name": "c"} | owned_by(owner)}
        await world.admin.create(NAMESPACES, made)
        await delete(world, "owner")
        await world.pass_time(60)
        assert manager.delayed == 0

    assert await world.names(NAMESPACES) == ["a", "c"]


async def test_what_has_no_namespace_owns_in_all(world: World, owner: Obj) -> None:
    node: Kind[Obj] = Kind("", "v1", "nodes", "Node", dict, namespaced=False)
    made = await world.admin.create(node, {"metadata": {"name": "n"}})
    await config_map(world, "child", made | {"kind": "Node"})
    async with world.controlled(collector):
        await world.settle()
        assert await names(world) == ["child", "owner"]
        await world.admin.delete(node, Key("", "n"))
        await world.settle()

    assert await names(world) == ["owner"]


async def test_kinds_can_own_each_other(world: World, owner: Obj) -> None:
    secret = await world.create(SECRETS, "a", "secret", metadata=owned_by(owner))
    await config_map(world, "child", secret | {"kind": "Secret"})
    async with world.controlled(collector):
        await world.settle()
        await delete(world, "owner")
        await world.settle()

    assert await names(world) == []
    assert await world.names(SECRETS) == []


async def test_an_adopted_object_is_not_deleted(world: World, owner: Obj) -> None:
    """The owner goes and another takes over, before the collector acts."""
    second = await config_map(world, "second")
    await config_map(world, "child", owner)
    async with world.controlled(collector):
        await world.settle()
        await delete(world, "owner")
        await world.admin.patch(CONFIG_MAPS, Key("a", "child"), {"metadata": owned_by(second)})
        await world.settle()

    assert await names(world) == ["child", "second"]


# -- every order --------------------------------------------------------------------------------


async def create_child(world: World) -> None:
    await config_map(world, "child", await _owner(world), block=True)


async def create_second_child(world: World) -> None:
    await world.create(SECRETS, "a", "child", metadata=owned_by(await _owner(world)))


async def _owner(world: World) -> Obj:
    try:
        return await get(world, "owner")
    except NotFound:
        return {"metadata": {"name": "owner", "uid": world.gone}}  # type: ignore[attr-defined]  # noted by the test


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
    world.gone = owner["metadata"]["uid"]  # type: ignore[attr-defined]  # for steps after the end

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
    assert [obj["metadata"].get("ownerReferences") for found in left for obj in found] == [
        None for found in left for _ in found
    ]


async def test_an_orphan_whose_news_is_late_stays(world: World, owner: Obj) -> None:
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


async def test_an_owner_whose_news_is_late_counts(world: World, owner: Obj) -> None:
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
    """It came and went while a watch was broken: no event tells of it."""

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


async def test_a_thousand_dependents_go_at_once(world: World, owner: Obj) -> None:
    for number in range(1000):
        await config_map(world, f"child-{number}", owner)

    async with world.controlled(collector):
        await world.settle()
        begun = time.process_time()
        await delete(world, "owner")
        await world.settle()
        took = time.process_time() - begun

    assert await names(world) == []
    assert took < 1, f"took {took:.2f} s of a processor"


async def test_memory_follows_what_there_is(world: World, owner: Obj) -> None:
    graphs: list[Graph] = []

    def kept(world: World, manager: Manager) -> GarbageCollector:
        made = collector(world, manager)
        graphs.append(made._graph)
        return made

    async with world.controlled(kept):
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

"""Objects go with their owners, and owners wait for those they must wait for."""

from __future__ import annotations

import pytest

from controllers.owners import (
    BACKGROUND,
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
from controllers.world import CONFIG_MAPS, NAMESPACES, Obj, World
from sully.client.events import EVENTS
from sully.client.transport import Key, Kind
from sully.controllers.garbagecollection.controller import COMPONENT


async def test_a_dependent_goes_after_its_owner(world: World, owner: Obj) -> None:
    child = await config_map(world, "child", owner)
    await config_map(world, "grandchild", child)
    await config_map(world, "other")
    async with world.controlled(collector):
        await world.settle()
        await delete(world, "owner")
        await world.settle()

    assert await names(world) == ["other"]


async def test_what_was_left_behind_while_nobody_watched_is_deleted(
    world: World, owner: Obj
) -> None:
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


async def test_in_the_foreground_the_owner_is_deleted_last(world: World, owner: Obj) -> None:
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
async def test_who_names_an_owner_that_does_not_exist_is_deleted(
    world: World, owner: Obj, change: dict[str, str]
) -> None:
    refs = [owned_by(owner)["ownerReferences"][0] | change]
    async with world.controlled(collector):
        await world.settle()
        await world.create(CONFIG_MAPS, "a", "child", metadata={"ownerReferences": refs})
        await world.settle()

    assert await names(world) == ["owner"]


UNKNOWN: dict[str, dict[str, str]] = {
    "a kind no server has": {"kind": "Widget"},
    "a group no server has": {"apiVersion": "x.example/v1"},
    "a version no server has": {"apiVersion": "v7"},
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
    items = (await world.admin.list(EVENTS, "b")).items
    uid = owner["metadata"]["uid"]
    assert [(message["reason"], message["type"], message["message"]) for message in items] == [
        (
            "OwnerRefInvalidNamespace",
            "Warning",
            f"ownerRef [v1/ConfigMap, namespace: b, name: owner, uid: {uid}]"
            ' does not exist in namespace "b"',
        )
    ]
    assert items[0]["source"] == {"component": COMPONENT}


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

"""A deleted namespace is emptied and goes, in every order of events and across restarts."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.world import (
    ACCOUNTS,
    CONFIG_MAPS,
    NAMESPACES,
    PODS,
    SCHEME,
    Obj,
    Step,
    World,
    orders,
    play,
)
from sully.client.discovery.resources import of_scheme
from sully.client.informers.informer import Informer
from sully.client.options import DeleteOptions
from sully.client.transport import Key, Kind
from sully.controllers.framework import kinds
from sully.controllers.framework.kinds import Metadata, Namespace, PartialObjectMetadata
from sully.controllers.framework.manager import Manager
from sully.controllers.namespaces.controller import Content, NamespacesController, namespaced_kinds
from sully.machinery.errors import NotFound
from sully.testing.clock import NOON

DOOMED = Key("", "doomed")
HELD, POD = Key("doomed", "held"), Key("doomed", "pod")
HOLD = "example.com/hold"
WIDGETS: Kind[PartialObjectMetadata] = Kind("", "v1", "widgets", "Widget", PartialObjectMetadata)


def cleaner(world: World, manager: Manager, *more: Kind[Any]) -> NamespacesController:
    transport = world.transport(NamespacesController.name)
    return NamespacesController(
        namespaces=manager.informer(kinds.NAMESPACES),
        content=Content(transport, [*more, *namespaced_kinds(of_scheme(SCHEME))]),
        transport=transport,
        clock=world.clock,
    )


async def delete(world: World) -> None:
    await world.admin.delete(NAMESPACES, DOOMED)


async def release(world: World) -> None:
    await world.admin.patch(CONFIG_MAPS, HELD, {"metadata": {"finalizers": None}})


async def kill(world: World) -> None:
    await world.admin.delete(PODS, POD, DeleteOptions(grace_period_seconds=0))


async def hold(world: World) -> None:
    await world.create(CONFIG_MAPS, "doomed", "held", metadata={"finalizers": [HOLD]})


async def run_pod(world: World, namespace: str = "doomed") -> None:
    await world.create(ACCOUNTS, namespace, "default")
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "example.com/none:1"}]}
    await world.create(PODS, namespace, "pod", spec=spec)


async def exists(world: World) -> bool:
    return str(DOOMED) in await world.names(NAMESPACES)


async def conditions(world: World) -> dict[str, tuple[str, str, str]]:
    status = (await world.admin.get(NAMESPACES, DOOMED))["status"]
    return {
        condition["type"].removeprefix("Namespace"): (
            condition["status"],
            condition["reason"],
            condition["message"],
        )
        for condition in status.get("conditions", ())
    }


async def test_an_empty_namespace_is_deleted_immediately(world: World) -> None:
    await world.namespace("doomed")
    async with world.controlled(cleaner):
        await world.settle()
        assert await exists(world)
        await delete(world)
        await world.settle()

        assert not await exists(world)
    assert world.clock.monotonic() == 0


async def test_what_holds_nobody_is_deleted_immediately_with_its_namespace(world: World) -> None:
    await world.namespace("doomed")
    await world.create(ACCOUNTS, "doomed", "default")
    await world.create(CONFIG_MAPS, "doomed", "m")
    claims: Kind[Obj] = Kind("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", dict)
    await world.create(claims, "doomed", "claim", spec={})
    async with world.controlled(cleaner):
        await delete(world)
        await world.settle()

        assert not await exists(world)
    assert await world.content("doomed") == {}
    assert world.clock.monotonic() == 0


async def test_other_namespaces_are_not_touched(world: World) -> None:
    for name in ("doomed", "other"):
        await world.namespace(name)
        await run_pod(world, name)
        await world.create(CONFIG_MAPS, name, "m")
    before = await world.content("other")
    async with world.controlled(cleaner):
        await delete(world)
        await world.settle()
        await kill(world)
        await world.pass_time(20)

    assert not await exists(world)
    assert await world.content("other") == before


async def test_a_finalizer_holds_the_namespace_and_the_status_reports_it(world: World) -> None:
    await world.namespace("doomed")
    await hold(world)
    async with world.controlled(cleaner):
        await delete(world)
        await world.settle()

        reported = await conditions(world)
        assert reported["ContentRemaining"] == (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 1 resource instances",
        )
        assert reported["FinalizersRemaining"] == (
            "True",
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {HOLD} in 1 resource"
            " instances",
        )
        assert reported["DeletionContentFailure"][0] == "False"
        held = await world.admin.get(CONFIG_MAPS, HELD)
        assert "deletionTimestamp" in held["metadata"]

        await release(world)
        await world.pass_time(5, step=0.5)
        assert not await exists(world)


async def test_waiting_writes_nothing_and_looks_ever_more_rarely(world: World) -> None:
    await world.namespace("doomed")
    await hold(world)
    async with world.controlled(cleaner) as manager:
        await delete(world)
        await world.pass_time(10)
        quiet = world.store.revision
        await world.pass_time(600)

        assert world.store.revision == quiet
        assert manager.delayed == 1
        await release(world)
        await world.settle()
        assert await exists(world)  # nobody reports it
        await world.pass_time(5)
        assert not await exists(world)


async def test_pods_keep_their_grace_and_all_else_waits_for_them(world: World) -> None:
    await world.namespace("doomed")
    await run_pod(world)
    await hold(world)
    async with world.controlled(cleaner):
        await delete(world)
        await world.pass_time(60)

        pod = await world.admin.get(PODS, POD)
        assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
        held = await world.admin.get(CONFIG_MAPS, HELD)
        assert "deletionTimestamp" not in held["metadata"]
        assert await world.names(ACCOUNTS) == ["doomed/default"]
        assert (await conditions(world))["ContentRemaining"][2] == (
            "Some resources are remaining: pods. has 1 resource instances"
        )

        await kill(world)
        await world.pass_time(5)
        assert await world.names(ACCOUNTS) == []
        held = await world.admin.get(CONFIG_MAPS, HELD)
        assert "deletionTimestamp" in held["metadata"]


async def test_a_kind_that_cannot_be_deleted_is_named_and_the_others_go(world: World) -> None:
    await world.namespace("doomed")
    await world.create(CONFIG_MAPS, "doomed", "m")

    def make(world: World, manager: Manager) -> NamespacesController:
        return cleaner(world, manager, WIDGETS)

    async with world.controlled(make):
        await delete(world)
        await world.settle()

        assert (await conditions(world))["DeletionContentFailure"] == (
            "True",
            "ContentDeletionFailed",
            "Failed to delete all resource types, 1 remaining: the server could not find the"
            " requested resource",
        )
        assert await world.names(CONFIG_MAPS) == []


async def test_another_party_may_hold_an_empty_namespace(world: World) -> None:
    await world.namespace("doomed", finalizers=["example.com/other"])
    await hold(world)
    async with world.controlled(cleaner):
        await delete(world)
        await world.settle()
        await release(world)
        await world.pass_time(20)

        left = await world.admin.get(NAMESPACES, DOOMED)
        assert left["spec"]["finalizers"] == ["example.com/other"]
        assert {status for status, _, _ in (await conditions(world)).values()} == {"False"}
        await world.admin.update(NAMESPACES, left | {"spec": {}}, "finalize")
        assert not await exists(world)


async def test_a_restart_in_the_middle_resumes(world: World) -> None:
    await world.namespace("doomed")
    await run_pod(world)
    await hold(world)
    async with world.controlled(cleaner):
        await delete(world)
        await world.settle()
    await kill(world)
    async with world.controlled(cleaner):
        await world.settle()
        assert await world.names(PODS) == []
        assert await world.names(CONFIG_MAPS) == [str(HELD)]
    await release(world)
    assert await exists(world)
    async with world.controlled(cleaner):
        await world.settle()

    assert not await exists(world)
    assert await world.content("doomed") == {}


async def test_a_namespace_that_took_the_name_is_not_emptied(world: World) -> None:
    await world.namespace("doomed")
    await world.create(CONFIG_MAPS, "doomed", "m")
    manager = Manager(world.admin, clock=world.clock)
    # The cache still shows the one before, which was terminating.
    stale: Informer[Namespace] = manager.informer(kinds.NAMESPACES)
    metadata = Metadata(name="doomed", uid="before", resource_version="1", deletion_timestamp=NOON)
    stale.replace([Namespace(metadata=metadata)])
    before = await world.content("doomed")

    await cleaner(world, manager).reconcile(DOOMED)

    assert await world.content("doomed") == before
    assert await exists(world)


async def test_a_namespace_that_is_gone_is_done(world: World) -> None:
    manager = Manager(world.admin, clock=world.clock)
    metadata = Metadata(name="doomed", uid="before", resource_version="1", deletion_timestamp=NOON)
    manager.informer(kinds.NAMESPACES).replace([Namespace(metadata=metadata)])

    await cleaner(world, manager).reconcile(DOOMED)

    with pytest.raises(NotFound):
        await world.admin.get(NAMESPACES, DOOMED)


@pytest.mark.parametrize("pauses", [True, False], ids=["one by one", "all at once"])
@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize("steps", orders(delete, release, kill))
async def test_every_order_ends_the_same(
    world: World, steps: tuple[Step, ...], start: int, pauses: bool
) -> None:
    await world.namespace("doomed")
    await run_pod(world)
    await hold(world)

    await play(world, steps, cleaner, start=start, pauses=pauses)

    assert await world.names(NAMESPACES) == []
    assert await world.content("doomed") == {}


def test_every_namespaced_kind_is_emptied_once() -> None:
    kinds = [(kind.group, kind.plural) for kind in namespaced_kinds(of_scheme(SCHEME))]

    stored = {r.storage_key for r in SCHEME.resources() if r.namespaced and not r.virtual}
    assert sorted(f"{group}/{plural}".lstrip("/") for group, plural in kinds) == sorted(stored)

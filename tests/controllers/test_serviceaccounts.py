"""Every namespace has its default account, whatever happens in whichever order."""

from __future__ import annotations

import pytest

from controllers.world import ACCOUNTS, NAMESPACES, Step, World, orders, play
from sully.client.transport import Key
from sully.controllers.framework import kinds
from sully.controllers.framework.manager import Manager
from sully.controllers.serviceaccounts import ACCOUNTS as SELECTED
from sully.controllers.serviceaccounts import ServiceAccountsController
from sully.machinery.errors import NotFound


def accounts(world: World, manager: Manager) -> ServiceAccountsController:
    return ServiceAccountsController(
        namespaces=manager.informer(kinds.NAMESPACES),
        accounts=manager.informer(kinds.SERVICE_ACCOUNTS, SELECTED),
        transport=world.transport(ServiceAccountsController.name),
    )


async def test_an_account_appears_with_its_namespace_and_no_time_passes(world: World) -> None:
    await world.namespace("early")
    async with world.controlled(accounts):
        await world.namespace("late")
        await world.settle()

        assert await world.names(ACCOUNTS) == ["early/default", "late/default"]
    assert world.clock.monotonic() == 0


async def test_an_account_that_is_deleted_comes_back(world: World) -> None:
    await world.namespace("a")
    async with world.controlled(accounts):
        await world.settle()
        first = await world.admin.get(ACCOUNTS, Key("a", "default"))
        await world.admin.delete(ACCOUNTS, Key("a", "default"))
        await world.settle()
        second = await world.admin.get(ACCOUNTS, Key("a", "default"))

    assert first["metadata"]["uid"] != second["metadata"]["uid"]


async def test_an_account_that_waits_for_a_finalizer_comes_back_afterwards(world: World) -> None:
    await world.namespace("a")
    held = {"finalizers": ["example.com/hold"]}
    old = await world.create(ACCOUNTS, "a", "default", metadata=held)
    async with world.controlled(accounts):
        await world.admin.delete(ACCOUNTS, Key("a", "default"))
        await world.settle()
        waiting = await world.admin.get(ACCOUNTS, Key("a", "default"))
        assert waiting["metadata"]["uid"] == old["metadata"]["uid"]
        free = {"metadata": {"finalizers": None}}
        await world.admin.patch(ACCOUNTS, Key("a", "default"), free)
        await world.settle()

        new = await world.admin.get(ACCOUNTS, Key("a", "default"))
        assert new["metadata"]["uid"] != old["metadata"]["uid"]


async def test_an_account_that_exists_is_left_alone(world: World) -> None:
    await world.namespace("a")
    mine = {"labels": {"who": "me"}}
    await world.create(ACCOUNTS, "a", "default", metadata=mine)
    await world.create(ACCOUNTS, "a", "other")
    before = await world.content("a")
    async with world.controlled(accounts):
        await world.settle()

        assert await world.content("a") == before


async def test_a_terminating_namespace_gets_no_account(world: World) -> None:
    await world.namespace("a")
    async with world.controlled(accounts) as manager:
        await world.settle()
        await world.admin.delete(NAMESPACES, Key("", "a"))
        await world.admin.delete(ACCOUNTS, Key("a", "default"))
        await world.pass_time(60)

        assert manager.delayed == 0  # it does not even try
        with pytest.raises(NotFound):
            await world.admin.get(ACCOUNTS, Key("a", "default"))


async def delete_a(world: World) -> None:
    await world.admin.delete(ACCOUNTS, Key("a", "default"))


async def delete_b(world: World) -> None:
    await world.admin.delete(ACCOUNTS, Key("b", "default"))


async def create_c(world: World) -> None:
    await world.namespace("c")


async def label_a(world: World) -> None:
    await world.admin.patch(NAMESPACES, Key("", "a"), {"metadata": {"labels": {"x": "y"}}})


@pytest.mark.parametrize("pauses", [True, False], ids=["one by one", "all at once"])
@pytest.mark.parametrize("start", range(5))
@pytest.mark.parametrize("steps", orders(delete_a, delete_b, create_c, label_a))
async def test_every_order_ends_the_same(
    world: World, steps: tuple[Step, ...], start: int, pauses: bool
) -> None:
    for name in ("a", "b"):
        await world.namespace(name)
        await world.create(ACCOUNTS, name, "default")

    await play(world, steps, accounts, start=start, pauses=pauses)

    assert await world.names(ACCOUNTS) == ["a/default", "b/default", "c/default"]

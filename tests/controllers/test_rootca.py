"""Every namespace has the certificate, and it stays what it is."""

from __future__ import annotations

import pytest

from controllers.world import CONFIG_MAPS, NAMESPACES, Obj, Step, World, orders, play
from sully.client.transport import Key
from sully.controllers.framework import kinds
from sully.controllers.framework.manager import Manager
from sully.controllers.rootca import CONFIG_MAPS as READ
from sully.controllers.rootca import DESCRIPTION, PUBLISHED, TEXT, RootCaController
from sully.machinery.errors import NotFound

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"
IN_A = Key("a", "kube-root-ca.crt")


def publisher(world: World, manager: Manager) -> RootCaController:
    return RootCaController(
        namespaces=manager.informer(kinds.NAMESPACES),
        maps=manager.informer(READ, PUBLISHED),
        transport=world.transport(RootCaController.name),
        certificate=CERTIFICATE,
    )


async def published(world: World) -> Obj:
    return await world.admin.get(CONFIG_MAPS, IN_A)


async def test_a_namespace_gets_the_certificate(world: World) -> None:
    async with world.controlled(publisher):
        await world.namespace("a")
        await world.settle()

    result = await published(world)
    assert result["data"] == {"ca.crt": CERTIFICATE}
    assert result["metadata"]["annotations"] == {DESCRIPTION: TEXT}
    assert world.clock.monotonic() == 0


DAMAGE: dict[str, Obj] = {
    "another certificate": {"data": {"ca.crt": "forged"}},
    "one more file": {"data": {"extra": "x"}},
    "no file": {"data": {"ca.crt": None}},
    "no data": {"data": None},
    "no description": {"metadata": {"annotations": None}},
}


@pytest.mark.parametrize("patch", DAMAGE.values(), ids=DAMAGE.keys())
async def test_what_was_changed_is_repaired(world: World, patch: Obj) -> None:
    await world.namespace("a")
    async with world.controlled(publisher):
        await world.settle()
        damaged = await world.admin.patch(CONFIG_MAPS, IN_A, patch)
        await world.settle()

    result = await published(world)
    assert result["data"] == {"ca.crt": CERTIFICATE}
    assert result["metadata"]["annotations"][DESCRIPTION] == TEXT
    assert result["metadata"]["uid"] == damaged["metadata"]["uid"]


OTHERS: dict[str, Obj] = {
    "a label": {"metadata": {"labels": {"who": "me"}}},
    "an annotation": {"metadata": {"annotations": {"note": "mine"}}},
    "other words": {"metadata": {"annotations": {DESCRIPTION: "mine"}}},
}


@pytest.mark.parametrize("patch", OTHERS.values(), ids=OTHERS.keys())
async def test_what_belongs_to_others_stays(world: World, patch: Obj) -> None:
    await world.namespace("a")
    async with world.controlled(publisher):
        await world.settle()
        want = await world.admin.patch(CONFIG_MAPS, IN_A, patch)
        await world.settle()
        assert await published(world) == want

        await world.admin.patch(CONFIG_MAPS, IN_A, {"data": {"ca.crt": "forged"}})
        await world.settle()

    result = await published(world)
    assert result["data"] == want["data"]
    assert result["metadata"].get("labels") == want["metadata"].get("labels")
    assert result["metadata"]["annotations"] == want["metadata"]["annotations"]


async def test_a_terminating_namespace_gets_none(world: World) -> None:
    await world.namespace("a")
    async with world.controlled(publisher) as manager:
        await world.settle()
        await world.admin.delete(NAMESPACES, Key("", "a"))
        await world.admin.delete(CONFIG_MAPS, IN_A)
        await world.pass_time(60)

        assert manager.delayed == 0  # it does not even try
        with pytest.raises(NotFound):
            await published(world)


async def forge(world: World) -> None:
    await world.admin.patch(CONFIG_MAPS, IN_A, {"data": {"ca.crt": "forged"}})


async def delete_b(world: World) -> None:
    await world.admin.delete(CONFIG_MAPS, Key("b", IN_A.name))


async def create_c(world: World) -> None:
    await world.namespace("c")


@pytest.mark.parametrize("pauses", [True, False], ids=["one by one", "all at once"])
@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize("steps", orders(forge, delete_b, create_c))
async def test_every_order_ends_the_same(
    world: World, steps: tuple[Step, ...], start: int, pauses: bool
) -> None:
    for name in ("a", "b"):
        await world.namespace(name)
        await world.create(CONFIG_MAPS, name, IN_A.name, data={"ca.crt": "old"})

    await play(world, steps, publisher, start=start, pauses=pauses)

    page = await world.admin.list(CONFIG_MAPS)
    assert {item["metadata"]["namespace"]: item["data"] for item in page.items} == {
        name: {"ca.crt": CERTIFICATE} for name in ("a", "b", "c")
    }

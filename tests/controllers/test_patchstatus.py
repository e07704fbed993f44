"""What is reported about patches: how many devices they change, and what failed."""

from __future__ import annotations

from typing import Any

import pytest

import manifests
from controllers.world import Obj, World, orders, play
from manifests import DRIVER, slice_
from sully.client.events import EVENTS
from sully.client.transport import Key, Kind
from sully.controllers.framework.controller import Controller
from sully.controllers.framework.manager import Manager
from sully.controllers.patchstatus import NAME, PatchStatusController
from sully.views import kinds
from sully.views.devices.inventory import Inventory

SLICES: Kind[Obj] = kinds.SLICES.read_as(dict)
PATCHES: Kind[Obj] = kinds.PATCHES.read_as(dict)
CLASSES: Kind[Obj] = kinds.CLASSES.read_as(dict)
RULES: Kind[Obj] = kinds.RULES.read_as(dict)
BIG = f'device.attributes["{DRIVER}"].size > 1'
PROBLEM = "selector #0: runtime error: no such key: size"


def speaking(world: World, manager: Manager) -> Controller:
    patches = manager.informer(kinds.PATCHES)
    inventory = Inventory(
        slices=manager.informer(kinds.SLICES),
        classes=manager.informer(kinds.CLASSES),
        rules=manager.informer(kinds.RULES),
        patches=patches,
    )
    env = manager.env(world.transport(NAME), NAME)
    return PatchStatusController(patches=patches, inventory=inventory, env=env)


async def publish(world: World, *sizes: int | None, name: str = "s", pool: str = "p") -> None:
    devices: list[Obj] = [
        {"name": f"gpu-{index}", "attributes": {} if size is None else {"size": {"int": size}}}
        for index, size in enumerate(sizes)
    ]
    body = slice_(name, pool, *devices, allNodes=True)
    await world.admin.create(SLICES, body)


async def patch(world: World, name: str = "x", **filter_: Any) -> None:
    devices: Obj = {"attributes": {"example.com/ok": {"bool": True}}}
    if filter_:
        devices["filter"] = filter_
    await world.admin.create(PATCHES, manifests.patch(name, devices))


def cel(expression: str) -> list[Obj]:
    return [{"cel": {"expression": expression}}]


async def patch_conditions(world: World, name: str = "x") -> dict[str, tuple[str, str, str]]:
    patch = await world.admin.get(PATCHES, Key("", name))
    return {
        condition["type"]: (condition["status"], condition["reason"], condition["message"])
        for condition in patch["status"].get("conditions", ())
    }


async def warnings(world: World) -> list[tuple[str, str, int]]:
    events = (await world.admin.list(EVENTS)).items
    return [(event["reason"], event["message"], event["count"]) for event in events]


def applied(text: str) -> tuple[str, str, str]:
    return ("True", "Applied", text)


NOBODY = ("False", "NoDevice", "No published device is selected.")


async def test_how_many_devices(world: World) -> None:
    await publish(world, 1, 2, 3)
    await patch(world)
    await patch(world, "big", selectors=cel(BIG))
    await patch(world, "one", device="gpu-1")
    await patch(world, "elsewhere", pool="other")

    async with world.controlled(speaking):
        await world.settle()

    assert await patch_conditions(world) == {"sully.dev/Applied": applied("Changes 3 devices.")}
    assert await patch_conditions(world, "big") == {
        "sully.dev/Applied": applied("Changes 2 devices.")
    }
    assert await patch_conditions(world, "one") == {
        "sully.dev/Applied": applied("Changes 1 device.")
    }
    assert await patch_conditions(world, "elsewhere") == {"sully.dev/Applied": NOBODY}


async def test_an_expression_that_fails_is_reported_and_forgotten_when_it_is_repaired(
    world: World,
) -> None:
    await world.namespace("default")
    await publish(world, 2, None, None)
    await patch(world, selectors=cel(BIG))
    async with world.controlled(speaking):
        await world.settle()

        problem = f"2 devices not selected because of errors: {DRIVER}/p/gpu-1: {PROBLEM}"
        assert await patch_conditions(world) == {
            "sully.dev/Applied": applied("Changes 1 device."),
            "sully.dev/SelectorProblem": ("True", "SelectorFailed", problem),
        }
        assert await warnings(world) == [("CELRuntimeError", PROBLEM, 1)]

        careful = f'has(device.attributes["{DRIVER}"].size) && {BIG}'
        change = {"spec": {"devices": {"filter": {"selectors": cel(careful)}}}}
        await world.admin.patch(PATCHES, Key("", "x"), change)
        await world.pass_time(2, step=1)

    assert await patch_conditions(world) == {"sully.dev/Applied": applied("Changes 1 device.")}


async def test_the_same_failure_is_reported_once(world: World) -> None:
    await world.namespace("default")
    await publish(world, None)
    await patch(world, selectors=cel(BIG))
    async with world.controlled(speaking):
        await world.settle()
        for index in range(5):
            await publish(world, None, name=f"s{index}", pool=f"p{index}")
            await world.pass_time(2, step=1)

    assert await warnings(world) == [("CELRuntimeError", PROBLEM, 1)]
    assert (
        "6 devices not selected" in (await patch_conditions(world))["sully.dev/SelectorProblem"][2]
    )


async def test_a_class_that_is_missing_is_reported_until_it_comes(world: World) -> None:
    await publish(world, 2)
    await patch(world, deviceClassName="big")
    async with world.controlled(speaking):
        await world.settle()
        text = f"1 device not selected because of errors: {DRIVER}/p/gpu-0: there is no class big"
        assert await patch_conditions(world) == {
            "sully.dev/Applied": NOBODY,
            "sully.dev/SelectorProblem": ("True", "SelectorFailed", text),
        }

        body = {"metadata": {"name": "big"}, "spec": {"selectors": cel(BIG)}}
        await world.admin.create(CLASSES, body)
        await world.pass_time(2, step=1)

    assert await patch_conditions(world) == {"sully.dev/Applied": applied("Changes 1 device.")}
    assert await warnings(world) == []


async def test_at_most_once_a_second(world: World) -> None:
    await patch(world)
    async with world.controlled(speaking):
        await world.settle()
        texts = []
        for index in range(3):
            await publish(world, 1, name=f"s{index}", pool=f"p{index}")
            await world.settle()
            texts.append((await patch_conditions(world))["sully.dev/Applied"][2])
        await world.pass_time(1, step=1)
        texts.append((await patch_conditions(world))["sully.dev/Applied"][2])

    assert texts == [NOBODY[2]] * 3 + ["Changes 3 devices."]


async def _publish(world: World) -> None:
    await publish(world, 1, 2, None)


async def _patch(world: World) -> None:
    await patch(world, deviceClassName="big")


async def _class(world: World) -> None:
    await world.admin.create(CLASSES, manifests.device_class("big", BIG))


@pytest.mark.parametrize("pauses", [True, False], ids=["slowly", "immediately"])
@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize("steps", orders(_publish, _patch, _class))
async def test_the_order_of_events_does_not_show(
    world: World, steps: Any, start: int, pauses: bool
) -> None:
    await play(world, steps, speaking, start=start, pauses=pauses)

    problem = f"{DRIVER}/p/gpu-2: class big: {PROBLEM}"
    assert await patch_conditions(world) == {
        "sully.dev/Applied": applied("Changes 1 device."),
        "sully.dev/SelectorProblem": (
            "True",
            "SelectorFailed",
            f"1 device not selected because of errors: {problem}",
        ),
    }


async def test_a_restart_reports_nothing_again(world: World) -> None:
    await publish(world, 2)
    await patch(world)
    async with world.controlled(speaking):
        await world.settle()
    before = world.store.revision

    async with world.controlled(speaking):
        await world.pass_time(3, step=1)

    assert world.store.revision == before


async def test_rules_do_not_wake_patches(world: World) -> None:
    await publish(world, 2)
    await patch(world)
    async with world.controlled(speaking):
        await world.pass_time(3, step=1)
        taint = {"key": "example.com/hot", "effect": "NoSchedule"}
        spec = {"deviceSelector": {}, "taint": taint}
        await world.admin.create(RULES, {"metadata": {"name": "r"}, "spec": spec})
        before = world.store.revision
        await world.pass_time(3, step=1)

    assert world.store.revision == before


async def test_a_patch_of_the_same_name_restarts(world: World) -> None:
    await publish(world, 2, 2)
    await patch(world)
    async with world.controlled(speaking):
        await world.settle()
        await world.admin.delete(PATCHES, Key("", "x"))
        await patch(world, device="gpu-1")
        await world.pass_time(2, step=1)

    assert await patch_conditions(world) == {"sully.dev/Applied": applied("Changes 1 device.")}

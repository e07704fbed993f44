"""What devices can be, end to end: shared by capacity, parts of a whole, bound by attributes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from controllers.scheduling.placing import (
    CLAIMS,
    SLICES,
    Scheduling,
    held,
    pod,
    prepare,
    wanting,
    where,
)
from controllers.world import Obj, World
from manifests import slice_
from sully.client.transport import Key
from sully.machinery.gates import DEFAULTS, Gates
from sully.scheduler.options import SchedulerOptions

ALL_ON = Gates({name: True for name in DEFAULTS if name.startswith("DRA")})


@pytest.fixture
def everything(world: World) -> World:
    """Return a world in which all that is about devices is switched on."""
    world.serve(gates=ALL_ON)
    return world


def text(value: str) -> Obj:
    return {"string": value}


def part(name: str, memory: str, *groups: str) -> Obj:
    draw: Obj = {"counterSet": "card", "counters": {"memory": {"value": memory}}}
    return {
        "name": name,
        "consumesCounters": [draw | ({"compatibilityGroups": list(groups)} if groups else {})],
    }


def nic(name: str) -> Obj:
    policy = {"default": "1", "validRange": {"min": "1", "step": "2", "max": "9"}}
    bandwidth = {"value": "10", "requestPolicy": policy}
    return {"name": name, "allowMultipleAllocations": True, "capacity": {"bandwidth": bandwidth}}


@dataclass(frozen=True)
class Case:
    devices: list[Obj]
    expected: list[Obj]
    """What the claims of pods ask for, one pod each, in order."""
    want: list[list[str] | None]
    """The devices they get; None for a pod that has to wait."""
    counters: list[Obj] = field(default_factory=list)
    constraints: list[Obj] = field(default_factory=list)


CARD = [{"name": "card", "counters": {"memory": {"value": "8"}}}]
RACK = "gpu.example.com/rack"
IN_RACKS: list[Obj] = [
    {"name": f"gpu-{index}", "attributes": {"rack": text(rack)}}
    for index, rack in enumerate(("1", "2", "1"))
]
LISTED: list[Obj] = [
    {"name": f"gpu-{index}", "attributes": {"rack": {"strings": racks}}}
    for index, racks in enumerate((["1", "2"], ["3"], ["2", "4"]))
]
ROW = {"name": "x.com/row", "expression": 'device.attributes["gpu.example.com"].rack'}


def share(bandwidth: str) -> Obj:
    return {"capacity": {"requests": {"bandwidth": bandwidth}}}


CASES = {
    "capacity is shared until it is used up": Case(
        [nic("nic-0")], [share("4"), share("4"), share("2")], [["nic-0"], ["nic-0"], None]
    ),
    "parts of a card, and the card": Case(
        [part("half-0", "4"), part("half-1", "4"), part("whole", "8")],
        [{}, {}, {}],
        [["half-0"], ["half-1"], None],
        CARD,
    ),
    "parts that do not go together": Case(
        [part("a", "2", "x"), part("b", "2", "y"), part("c", "2", "x")],
        [{}, {}, {}],
        [["a"], ["c"], None],
        CARD,
    ),
    "two in one rack": Case(
        IN_RACKS, [{"count": 2}], [["gpu-0", "gpu-2"]], constraints=[{"matchAttribute": RACK}]
    ),
    "two in different racks": Case(
        IN_RACKS, [{"count": 2}], [["gpu-0", "gpu-1"]], constraints=[{"distinctAttribute": RACK}]
    ),
    "lists with something in common": Case(
        LISTED, [{"count": 2}], [["gpu-0", "gpu-2"]], constraints=[{"matchAttribute": RACK}]
    ),
    "an attribute that is worked out": Case(
        IN_RACKS,
        [{"count": 2, "derivedAttributes": [ROW]}],
        [["gpu-0", "gpu-2"]],
        constraints=[{"matchAttribute": "x.com/row"}],
    ),
}


async def publish(world: World, case: Case) -> None:
    count = 2 if case.counters else 1
    common: Obj = {"count": count, "nodeName": "node-1"}
    await world.admin.create(SLICES, slice_("devices", "p", *case.devices, **common))
    if case.counters:
        body = slice_("counters", "p", sharedCounters=case.counters, **common)
        await world.admin.create(SLICES, body)


async def devices(world: World, name: str) -> list[Any] | None:
    if await where(world, name) != "node-1":
        return None
    claim = await world.admin.get(CLAIMS, Key("a", name))
    return [result["device"] for result in claim["status"]["allocation"]["devices"]["results"]]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_devices_of_all_kinds(everything: World, case: Case) -> None:
    world = everything
    await prepare(world, devices=0)
    await publish(world, case)
    async with Scheduling().running(world):
        for index, expected in enumerate(case.expected):
            request = {"name": "r", "exactly": {"deviceClassName": "gpu", **expected}}
            spec = {"devices": {"requests": [request], "constraints": case.constraints}}
            await world.create(CLAIMS, "a", f"p-{index}", spec=spec)
            await pod(world, f"p-{index}", f"p-{index}")
            await world.settle()

    assert [await devices(world, f"p-{index}") for index in range(len(case.want))] == case.want


async def test_shares_have_ids_and_amounts(everything: World) -> None:
    world = everything
    await prepare(world, devices=0)
    await publish(world, Case([nic("nic-0")], [], []))
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", **share("4")}}
    await world.create(CLAIMS, "a", "p", spec={"devices": {"requests": [request]}})
    await pod(world, "p", "p")
    async with Scheduling().running(world):
        await world.settle()

    claim = await world.admin.get(CLAIMS, Key("a", "p"))
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    assert result["consumedCapacity"] == {"bandwidth": "5"}, "up to the next step"
    assert len(result["shareID"]) == 36


@pytest.mark.parametrize(("switch", "want"), [(True, ["p/gpu-0"]), (False, [])])
async def test_devices_that_wait_for_conditions_rest_without_the_gate(
    everything: World, switch: bool, want: list[str]
) -> None:
    world = everything
    conditions = {"bindingConditions": ["a.dev/on"], "bindingFailureConditions": ["a.dev/off"]}
    await prepare(world, devices=0)
    await publish(world, Case([{"name": "gpu-0", **conditions}], [], []))
    async with Scheduling(options=SchedulerOptions(binding_conditions=switch)).running(world):
        await wanting(world, "p")
        await world.settle()

    assert await held(world, "p") == want

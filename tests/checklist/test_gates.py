"""A gate goes off and on again under a running control plane: what is stored acts, rests and acts.

In each of the three lives of the controllers a pod comes and wants a device, and pods that hold
devices may have to be evicted. That the stored objects themselves stay whole is held by
api/resource/test_gate_round_trips.py, what the view of devices shows by views/test_gates.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

import manifests
from checklist.living import life
from controllers.eviction.evicting import PATCHES, RULES, holders, left
from controllers.scheduling.placing import SLICES, node, prepare, wanting, where
from controllers.world import Obj, World
from manifests import DRIVER
from sully.client.transport import Key
from sully.machinery.gates import Gates

PLACED, REFUSED, BESIDE = "node-1", "", "node-2"
MODEL = f'has(device.attributes["{DRIVER}"].model)'

Store = Callable[[World], Awaitable[object]]


def rule(effect: str, *, selector: Obj | None = None, guard: str = "", **taint: int) -> Store:
    """Make a rule for all devices, or for those of a selector."""

    async def made(world: World) -> None:
        more: Obj = {"key": "example.com/broken", "selector": selector, "taint": taint}
        more["annotations"] = {guard: "not now"} if guard else {}
        await world.admin.create(RULES, manifests.rule("r", effect, **more))

    return made


async def tainted_devices(world: World) -> None:
    slice_ = await world.admin.get(SLICES, Key("", "s-node-1"))
    for device in slice_["spec"]["devices"]:
        device["taints"] = [{"key": "example.com/broken", "effect": "NoExecute"}]
    await world.admin.update(SLICES, slice_)


async def taint_slice(world: World) -> None:
    mark = {"key": "example.com/broken", "effect": "NoExecute"}
    slice_ = await world.admin.get(SLICES, Key("", "s-node-1"))
    names = [device["name"] for device in slice_["spec"]["devices"]]
    slice_["spec"]["pool"]["resourceSliceCount"] = 2
    await world.admin.update(SLICES, slice_)
    spec = slice_["spec"] | {"taints": [{"device": name, "taint": mark} for name in names]}
    del spec["devices"]
    await world.admin.create(SLICES, manifests.body("ResourceSlice", "marks", spec))


async def model(world: World) -> None:
    attributes = {f"{DRIVER}/model": {"string": "x"}}
    await world.admin.create(PATCHES, manifests.patch("p", {"attributes": attributes}))


DRAW: Obj = {"counterSet": "card", "counters": {"memory": {"value": "1"}}}
SPECIAL: Obj = {
    "selectors": [{"cel": {"expression": f'has(device.attributes["{DRIVER}"].special)'}}]
}


def special(**content: object) -> Store:
    """Publish devices of another pool that use a feature."""

    async def made(world: World) -> None:
        count = 2 if "consumesCounters" in content else 1
        node: Obj = {"nodeName": "node-1"}
        if count == 2:
            counters = [{"name": "card", "counters": {"memory": {"value": "9"}}}]
            body = manifests.slice_("x-counters", "x", count=2, sharedCounters=counters, **node)
            await world.admin.create(SLICES, body)
        if "nodeName" in content:
            node = {"perDeviceNodeSelection": True}
        devices = [
            {"name": f"x-{index}", "attributes": {"special": {"bool": True}}, **content}
            for index in range(4)
        ]
        body = manifests.slice_("x-devices", "x", *devices, count=count, **node)
        await world.admin.create(SLICES, body)

    return made


async def two_nodes(world: World) -> None:
    """Advise against the devices of one node; the other has as many."""
    await node(world, "node-2")
    slice_ = await world.admin.get(SLICES, Key("", "s-node-1"))
    spec = slice_["spec"] | {"nodeName": "node-2"}
    spec["pool"] = spec["pool"] | {"name": "node-2"}
    await world.admin.create(SLICES, manifests.body("ResourceSlice", "s-node-2", spec))
    await rule("PreferNoSchedule", selector={"pool": "node-1"})(world)


@dataclass(frozen=True)
class Case:
    """What is stored; the node of a new pod, and how many pods are evicted, with and without."""

    store: Store
    on: tuple[str, int]
    off: tuple[str, int]
    residents: int = 1
    request: Obj = field(default_factory=dict)


NO_EXECUTE = rule("NoExecute")
CASES = {
    "DRADeviceTaints, rules": Case(NO_EXECUTE, (REFUSED, 1), (PLACED, 0)),
    "DRADeviceTaints, slices": Case(tainted_devices, (REFUSED, 1), (PLACED, 0)),
    "DRADeviceTaintRules": Case(NO_EXECUTE, (REFUSED, 1), (PLACED, 0)),
    "SullyTaintSlices": Case(taint_slice, (REFUSED, 1), (PLACED, 0)),
    "SullyRuleSelectors": Case(
        rule("NoExecute", selector={"selectors": [{"cel": {"expression": "true"}}]}),
        (REFUSED, 1),
        (PLACED, 0),
    ),
    "SullyEvictionRate": Case(
        rule("NoExecute", evictionsPerSecond=1), (REFUSED, 10), (REFUSED, 12), residents=12
    ),
    "SullyEvictionGuards": Case(
        rule("NoExecute", guard="sully.dev/paused"), (REFUSED, 0), (REFUSED, 1)
    ),
    "SullyNoExecuteWithPodDisruptionBudget": Case(
        rule("NoExecuteWithPodDisruptionBudget"), (REFUSED, 1), (PLACED, 0)
    ),
    "SullyPreferNoSchedule": Case(two_nodes, (BESIDE, 0), (PLACED, 0), residents=0),
    "DRAPartitionableDevices, counters": Case(
        special(consumesCounters=[DRAW]), (PLACED, 0), (REFUSED, 0), request=SPECIAL
    ),
    "DRAPartitionableDevices, nodes": Case(
        special(nodeName="node-1"), (PLACED, 0), (REFUSED, 0), request=SPECIAL
    ),
    "DRAConsumableCapacity": Case(
        special(allowMultipleAllocations=True), (PLACED, 0), (REFUSED, 0), request=SPECIAL
    ),
    "DRAAdminControlledDeviceAttributes": Case(
        model,
        (PLACED, 0),
        (REFUSED, 0),
        request={"selectors": [{"cel": {"expression": MODEL}}]},
    ),
}


async def outcome(world: World, case: Case, number: int) -> tuple[str, int]:
    """Create a pod while others use devices; return its node, and how many pods are evicted."""
    gone = set(await left(world))
    await wanting(world, f"new-{number}", **case.request)
    first = 20 + number * case.residents
    await holders(world, case.residents, first, pool="node-1")
    await world.settle()
    node_name = await where(world, f"new-{number}")
    terminating = {item for item in set(await left(world)) - gone if item.startswith("p-")}
    mine = {f"p-{index}" for index in range(first, first + case.residents)}
    return node_name if node_name.startswith("node-") else REFUSED, len(terminating & mine)


@pytest.mark.parametrize(("name", "case"), CASES.items(), ids=CASES.keys())
async def test_what_rests_without_its_gate_acts_again(name: str, case: Case) -> None:
    gate, world = name.partition(",")[0], World()
    switches = (True, False, True)
    results = []
    await prepare(world, devices=30)
    for number, switch in enumerate(switches):
        async with life(world, Gates({gate: switch})):
            if number == 0:
                await case.store(world)
                await world.settle()
            results.append(await outcome(world, case, number))
        # Pods that the rate allows are evicted before the controller restarts.
        world.clock.advance(100)

    assert results == [case.on, case.off, case.on]

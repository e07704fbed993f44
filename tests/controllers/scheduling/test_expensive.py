"""Pods whose selectors, or combinations of devices, take too long for one slice."""

from __future__ import annotations

from itertools import count
from typing import Any

from controllers.scheduling.placing import (
    CLAIMS,
    SLICES,
    Scheduling,
    node,
    pod,
    prepare,
    wanting,
    where,
)
from controllers.world import World
from manifests import DRIVER, gpus, slice_
from sully.machinery.compat import Compat
from sully.scheduler.options import SchedulerOptions

_NUMBERS = count()
LIST = f"[{','.join(map(str, range(20)))}]"


def loops(selectors: int) -> list[dict[str, Any]]:
    """Return selectors that cost 1500 units each; verdicts are cached, so each is new."""
    text = f"{LIST}.all(a, {LIST}.all(b, true))"
    return [{"cel": {"expression": f"{text} && {next(_NUMBERS)} >= 0"}} for _ in range(selectors)]


async def publish(world: World, devices: int) -> None:
    """Publish devices that all look different."""
    listed = ({**gpu, "attributes": {"index": {"int": at}}} for at, gpu in enumerate(gpus(devices)))
    await world.admin.create(SLICES, slice_("s", "node-1", *listed))


async def ready(world: World, devices: int) -> None:
    await prepare(world, "node-1", devices=0)
    await publish(world, devices)


def limited(units: int, *, strict: bool = False) -> Scheduling:
    return Scheduling(
        SchedulerOptions(
            binding_conditions=False,
            cost_units=units,
            compat=Compat.KUBERNETES if strict else Compat.SULLY,
        )
    )


async def test_slices_are_not_seen(world: World) -> None:
    await ready(world, devices=20)
    scheduling = Scheduling()
    async with scheduling.running(world):
        await wanting(world, "p", selectors=loops(3))
        await world.settle()

    assert await where(world, "p") == "node-1"
    assert scheduling.looked_at.count("p") > 2


async def test_others_are_scheduled_meanwhile(world: World) -> None:
    await ready(world, devices=40)
    scheduling = Scheduling()
    async with scheduling.running(world):
        await wanting(world, "heavy", selectors=loops(4))
        await wanting(world, "ordinary")
        await world.settle()

    assert await where(world, "ordinary") == "node-1"
    last = len(scheduling.looked_at) - 1 - scheduling.looked_at[::-1].index("heavy")
    assert scheduling.looked_at.index("ordinary") < last


async def test_others_are_scheduled_while_devices_are_tried(world: World) -> None:
    """All combinations with the first device are tried before those without it."""
    await ready(world, devices=13)
    index = f'device.attributes["{DRIVER}"].index'
    last = {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": f"{index} == 0"}}]}
    requests = [
        {"name": "many", "exactly": {"deviceClassName": "gpu", "count": 6}},
        {"name": "last", "exactly": last},
    ]
    distinct = {"requests": ["many"], "distinctAttribute": f"{DRIVER}/index"}
    devices = {"requests": requests, "constraints": [distinct]}
    scheduling = Scheduling()
    async with scheduling.running(world):
        claim = {"metadata": {"name": "heavy", "namespace": "a"}, "spec": {"devices": devices}}
        await world.admin.create(CLAIMS, claim)
        await pod(world, "heavy", "heavy")
        await wanting(world, "ordinary", selectors=[{"cel": {"expression": f"{index} == 12"}}])
        await world.settle()

    assert await where(world, "ordinary") == "node-1"
    assert await where(world, "heavy") == "node-1"
    last_look = len(scheduling.looked_at) - 1 - scheduling.looked_at[::-1].index("heavy")
    assert scheduling.looked_at.index("ordinary") < last_look


async def test_a_pod_that_exceeds_its_budget_is_reported(world: World) -> None:
    await ready(world, devices=20)
    async with limited(30_000).running(world):
        await wanting(world, "p", selectors=loops(10))
        await world.settle()

        assert await where(world, "p") == (
            'running "DynamicResources" filter plugin: node node-1: timed out trying to allocate'
            " devices: evaluating the selectors exceeds the budget of 30000 cost units"
        )


async def test_kubernetes_mode_uses_the_texts_of_kubernetes(world: World) -> None:
    await ready(world, devices=20)
    async with limited(30_000, strict=True).running(world):
        await wanting(world, "p", selectors=loops(10))
        await world.settle()

        assert await where(world, "p") == (
            'running "DynamicResources" filter plugin: node node-1: timed out trying to allocate'
            " devices"
        )


async def test_it_is_tried_again_after_a_pause_and_gets_further(world: World) -> None:
    await ready(world, devices=20)
    scheduling = limited(100_000)
    async with scheduling.running(world):
        await wanting(world, "p", selectors=loops(10))
        await world.settle()
        before = len(scheduling.looked_at)
        # Whatever happens meanwhile does not wake it.
        await node(world, "node-2")
        await pod(world, "q")
        await world.pass_time(4, step=1)
        assert scheduling.looked_at[before:].count("p") <= 1
        assert "timed out" in await where(world, "p")
        await world.pass_time(60)

    assert await where(world, "p") == "node-1"

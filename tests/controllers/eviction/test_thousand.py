"""A thousand pods on a thousand devices, from the preview to the end, in every version."""

from __future__ import annotations

from dataclasses import replace

import pytest

import manifests
from controllers.eviction.evicting import (
    DRIVER,
    RULES,
    SLICES,
    Evicting,
    conditions,
    holder,
    left,
    marked,
    prepare,
    records,
    status,
)
from controllers.world import World
from sully.client.transport import Key

pytestmark = pytest.mark.slow
PODS, SLICES_MADE = 1000, 20
VERSIONS = {"v1": PODS, "v1beta2": PODS // 10, "v1alpha3": PODS // 10}
"""With how many pods a version is used: it only decides how a rule is written."""


async def fill(world: World, pods: int = PODS) -> None:
    entry = pods // SLICES_MADE
    for number in range(SLICES_MADE):
        first = number * entry
        devices = [{"name": f"gpu-{index}"} for index in range(first, first + entry)]
        name, count = f"s-{number}", SLICES_MADE
        body = manifests.slice_(name, "pool-1", *devices, count=count, nodeName="node-1")
        await world.admin.create(SLICES, body)
    for index in range(pods):
        await holder(world, f"p-{index}", f"gpu-{index}")


@pytest.mark.parametrize(("version", "pods"), VERSIONS.items(), ids=VERSIONS)
async def test_a_rule_previews_and_then_evicts_them_all(
    world: World, version: str, pods: int
) -> None:
    rules, key = replace(RULES, version=version), Key("", "r")
    await prepare(world)
    await fill(world, pods)
    async with world.controlled(Evicting().make()):
        await world.settle()
        spec = {"deviceSelector": {"driver": DRIVER}, "taint": marked("None")}
        await world.admin.create(rules, {"metadata": {"name": "r"}, "spec": spec})
        await world.settle()
        assert (await status(world))[2] == (
            f"{pods} published devices selected. {pods} allocated devices selected."
            f" {pods} pods would be evicted in 1 namespace if the effect was NoExecute."
            " This information will not be updated again."
            " Recreate the DeviceTaintRule to trigger an update."
        )
        earlier = {"spec": {"taint": {"timeAdded": "2029-01-01T00:00:00Z"}}}
        await world.admin.patch(rules, key, earlier)
        await world.settle()
        assert (await conditions(world))["EvictionInProgress"]["observedGeneration"] == 2
        changed = await world.admin.patch(rules, key, {"spec": {"taint": {"effect": "NoExecute"}}})
        assert changed["spec"]["taint"]["timeAdded"] == "2030-01-01T12:00:00Z"
        await world.pass_time(2, step=0.5)

        assert await status(world) == (
            "False",
            "Completed",
            f"{pods} pods evicted since starting the controller.",
        )
        assert len(await left(world)) == len(await records(world)) == pods


async def test_tainted_slices_evict_them_all(world: World) -> None:
    evicting = Evicting()
    await prepare(world)
    await fill(world)
    async with world.controlled(evicting.make()):
        await world.settle()
        for slice_ in (await world.admin.list(SLICES)).items:
            for device in slice_["spec"]["devices"]:
                device["taints"] = [marked()]
            await world.admin.update(SLICES, slice_)
        await world.settle()

    assert len(await left(world)) == PODS
    calls = evicting.calls()
    assert [calls.count(verb) for verb in ("get", "patch", "delete")] == [PODS] * 3

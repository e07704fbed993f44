"""Pods that want devices with taints, with all controllers at work: who waits, who runs and stays.

Taints come from rules, slices, slices of taints and patches; the order in which things appear does
not matter as long as the taint is there before the pod has its device.
"""

from __future__ import annotations

from itertools import permutations

import pytest

from checklist.living import life
from controllers.eviction.evicting import (
    KEY,
    PATCHES,
    RULES,
    allocate,
    bound_pod,
    claim,
    conditions,
    fate,
    status,
)
from controllers.eviction.evicting import prepare as prepare_eviction
from controllers.eviction.evicting import rule as make_rule
from controllers.scheduling.placing import (
    CLAIMS,
    REFUSED,
    SLICES,
    prepare,
    wanting,
    where,
)
from controllers.world import PODS, Obj, World
from manifests import claim_spec, patch, pod_spec, rule, slice_
from sully.client.transport import Key, Kind

TEMPLATES: Kind[Obj] = Kind(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", dict
)
PLACED = "node-1"


async def publish(world: World, source: str, taint: Obj) -> None:
    """Publish a device; a driver that marks it does so immediately."""
    device: Obj = {"name": "gpu-0"}
    if source == "slice":
        device["taints"] = [taint]
    count = 2 if source == "taint slice" else 1
    await world.admin.create(SLICES, slice_("s", "node-1", device, count=count))


async def mark(world: World, source: str, taint: Obj) -> None:
    """Put the taint on the device, unless its driver does."""
    if source == "rule":
        await world.admin.create(RULES, rule("mark", taint=taint))
    if source == "patch":
        await world.admin.create(PATCHES, patch("mark", {"taints": [taint]}))
    if source == "taint slice":
        taints = [{"device": "gpu-0", "taint": taint}]
        await world.admin.create(SLICES, slice_("mark", "node-1", count=2, taints=taints))


SOURCES = ("rule", "slice", "taint slice", "patch")
ORDERS = [order for order in permutations(("mark", "publish", "want")) if order[-1] != "mark"]
CASES: dict[str, tuple[str, list[Obj], str]] = {
    "NoSchedule": ("NoSchedule", [], REFUSED),
    "NoSchedule, tolerated by key and effect": (
        "NoSchedule",
        [{"key": KEY, "operator": "Equal", "effect": "NoSchedule"}],
        PLACED,
    ),
    "NoSchedule, tolerated without a key": (
        "NoSchedule",
        [{"operator": "Exists", "effect": "NoSchedule"}],
        PLACED,
    ),
    "NoExecute": ("NoExecute", [], REFUSED),
    "NoExecute, the other effect tolerated": (
        "NoExecute",
        [{"operator": "Exists", "effect": "NoSchedule"}],
        REFUSED,
    ),
    "NoExecute, tolerated": (
        "NoExecute",
        [{"key": KEY, "operator": "Exists", "effect": "NoExecute"}],
        PLACED,
    ),
    "None": ("None", [], PLACED),
}


@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("effect", "tolerations", "want"), CASES.values(), ids=CASES.keys())
async def test_a_pod_waits_or_runs_and_stays(
    effect: str, tolerations: list[Obj], want: str, source: str, order: tuple[str, ...]
) -> None:
    world, taint = World(), {"key": KEY, "effect": effect}
    await prepare(world, devices=0)
    async with life(world):
        for step in order:
            if step == "want":
                await wanting(world, "p", tolerations=tolerations)
            else:
                await (mark if step == "mark" else publish)(world, source, taint)
            await world.settle()
        await world.pass_time(60)

        assert await where(world, "p") == want
        assert await fate(world, "p") == "stays"


async def test_a_rule_evicts_a_pod_that_runs_and_its_finalizer_lets_people_see_why() -> None:
    world = World()
    await prepare(world)
    tolerated = [{"operator": "Exists", "effect": "NoSchedule"}]
    async with life(world):
        await wanting(world, "p", tolerations=tolerated)
        held = {"metadata": {"finalizers": ["example.com/look"]}}
        await world.admin.patch(PODS, Key("a", "p"), held)
        await world.settle()
        made = await make_rule(world)
        await world.settle()
        pod = await world.admin.get(PODS, Key("a", "p"))

    assert made["spec"]["taint"]["timeAdded"] == "2030-01-01T12:00:00Z"
    marks = [
        condition
        for condition in pod["status"]["conditions"]
        if condition["type"] == "DisruptionTarget"
    ]
    assert [mark["reason"] for mark in marks] == ["DeletionByDeviceTaintManager"]
    assert "deletionTimestamp" in pod["metadata"]


async def test_ten_pods_that_tolerate_are_placed_under_a_rule_for_everything() -> None:
    world, pods = World(), [f"p-{index}" for index in range(10)]
    await prepare(world, devices=10)
    template = claim_spec(tolerations=[{"key": KEY, "operator": "Exists"}])
    async with life(world):
        await make_rule(world, "NoSchedule")
        await world.create(TEMPLATES, "a", "t", spec={"spec": template})
        for name in pods:
            await world.create(PODS, "a", name, spec=pod_spec(template="t"))
        await world.settle()

        assert [await where(world, pod) for pod in pods] == [PLACED] * 10
        results = [
            claim["status"]["allocation"]["devices"]["results"][0]
            for claim in (await world.admin.list(CLAIMS, "a")).items
        ]
    assert len({result["device"] for result in results}) == 10
    expected = {"key": KEY, "operator": "Exists"}
    assert all(result["tolerations"] == [expected] for result in results)


async def test_a_pod_with_two_claims_under_one_rule_counts_once() -> None:
    world = World()
    await prepare_eviction(world)
    for name in ("one", "two"):
        await claim(world, name)
    await bound_pod(world, "p", "one", "two")
    await allocate(world, "one", ("gpu-0",), pods=("p",))
    await allocate(world, "two", ("gpu-1",), pods=("p",))
    async with life(world):
        await make_rule(world, "None")
        await world.settle()
        assert " 1 pod would be evicted in 1 namespace " in (await status(world))[2]
        await world.admin.patch(RULES, Key("", "r"), {"spec": {"taint": {"effect": "NoExecute"}}})
        await world.pass_time(5)

        assert (await status(world))[2] == "1 pod evicted since starting the controller."
        assert (await conditions(world))["sully.dev/Evicted"]["message"] == "1 pod evicted."
        assert await fate(world, "p") == "evicted"


async def test_eviction_survives_a_new_life_and_still_prevents_scheduling() -> None:
    """A tolerating pod runs, a rule evicts it, and after a restart the rule still blocks."""
    world = World()
    await prepare(world, devices=2)
    async with life(world):
        await wanting(world, "p", tolerations=[{"operator": "Exists", "effect": "NoSchedule"}])
        await make_rule(world, "NoSchedule", "soft")
        await world.pass_time(5)
        assert await fate(world, "p") == "stays"
    async with life(world):
        await make_rule(world)
        await world.pass_time(5)
        assert await fate(world, "p") == "evicted"
    async with life(world):
        await wanting(world, "q")
        await world.pass_time(5)

        assert await where(world, "q") == REFUSED
        assert (await conditions(world))["sully.dev/Evicted"]["message"] == "1 pod evicted."

"""What wakes a placement, and what a change does not wake: C16, I5, I8, I10, I13 to I15."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from controllers.placement.placing import (
    BINDINGS,
    CLUSTERS,
    SCORES,
    SET,
    SETS,
    TEAM,
    Placing,
    bind,
    cluster,
    condition,
    decided,
    make_set,
    no_select,
    place,
    prepare,
    respec,
    taint,
)
from controllers.world import NAMESPACES, World, running
from sully.api.cluster.types import SET_LABEL
from sully.client.transport import Key
from sully.controllers.framework.manager import Manager
from sully.controllers.placement.wiring import WORKERS
from sully.machinery.formats.timestamps import format_time

RESOURCES = {"capacity": {"cpu": "100", "memory": "100Gi"}}


async def looks(placing: Placing) -> float:
    name = "scheduling_scheduling_duration_seconds_count"
    labels = {"name": "placement_scheduling"}
    return placing.metrics.registry.get_sample_value(name, labels) or 0


async def test_c16_a_cluster_wakes_only_those_who_may_use_it(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a")
    await make_set(world, "other")
    await bind(world, "other")
    await world.admin.create(NAMESPACES, {"metadata": {"name": "elsewhere"}})
    async with world.controlled(placing.make()):
        await place(world)
        await place(world, "named", clusterSets=["other"])
        await place(world, namespace="elsewhere")
        await world.settle()
        before = await looks(placing)
        await taint(world, "a", no_select("k"))
        await world.settle()
        # The cluster wakes one placement, and what that writes wakes it once more at most.
        assert 1 <= await looks(placing) - before <= 3
    assert await decided(world) == [[]]


async def test_c16_a_cluster_that_reports_nothing_new_wakes_nobody(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a")
    async with placing.placed(world):
        before = await looks(placing)
        version = {"status": {"version": {"kubernetes": "v1.37.0"}}}
        await world.admin.patch(CLUSTERS, Key("", "a"), version, subresource="status")
        await world.settle()
        assert await looks(placing) == before


async def test_placements_that_avoid_each_other_come_to_rest(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a", "b")
    names = ("one", "two", "three", "four")
    for name in names:
        await place(world, name, numberOfClusters=1)
    manager = Manager(world.transport("informers"), clock=world.clock)
    manager.add(placing.make()(world, manager), workers=WORKERS)
    async with running(manager):
        await world.settle()
    chosen = [(await decided(world, name))[0][0] for name in names]
    assert sorted(chosen) == ["a", "a", "b", "b"]
    # Each decided once: what one took was seen by the next before the caches had it.
    assert placing.writes().count("patch placementdecisions/status") == len(names)


async def test_c16_a_cluster_that_moves_reaches_both_sets(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a")
    await make_set(world, "other")
    await bind(world, "other")
    async with world.controlled(placing.make()):
        await place(world, "old", clusterSets=[SET])
        await place(world, "new", clusterSets=["other"])
        await world.settle()
        moved = {"metadata": {"labels": {SET_LABEL: "other"}}}
        await world.admin.patch(CLUSTERS, Key("", "a"), moved)
        await world.settle()
    assert await decided(world, "old") == [[]]
    assert await decided(world, "new") == [["a"]]


async def test_i10_sets_and_bindings_come_and_go(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a")
    await cluster(world, "b", member="late")
    async with placing.placed(world):
        await bind(world, "late")
        await world.settle()
        assert await decided(world) == [["a"]]
        await make_set(world, "late")
        await world.settle()
        assert await decided(world) == [["a", "b"]]
        await world.admin.delete(BINDINGS, Key(TEAM, SET))
        await world.settle()
        assert await decided(world) == [["b"]]
        await world.admin.delete(SETS, Key("", "late"))
        await world.settle()
    assert await decided(world) == [[]]
    assert (await condition(world, "PlacementSatisfied"))[1] == "NoManagedClusterSetBindings"


async def test_i5_a_cluster_that_is_being_deleted_is_removed(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a")
    await cluster(world, "b", finalizers=("example.com/hold",))
    async with placing.placed(world):
        await world.admin.delete(CLUSTERS, Key("", "b"))
        await world.settle()
        assert (await world.admin.get(CLUSTERS, Key("", "b")))["metadata"]["deletionTimestamp"]
    assert await decided(world) == [["a"]]


async def test_i8_numbers_and_sets_are_changed(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a", "b", "c")
    await make_set(world, "other")
    await bind(world, "other")
    await cluster(world, "z", member="other")
    async with world.controlled(placing.make()):
        await place(world, numberOfClusters=2)
        for spec, expected in (
            ({}, ["a", "b"]),
            ({"numberOfClusters": 1}, ["a"]),
            ({"numberOfClusters": 3}, ["a", "b", "c"]),
            ({"clusterSets": ["other"]}, ["z"]),
        ):
            await respec(world, **spec)
            await world.settle()
            assert await decided(world) == [expected]
    result = await condition(world, "PlacementSatisfied")
    assert result == ("False", "NotAllDecisionsScheduled", "2 cluster decisions unscheduled")


async def score(world: World, name: str, value: int) -> None:
    body = {"status": {"scores": [{"name": "fit", "value": value}]}}
    await world.admin.patch(SCORES, Key(name, "demo"), body, subresource="status")


async def test_i14_c16_scores_that_change_select_again(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a", "b", "c")
    for name in ("a", "b", "c"):
        await world.admin.create(NAMESPACES, {"metadata": {"name": name}})
    add_on = {"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "fit"}}
    policy = {"mode": "Exact", "configurations": [{"scoreCoordinate": add_on}]}
    async with placing.placed(world, numberOfClusters=2, prioritizerPolicy=policy):
        assert await decided(world) == [["a", "b"]]
        for name, value in (("a", 80), ("b", 90), ("c", 100)):
            await world.admin.create(SCORES, {"metadata": {"name": "demo", "namespace": name}})
            await score(world, name, value)
        await world.settle()
        assert await decided(world) == [["b", "c"]]
        await score(world, "a", 95)
        await world.settle()
    assert await decided(world) == [["a", "c"]]


async def test_a_score_that_runs_out_selects_again_at_that_time() -> None:
    world, placing = World(), Placing(strict=False)
    await prepare(world, "a", "b")
    await world.admin.create(NAMESPACES, {"metadata": {"name": "b"}})
    await world.admin.create(SCORES, {"metadata": {"name": "demo", "namespace": "b"}})
    await score(world, "b", 50)
    soon = format_time(world.clock.now() + timedelta(seconds=60))
    end = {"status": {"validUntil": soon}}
    await world.admin.patch(SCORES, Key("b", "demo"), end, subresource="status")
    add_on = {"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "fit"}}
    policy = {"mode": "Exact", "configurations": [{"scoreCoordinate": add_on}]}
    async with placing.placed(world, numberOfClusters=1, prioritizerPolicy=policy):
        assert await decided(world) == [["b"]]
        await world.pass_time(60, step=60)
        assert await decided(world) == [["b"]]
        await world.pass_time(0.01)
    assert await decided(world) == [["a"]]


async def capable(world: World, name: str, cpu: int, memory: int) -> None:
    amounts = {"cpu": str(cpu), "memory": f"{memory}Gi"}
    await cluster(world, name, status={"allocatable": amounts, **RESOURCES})


def built_in(**weights: int) -> list[dict[str, Any]]:
    return [
        {"scoreCoordinate": {"builtIn": name}, "weight": weight} for name, weight in weights.items()
    ]


async def test_i12_i13_resources_steady_and_balance(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world)
    for name, cpu in (("a", 10), ("b", 60), ("c", 80)):
        await capable(world, name, cpu, cpu)
    best = built_in(ResourceAllocatableCPU=1, ResourceAllocatableMemory=1)
    async with world.controlled(placing.make()):
        await place(world, "plain", numberOfClusters=2)
        await place(
            world, numberOfClusters=1, prioritizerPolicy={"mode": "Exact", "configurations": best}
        )
        held = {"mode": "Exact", "configurations": [*best, *built_in(Steady=3)]}
        await place(world, "held", numberOfClusters=1, prioritizerPolicy=held)
        await world.settle()
        assert await decided(world, "plain") == [["a", "b"]]
        assert await decided(world) == [["c"]]
        await capable(world, "better", 90, 90)
        await world.settle()
        assert await decided(world) == [["better"]]
        # Steady outweighs what little better the newcomer is.
        assert await decided(world, "held") == [["c"]]
        spread = {"mode": "Exact", "configurations": built_in(Balance=2, ResourceAllocatableCPU=1)}
        await capable(world, "idle", 5, 5)
        await place(world, "spread", numberOfClusters=1, prioritizerPolicy=spread)
        await world.settle()
        assert await decided(world, "spread") == [["idle"]]
        await world.admin.delete(CLUSTERS, Key("", "better"))
        await world.settle()
    assert await decided(world) == [["c"]]


def selecting(**part: Any) -> list[dict[str, Any]]:
    return [{"requiredClusterSelector": part}]


PREDICATES: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "label": (selecting(labelSelector={"matchLabels": {"env": "prod"}}), ["a"]),
    "claim": (
        selecting(
            claimSelector={
                "matchExpressions": [{"key": "vendor", "operator": "In", "values": ["acme"]}]
            }
        ),
        ["b"],
    ),
    "expression": (
        selecting(
            celSelector={"celExpressions": ["managedCluster.metadata.labels['env'] == 'test'"]}
        ),
        ["b"],
    ),
}


@pytest.mark.parametrize(("predicates", "expected"), PREDICATES.values(), ids=PREDICATES)
async def test_i15_predicates_are_edited(
    strict: bool, predicates: list[dict[str, Any]], expected: list[str]
) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world)
    await cluster(world, "a", env="prod")
    claims = {"clusterClaims": [{"name": "vendor", "value": "acme"}]}
    await cluster(world, "b", env="test", status=claims)
    async with world.controlled(placing.make()):
        await place(world)
        await respec(world, predicates=predicates)
        await world.settle()
        assert await decided(world) == [expected]
        broken = selecting(celSelector={"celExpressions": ["managedCluster.("]})
        await respec(world, predicates=broken)
        await world.settle()
        result = await condition(world, "PlacementMisconfigured")
        assert result[0] == "True"
        assert result[2].startswith("Predicate:compilation failed: ")
        # OCM lets everything go that a mistake was made about.
        assert await decided(world) == ([[]] if strict else [expected])
        await respec(world, predicates=None)
        await world.settle()
    assert await decided(world) == [["a", "b"]]

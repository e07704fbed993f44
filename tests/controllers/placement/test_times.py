"""Tolerations that expire (I1 to I3), default tolerations, and the removal budget."""

from __future__ import annotations

import pytest

from controllers.placement.placing import (
    Placing,
    cluster,
    condition,
    decided,
    no_select,
    place,
    prepare,
    report,
    respec,
    taint,
)
from controllers.world import Step, World, orders, play
from sully.api.cluster.types import UNREACHABLE
from sully.controllers.placement.settings import PlacementSettings
from sully.domain.eviction.rates import BURST

HELD = "sully.dev/RemovalsDelayed"


async def test_i1_two_of_three_taints_are_tolerated(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world)
    for number in (1, 2, 3):
        await cluster(world, f"c{number}", no_select(f"key{number}", f"value{number}"))
    tolerations = [
        {"key": "key1", "operator": "Exists"},
        {"key": "key2", "operator": "Equal", "value": "value2"},
    ]
    await placing.place(world, numberOfClusters=3, tolerations=tolerations)
    assert await decided(world) == [["c1", "c2"]]


async def test_i2_effects(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "plain")
    for effect in ("NoSelect", "NoSelectIfNew", "PreferNoSelect"):
        await cluster(world, effect.lower(), no_select("k", effect=effect))
    wrong = [
        {"key": "k", "operator": "Exists", "effect": "NoSelectIfNew"},
        {"key": "k", "operator": "Equal", "value": "x", "effect": "NoSelect"},
    ]
    async with placing.placed(world, tolerations=wrong[1:]):
        assert await decided(world) == [["plain", "prefernoselect"]]
        await taint(world, "plain", no_select("new", effect="NoSelectIfNew"))
        await world.settle()
        assert await decided(world) == [["plain", "prefernoselect"]]
        await taint(world, "plain", no_select("new"))
        await world.settle()
    assert await decided(world) == [["prefernoselect"]]


async def test_i3_t17_clusters_are_removed_to_the_second(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world)
    await cluster(world, "old", no_select("k0"))
    await world.pass_time(60, step=60)
    await cluster(world, "ten", no_select("k1"))
    await cluster(world, "twenty", no_select("k2"))
    tolerations = [
        {"key": "k0", "operator": "Exists", "tolerationSeconds": 600},
        {"key": "k1", "operator": "Exists", "tolerationSeconds": 10},
        {"key": "k2", "operator": "Exists", "tolerationSeconds": 20},
    ]
    began = world.clock.now()
    # Times of taints have whole seconds.
    early = began.microsecond / 1e6
    async with placing.placed(world, tolerations=tolerations):
        for after, expected in (
            (10 - early - 0.01, ["old", "ten", "twenty"]),
            (10 - early, ["old", "twenty"]),
            (20 - early - 0.01, ["old", "twenty"]),
            (20 - early, ["old"]),
        ):
            await world.pass_time(after - (world.clock.now() - began).total_seconds(), step=60)
            assert await decided(world) == [expected]
        await taint(world, "old", no_select("k9"))
        await world.settle()
    assert await decided(world) == [[]]


async def test_a_toleration_of_ninety_seconds(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a", "b")
    tolerations = [{"key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 90}]
    async with placing.placed(world, tolerations=tolerations, numberOfClusters=1):
        await place(world, "other", numberOfClusters=1)
        await world.settle()
        assert await decided(world) == [["a"]]
        world.clock.advance(1 - world.clock.now().microsecond / 1e6)
        await taint(world, "a", no_select(UNREACHABLE))
        await world.settle()
        assert await decided(world, "other") == [["b"]]
        await world.pass_time(89.9, step=89.9)
        assert await decided(world) == [["a"]]
        await world.pass_time(0.1, step=0.1)
    assert await decided(world) == [["b"]]


async def test_prefer_no_select_comes_last_and_is_kept() -> None:
    world, placing = World(), Placing(strict=False)
    await prepare(world)
    await cluster(world, "a", no_select("soft", effect="PreferNoSelect"))
    await cluster(world, "b")
    async with world.controlled(placing.make()):
        await place(world, numberOfClusters=1)
        await place(world, "both", numberOfClusters=2)
        await world.settle()
    assert await decided(world) == [["b"]]
    assert await decided(world, "both") == [["a", "b"]]


DEFAULTS: dict[str, tuple[bool, int | None, list[list[str]]]] = {
    "a default keeps unhealthy clusters": (False, 300, [["a"]]),
    "none lets them go immediately": (False, None, [[]]),
    "OCM knows no default": (True, 300, [[]]),
}


@pytest.mark.parametrize(("strict", "seconds", "expected"), DEFAULTS.values(), ids=DEFAULTS)
async def test_a_default_toleration(
    strict: bool, seconds: int | None, expected: list[list[str]]
) -> None:
    world = World()
    placing = Placing(strict=strict, settings=PlacementSettings(toleration_seconds=seconds))
    await prepare(world, "a")
    async with placing.placed(world):
        await taint(world, "a", no_select(UNREACHABLE))
        await world.settle()
        assert await decided(world) == expected
        await world.pass_time(300, step=100)
    assert await decided(world) == [[]]


async def test_a_budget_limits_how_many_clusters_are_removed() -> None:
    world = World()
    placing = Placing(False, PlacementSettings(removals_per_minute=2))
    names = [f"c{number}" for number in range(6)]
    await prepare(world, *names)
    async with world.controlled(placing.make()):
        await place(world)
        await place(world, "other")
        await world.settle()
        for name in names:
            await taint(world, name, no_select(UNREACHABLE))
        await world.settle()
        assert await decided(world) == [names[2:]]
        assert await decided(world, "other") == [names[2:]]
        result = await condition(world, HELD)
        assert result[:2] == ("True", "RemovalBudget")
        assert result[2].endswith(": c2, c3, c4, c5")
        await world.pass_time(31, step=31)
        assert await decided(world) == [names[3:]]
        assert await decided(world, "other") == [names[3:]]
        # The hub has its network back: whoever is still here stays.
        for name in names:
            await report(world, name)
            await taint(world, name)
        await world.settle()
    assert await decided(world) == [names]
    assert (await condition(world, HELD))[:2] == ("False", "NoneDelayed")


async def test_maintenance_is_no_matter_of_the_budget() -> None:
    world = World()
    placing = Placing(False, PlacementSettings(removals_per_minute=0))
    await prepare(world, "a", "b")
    async with placing.placed(world):
        await taint(world, "a", no_select("maintenance"))
        await taint(world, "b", no_select(UNREACHABLE))
        await world.settle()
    assert await decided(world) == [["b"]]


async def fleet_comes(world: World) -> None:
    await prepare(world, "a", "b", "c")


async def taints_come(world: World) -> None:
    await taint(world, "a", no_select("k", effect="NoSelect"))


async def placements_come(world: World) -> None:
    await place(world, tolerations=[{"key": "k", "operator": "Exists", "tolerationSeconds": 5}])
    await place(world, "strict", numberOfClusters=2)


async def number_changes(world: World) -> None:
    await respec(world, "strict", numberOfClusters=1)


AFTER_FLEET = [
    pytest.param((fleet_comes, *order.values[0]), id=str(order.id))
    for order in orders(taints_come, placements_come)
]


@pytest.mark.parametrize("pauses", [True, False], ids=["with pauses", "immediately"])
@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize("steps", AFTER_FLEET)
async def test_every_order_ends_alike(
    strict: bool, steps: tuple[Step, ...], start: int, pauses: bool
) -> None:
    world, placing = World(), Placing(strict)
    await play(world, (*steps, number_changes), placing.make(), start=start, pauses=pauses)
    assert await decided(world) == [["b", "c"]]
    assert len((await decided(world, "strict"))[0]) == 1
    assert "a" not in (await decided(world, "strict"))[0]


async def test_a_placement_that_would_rather_have_others_changes_once_a_second(
    strict: bool,
) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a", "b")
    steady = {"type": "BuiltIn", "builtIn": "Steady"}
    policy = {"mode": "Exact", "configurations": [{"scoreCoordinate": steady, "weight": -1}]}
    changed = "patch placementdecisions/status"
    async with placing.placed(world, numberOfClusters=1, prioritizerPolicy=policy):
        assert placing.writes().count(changed) == BURST
        for has in ("a", "b", "a"):
            await world.pass_time(1)
            assert placing.writes().count(changed) == 1
            assert await decided(world) == [[has]]

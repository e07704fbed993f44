"""Placements whose expressions cost too much to evaluate together."""

from __future__ import annotations

from typing import Any

from controllers.placement.placing import (
    Placing,
    condition,
    decided,
    place,
    prepare,
    respec,
)
from controllers.world import World

LABELS = "managedCluster.metadata.labels"
LOOP = f'"{"0" * 40}".split("").all(x, {LABELS}.exists(key, key == "tier"))'
"""Costs some hundreds of units, depending on the cluster."""
MISCONFIGURED = "PlacementMisconfigured"


def with_expressions(*expressions: str) -> list[dict[str, Any]]:
    return [{"requiredClusterSelector": {"celSelector": {"celExpressions": list(expressions)}}}]


async def test_a_placement_that_exceeds_its_budget_is_reported(strict: bool, world: World) -> None:
    await prepare(world, "a", "b", tier="1")
    placing = Placing(strict, units=500)
    async with placing.placed(world):
        await respec(world, predicates=with_expressions(LOOP))
        await world.settle()

        assert await decided(world) == [["a", "b"]], "it keeps what it has"
        status, reason, message = await condition(world, MISCONFIGURED)
        assert (status, reason) == ("True", "Misconfigured")
        assert message.startswith("Predicate:evaluation exceeds the budget of 500 cost units")


async def test_others_are_decided_meanwhile(strict: bool, world: World) -> None:
    await prepare(world, "a", "b", tier="1")
    async with Placing(strict, units=500).placed(world, predicates=with_expressions(LOOP)):
        await place(world, "other", predicates=with_expressions("true"))
        await world.settle()

        assert await decided(world, "other") == [["a", "b"]]


async def test_it_is_tried_again_after_a_pause(strict: bool, world: World) -> None:
    await prepare(world, "a", "b", "c", tier="1")
    placing = Placing(strict, units=3000)
    async with placing.placed(world, predicates=with_expressions(LOOP, LOOP + " && true")):
        assert (await condition(world, MISCONFIGURED))[0] == "True"
        placing.writes()
        await world.pass_time(4, step=1)
        assert placing.writes() == [], "not immediately"
        await world.pass_time(600)

        assert await decided(world) == [["a", "b", "c"]]
        assert (await condition(world, MISCONFIGURED))[0] == "False"

"""Placements that cannot be decided or written as they should: Q1 to Q5 of the quirks, C12, I9."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.placement.placing import (
    DECISIONS,
    SET,
    SETS,
    Placing,
    cluster,
    condition,
    decided,
    place,
    prepare,
    respec,
    status,
)
from controllers.world import Obj, World
from sully.client.transport import Key
from sully.machinery.errors import Forbidden, InternalError

CREATE, TELL = "create placementdecisions", "patch placements/status"
SATISFIED, MISCONFIGURED = "PlacementSatisfied", "PlacementMisconfigured"
BAD_TOLERATION = [{"operator": "Equal", "value": "x"}]
BAD_GROUPS = {"groupStrategy": {"clustersPerDecisionGroup": "5"}}
BROKEN: dict[str, tuple[dict[str, Any], bool, list[list[str]], str, str]] = {
    "C12 Q1 a bad toleration empties a placement of OCM": (
        {"tolerations": BAD_TOLERATION},
        True,
        [[]],
        "True",
        "False NoManagedClusterMatched",
    ),
    "Q1 and here it keeps what it has": (
        {"tolerations": BAD_TOLERATION},
        False,
        [["a", "b"]],
        "True",
        "True AllDecisionsScheduled",
    ),
    "Q2 a quoted group size deletes all decisions of OCM": (
        {"decisionStrategy": BAD_GROUPS},
        True,
        [],
        "True",
        "True AllDecisionsScheduled",
    ),
    "Q2 and here it is a number": (
        {"decisionStrategy": BAD_GROUPS},
        False,
        [["a", "b"]],
        "False",
        "True AllDecisionsScheduled",
    ),
    "Q5 a negative number is none": (
        {"numberOfClusters": -1},
        False,
        [[]],
        "False",
        "False NoManagedClusterMatched",
    ),
}


@pytest.mark.parametrize(
    ("spec", "strict", "clusters", "misconfigured", "satisfied"), BROKEN.values(), ids=BROKEN
)
async def test_i9_a_spec_that_breaks_and_is_repaired(
    spec: dict[str, Any],
    strict: bool,
    clusters: list[list[str]],
    misconfigured: str,
    satisfied: str,
) -> None:
    world, placing = World(), Placing(strict=strict)
    await prepare(world, "a", "b")
    async with placing.placed(world):
        await respec(world, **spec)
        await world.settle()
        assert await decided(world) == clusters
        assert (await condition(world, MISCONFIGURED))[0] == misconfigured
        assert " ".join((await condition(world, SATISFIED))[:2]) == satisfied
        unset: Obj = dict.fromkeys(spec)
        await respec(world, **unset)
        await world.settle()
    assert await decided(world) == [["a", "b"]]
    assert (await condition(world, MISCONFIGURED))[0] == "False"


REFUSED: dict[str, tuple[bool, str]] = {
    "Q3 OCM claims success": (True, "True"),
    "Q3 here the failure is reported": (False, "False"),
}


@pytest.mark.parametrize(("strict", "satisfied"), REFUSED.values(), ids=REFUSED)
async def test_a_write_that_fails_is_tried_again(
    strict: bool,
    satisfied: str,
) -> None:
    world, placing = World(), Placing(strict=strict)
    await prepare(world, "a")
    async with world.controlled(placing.make()):
        assert placing.transport is not None
        placing.transport.refusals[CREATE] = Forbidden("no quota")
        await place(world)
        await world.settle()
        assert (await condition(world, SATISFIED))[0] == satisfied
        if not strict:
            results = ("False", "NotAllDecisionsScheduled", "no quota")
            assert await condition(world, SATISFIED) == results
        placing.transport.refusals.clear()
        await world.pass_time(10)
    assert await decided(world) == [["a"]]
    assert (await condition(world, SATISFIED))[0] == "True"


async def test_a_status_that_fails_is_tried_again(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a")
    async with world.controlled(placing.make()):
        assert placing.transport is not None
        placing.transport.refusals[TELL] = InternalError("it failed")
        await place(world)
        await world.settle()
        assert await status(world) == {}
        placing.transport.refusals.clear()
        await world.pass_time(10)
    assert (await condition(world, SATISFIED))[0] == "True"


LONG: dict[str, tuple[bool, tuple[str, str]]] = {
    "OCM reports nothing": (True, ("", "")),
    "here the name is reported as too long": (False, ("True", "Misconfigured")),
}


@pytest.mark.parametrize(("strict", "expected"), LONG.values(), ids=LONG)
async def test_a_name_that_no_label_can_carry(
    strict: bool,
    expected: tuple[str, str],
) -> None:
    world, placing, name = World(), Placing(strict=strict), "p" * 64
    await prepare(world, "a")
    async with world.controlled(placing.make()):
        await place(world, name)
        await world.settle()
    assert (await condition(world, MISCONFIGURED, name))[:2] == expected
    assert await world.names(DECISIONS) == []


async def test_a_condition_keeps_its_time_until_its_status_changes(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a")
    async with placing.placed(world, numberOfClusters=3):
        first = {c["type"]: c["lastTransitionTime"] for c in (await status(world))["conditions"]}
        await world.pass_time(60)
        await cluster(world, "b")
        await world.settle()
        second = {c["type"]: c["lastTransitionTime"] for c in (await status(world))["conditions"]}
        assert second == first
        await cluster(world, "c")
        await world.settle()
    third = {c["type"]: c["lastTransitionTime"] for c in (await status(world))["conditions"]}
    assert third[MISCONFIGURED] == first[MISCONFIGURED]
    assert third[SATISFIED] > first[SATISFIED]


async def test_c10_a_set_that_cannot_be_read_stops_nothing_that_runs(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a", "b")
    async with placing.placed(world):
        placing.writes()
        bad = {"matchExpressions": [{"key": "k", "operator": "Near", "values": ["v"]}]}
        await select(world, {"selectorType": "LabelSelector", "labelSelector": bad})
        await world.settle()
        assert placing.writes() == []
        assert await decided(world) == [["a", "b"]]
        # A merge patch only adds to what stands there.
        await select(world, {"labelSelector": {"matchExpressions": None}})
        await cluster(world, "c", member="elsewhere")
        await world.settle()
    assert await decided(world) == [["a", "b", "c"]]


async def select(world: World, selector: dict[str, Any]) -> None:
    await world.admin.patch(SETS, Key("", SET), {"spec": {"clusterSelector": selector}})

"""What the controller writes for a placement, and what not: C1 to C14 of the checklist."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.placement.placing import (
    AT,
    BINDINGS,
    DECISIONS,
    PLACEMENTS,
    SET,
    TEAM,
    Placing,
    bind,
    cluster,
    condition,
    decided,
    make_set,
    place,
    prepare,
    respec,
    status,
)
from controllers.world import World
from sully.api.cluster.types import GROUP_INDEX_LABEL, GROUP_NAME_LABEL, PLACEMENT_LABEL
from sully.client.transport import Key

CREATE, FILL = "create placementdecisions", "patch placementdecisions/status"
RELABEL, REMOVE = "patch placementdecisions", "delete placementdecisions"
TELL = "patch placements/status"
FIRST = Key(TEAM, "web-decision-1")
SATISFIED, MISCONFIGURED = "PlacementSatisfied", "PlacementMisconfigured"
CANARY = {
    "groupName": "canary",
    "groupClusterSelector": {"labelSelector": {"matchLabels": {"canary": "yes"}}},
}


async def test_c1_selected_clusters_are_written_once(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a", "b", "c")
    await placing.place(world)
    assert await decided(world) == [["a", "b", "c"]]
    assert placing.writes() == [CREATE, FILL, TELL]
    result = await status(world)
    assert result["numberOfSelectedClusters"] == 3
    assert result["decisionGroups"] == [
        {
            "decisionGroupIndex": 0,
            "decisionGroupName": "",
            "decisions": ["web-decision-1"],
            "clusterCount": 3,
        }
    ]
    assert [condition["type"] for condition in result["conditions"]] == [MISCONFIGURED, SATISFIED]


async def test_a_decision_shows_whose_it_is(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a")
    await placing.place(world)
    decision = await world.admin.get(DECISIONS, FIRST)
    placement = await world.admin.get(PLACEMENTS, AT)
    assert decision["metadata"]["labels"] == {
        PLACEMENT_LABEL: "web",
        GROUP_INDEX_LABEL: "0",
        GROUP_NAME_LABEL: "",
    }
    assert decision["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "cluster.open-cluster-management.io/v1beta1",
            "kind": "Placement",
            "name": "web",
            "uid": placement["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert decision["status"] == {"decisions": [{"clusterName": "a", "reason": ""}]}


GROUPS: dict[str, tuple[list[dict[str, str]], dict[str, Any], list[tuple[str, list[str]]]]] = {
    "C2 a canary group, one cluster each": (
        [{"canary": "yes"}, {}, {"canary": "yes"}, {}],
        {"clustersPerDecisionGroup": 1, "decisionGroups": [CANARY]},
        [("canary", ["c0"]), ("canary", ["c2"]), ("", ["c1"]), ("", ["c3"])],
    ),
    "C3 two named groups": (
        [{"canary": "yes"}, {"canary": "yes"}, {"late": "yes"}],
        {
            "decisionGroups": [
                CANARY,
                {
                    "groupName": "late",
                    "groupClusterSelector": {"labelSelector": {"matchLabels": {"late": "yes"}}},
                },
            ]
        },
        [("canary", ["c0", "c1"]), ("late", ["c2"])],
    ),
    "C4 a quarter of three": (
        [{}, {}, {}],
        {"clustersPerDecisionGroup": "25%"},
        [("", ["c0"]), ("", ["c1"]), ("", ["c2"])],
    ),
    "I11 two canaries of five, by two": (
        [{"canary": "yes"}, {}, {"canary": "yes"}, {}, {}],
        {"clustersPerDecisionGroup": 2, "decisionGroups": [CANARY]},
        [("canary", ["c0", "c2"]), ("", ["c1", "c3"]), ("", ["c4"])],
    ),
}


@pytest.mark.parametrize(("labels", "strategy", "expected"), GROUPS.values(), ids=GROUPS)
async def test_groups(
    strict: bool,
    labels: list[dict[str, Any]],
    strategy: dict[str, Any],
    expected: list[tuple[str, list[str]]],
) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world)
    for number, entry in enumerate(labels):
        await cluster(world, f"c{number}", **entry)
    await placing.place(world, decisionStrategy={"groupStrategy": strategy})
    groups = (await status(world))["decisionGroups"]
    assert [group["decisionGroupIndex"] for group in groups] == list(range(len(expected)))
    assert [group["decisionGroupName"] for group in groups] == [name for name, _ in expected]
    assert await decided(world) == [names for _, names in expected]


async def test_i11_groups_follow_clusters_that_come_and_go(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a", "b")
    async with placing.placed(
        world, decisionStrategy={"groupStrategy": {"clustersPerDecisionGroup": 1}}
    ):
        await cluster(world, "aa")
        await world.settle()
        assert await decided(world) == [["a"], ["aa"], ["b"]]
        await respec(world, decisionStrategy={"groupStrategy": {"clustersPerDecisionGroup": 2}})
        await world.settle()
    assert await decided(world) == [["a", "aa"], ["b"]]
    assert [group["clusterCount"] for group in (await status(world))["decisionGroups"]] == [2, 1]


EMPTY: dict[str, tuple[str, dict[str, Any], str]] = {
    "C5 nothing is bound": ("unbound", {}, "NoManagedClusterSetBindings"),
    "C5 the sets are empty": ("empty", {}, "AllManagedClusterSetsEmpty"),
    "C5 nothing matches": (
        "full",
        {
            "predicates": [
                {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"vendor": "none"}}}}
            ]
        },
        "NoManagedClusterMatched",
    ),
    "C11 no set of those that are named is bound": (
        "full",
        {"clusterSets": ["other"]},
        "NoIntersection",
    ),
}


@pytest.mark.parametrize(("setting", "spec", "reason"), EMPTY.values(), ids=EMPTY)
async def test_nothing_to_select(
    strict: bool, setting: str, spec: dict[str, Any], reason: str
) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, *(["a"] if setting == "full" else []))
    if setting == "unbound":
        await world.admin.delete(BINDINGS, Key(TEAM, SET))
    async with world.controlled(placing.make()):
        await place(world, **spec)
        await world.settle()
    # An object that should be empty is created and never filled: it has no status.
    assert placing.writes() == [CREATE, TELL]
    assert "status" not in await world.admin.get(DECISIONS, FIRST)
    assert (await condition(world, SATISFIED))[:2] == ("False", reason)
    assert [group["clusterCount"] for group in (await status(world))["decisionGroups"]] == [0]


async def test_c6_nothing_changed_costs_no_write(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a", "b")
    await placing.place(world)
    placing.writes()
    async with world.controlled(placing.make()):
        await world.pass_time(120)
    assert placing.writes() == []


DISABLE = "cluster.open-cluster-management.io/experimental-scheduling-disable"


async def test_c7_a_disabled_placement_is_left_alone(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a")
    async with placing.placed(world):
        await world.admin.patch(PLACEMENTS, AT, {"metadata": {"annotations": {DISABLE: "true"}}})
        await world.settle()
        placing.writes()
        await cluster(world, "b")
        await world.settle()
        assert placing.writes() == []
        await world.admin.patch(PLACEMENTS, AT, {"metadata": {"annotations": {DISABLE: "no"}}})
        await world.settle()
    assert await decided(world) == [["a", "b"]]


async def test_c8_c9_only_bound_and_named_sets_count(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a")
    for name in ("two", "three"):
        await make_set(world, name)
        await cluster(world, f"in-{name}", member=name)
    await bind(world, "two")
    await bind(world, "gone")
    await placing.place(world, clusterSets=["two", "three", "gone"])
    assert await decided(world) == [["in-two"]]


SELECTORS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "exclusive": ({"selectorType": "ExclusiveClusterSetLabel"}, ["own"]),
    "label": (
        {"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"size": "big"}}},
        ["big"],
    ),
    "everything": ({"selectorType": "LabelSelector", "labelSelector": {}}, ["big", "own"]),
    "absent selector": ({"selectorType": "LabelSelector"}, []),
}


@pytest.mark.parametrize(("selector", "expected"), SELECTORS.values(), ids=SELECTORS)
async def test_c10_sets_choose_their_clusters(
    strict: bool, selector: dict[str, Any], expected: list[str]
) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world)
    await make_set(world, "special", **selector)
    await bind(world, "special")
    await cluster(world, "own", member="special")
    await cluster(world, "big", size="big", member="elsewhere")
    await placing.place(world, clusterSets=["special"])
    assert await decided(world) == [expected]


CHUNKS: dict[str, tuple[int, list[int]]] = {
    "C13 ten": (10, [10]),
    "C13 I7 one more than fits": (101, [100, 1]),
    "C13 I6 none": (0, [0]),
}


@pytest.mark.parametrize(("number", "sizes"), CHUNKS.values(), ids=CHUNKS)
async def test_decisions_hold_a_hundred(strict: bool, number: int, sizes: list[int]) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, *(f"c{index:03}" for index in range(number)))
    await placing.place(world)
    assert [len(item) for item in await decided(world)] == sizes
    groups = (await status(world))["decisionGroups"]
    assert [(group["decisionGroupIndex"], group["clusterCount"]) for group in groups] == [
        (0, number)
    ]


async def test_c13_i7_decisions_of_one_group_are_one_success(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, *(f"c{index:03}" for index in range(101)))
    await placing.place(world)
    parts = (await world.admin.list(DECISIONS, TEAM)).items
    assert [part["metadata"]["labels"][GROUP_INDEX_LABEL] for part in parts] == ["0", "0"]
    assert (await condition(world, SATISFIED))[:2] == ("True", "AllDecisionsScheduled")


async def test_c14_many_decisions_that_stay_are_not_written(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, *(f"c{index:03}" for index in range(128)))
    async with placing.placed(world):
        placing.writes()
        await world.admin.patch(PLACEMENTS, AT, {"metadata": {"labels": {"team": "web"}}})
        await respec(world, numberOfClusters=128)
        await world.settle()
        assert placing.writes() == []


async def test_c14_shrinking_to_nothing_leaves_one_empty_decision(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, *(f"c{index:03}" for index in range(128)))
    async with placing.placed(world):
        placing.writes()
        await respec(world, numberOfClusters=0)
        await world.settle()
        assert placing.writes() == [FILL, REMOVE, TELL]
    assert await decided(world) == [[]]


async def test_c14_shrinking_deletes_what_is_too_much(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, *(f"c{index:03}" for index in range(128)))
    async with placing.placed(world):
        placing.writes()
        await respec(world, numberOfClusters=10)
        await world.settle()
        assert placing.writes() == [FILL, REMOVE, TELL]
        await respec(world, numberOfClusters=0)
        await world.settle()
        assert placing.writes() == [FILL, TELL]
    assert await decided(world) == [[]]


DRIFTS: dict[str, dict[str, str | None]] = {
    "changed and taken away": {GROUP_INDEX_LABEL: "7", PLACEMENT_LABEL: None},
    "of another user": {"own": "x"},
}


@pytest.mark.parametrize("drift", DRIFTS.values(), ids=DRIFTS)
async def test_c14_labels_that_drift_are_put_back(
    strict: bool, drift: dict[str, str | None]
) -> None:
    """All of them are the placement's, also to OCM; annotations are anybody's."""
    world, placing = World(), Placing(strict)
    await prepare(world, "a")
    async with placing.placed(world):
        before = await world.admin.get(DECISIONS, FIRST)
        placing.writes()
        moved = {"labels": drift, "annotations": {"own": "x"}}
        await world.admin.patch(DECISIONS, FIRST, {"metadata": moved})
        await world.settle()
        assert placing.writes() == [RELABEL]
    decision = await world.admin.get(DECISIONS, FIRST)
    assert decision["metadata"]["labels"] == before["metadata"]["labels"]
    assert decision["metadata"]["annotations"] == {"own": "x"}


async def test_i4_decisions_deleted_by_hand_return(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a")
    async with placing.placed(world):
        await world.admin.delete(DECISIONS, FIRST)
        await world.settle()
    assert await decided(world) == [["a"]]


FORGED: dict[str, dict[str, Any]] = {
    "another cluster": {"clusterName": "z", "reason": ""},
    "a reason": {"clusterName": "a", "reason": "mine"},
    "a score": {"clusterName": "a", "reason": "", "score": 5},
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
async def test_a_decision_edited_by_hand_is_set_right(strict: bool, forged: dict[str, Any]) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a")
    async with placing.placed(world):
        patch = {"status": {"decisions": [forged]}}
        await world.admin.patch(DECISIONS, FIRST, patch, subresource="status")
        await world.settle()
    decision = await world.admin.get(DECISIONS, FIRST)
    assert decision["status"] == {"decisions": [{"clusterName": "a", "reason": ""}]}

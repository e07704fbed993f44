"""Events of placements and the number of them: C15 of the checklist."""

from __future__ import annotations

from controllers.placement.placing import (
    AT,
    DECISIONS,
    SCORES,
    TEAM,
    Placing,
    cluster,
    events,
    no_select,
    place,
    prepare,
    respec,
    taint,
)
from controllers.world import NAMESPACES, World
from sully.api.cluster.types import GROUP_INDEX_LABEL
from sully.client.events import EVENTS
from sully.client.transport import Key

FIRST = Key(TEAM, "web-decision-1")


def message_of(done: str, name: str = "web-decision-1") -> str:
    return f"Decision {name} is {done} with placement web in namespace {TEAM}"


async def test_c15_creation_update_and_scores(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "b", "a")
    await placing.place(world)
    assert await events(world) == [
        ("Normal", "DecisionCreate", "DecisionCreated", message_of("created")),
        ("Normal", "DecisionUpdate", "DecisionUpdated", message_of("updated")),
        ("Normal", "ScoreUpdate", "ScoreUpdated", "a:100 b:100 "),
    ]


async def test_events_name_the_decision_and_the_controller(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a")
    await placing.place(world)
    page = await world.admin.list(EVENTS, TEAM)
    for event in page.items:
        assert event["involvedObject"]["name"] == AT.name
        assert event["related"]["kind"] == "PlacementDecision"
        assert event["related"]["name"] == FIRST.name
        assert event["reportingComponent"] == "placement-controller"


async def test_c15_an_empty_decision_is_only_created(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world)
    await placing.place(world)
    assert [event[1] for event in await events(world)] == ["DecisionCreate"]


async def test_c15_labels_and_no_change_are_not_reported(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a")
    async with placing.placed(world):
        before = await events(world)
        drift = {"metadata": {"labels": {GROUP_INDEX_LABEL: "7"}}}
        await world.admin.patch(DECISIONS, FIRST, drift)
        await taint(world, "a", no_select("soft", effect="PreferNoSelect"))
        await world.settle()
    assert await events(world) == before


async def test_the_same_change_twice_is_reported_twice(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a")
    async with placing.placed(world):
        for taints in ((no_select("k"),), (), (no_select("k"),)):
            await taint(world, "a", *taints)
            await world.settle()
    reported = [event[1] for event in await events(world)]
    # Without a feasible cluster there are no scores to report.
    assert reported == [
        *("DecisionCreate", "DecisionUpdate", "ScoreUpdate"),
        "DecisionUpdate",
        *("DecisionUpdate", "ScoreUpdate"),
        "DecisionUpdate",
    ]


async def test_deleted_decisions_are_reported(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, *(f"c{index:03}" for index in range(101)))
    async with placing.placed(world):
        await respec(world, numberOfClusters=100)
        await world.settle()
    last = (await events(world))[-1]
    reported = message_of("deleted", "web-decision-2")
    assert last == ("Normal", "DecisionDelete", "DecisionDeleted", reported)


async def test_c15_s14_a_warning_is_reported_with_the_update(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world, "a")
    await world.admin.create(NAMESPACES, {"metadata": {"name": "a"}})
    await world.admin.create(SCORES, {"metadata": {"name": "test", "namespace": "a"}})
    old = {"scores": [{"name": "cpu", "value": 50}], "validUntil": "2001-01-01T00:00:00Z"}
    await world.admin.patch(SCORES, Key("a", "test"), {"status": old}, subresource="status")
    async with world.controlled(placing.make()):
        add_on = {"type": "AddOn", "addOn": {"resourceName": "test", "scoreName": "cpu"}}
        policy = {"mode": "Exact", "configurations": [{"scoreCoordinate": add_on}]}
        await place(world, prioritizerPolicy=policy)
        await world.settle()
        placing.writes()
        # Q4: nothing to do until the score changes, so nothing is tried again and again.
        await world.pass_time(60)
        assert placing.writes() == []
    expired = "AddOnPlacementScores a/test expired in plugin AddOn/test/cpu"
    reported = await events(world)
    assert reported[1] == (
        "Warning",
        "DecisionUpdate",
        "DecisionUpdated",
        f"{message_of('updated')}: {expired}",
    )
    assert reported[2][3] == "a:0 "


async def test_what_it_took_is_measured(strict: bool) -> None:
    world, placing = World(), Placing(strict)
    await prepare(world)
    await cluster(world, "a")
    await placing.place(world)
    registry, labels = placing.metrics.registry, {"name": "placement_scheduling"}
    for name in ("scheduling_scheduling_duration_seconds", "scheduling_bind_duration_seconds"):
        assert (registry.get_sample_value(f"{name}_count", labels) or 0) >= 1

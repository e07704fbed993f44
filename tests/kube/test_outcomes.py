"""Comparing a plan with reality, and the worlds that are tried; no server takes part."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kube.agreement.outcomes import PENDING, RUNNING, Agreement, PodState, observed, planned
from kube.agreement.table import read_floor
from kube.agreement.worlds import ALL_KINDS, TOLERATIONS, generate

OWNER = "StatefulSet/web"
A, B = (PodState(uid, f"web-{uid}", "web", "n1", "Running", False, OWNER) for uid in "ab")
WAITING = PodState("w", "web-w", "web", "", "Pending", False, OWNER)
GONE = replace(A, deleted=True)
NEW = replace(A, uid="n", name="web-n")


def plan(
    *outcomes: tuple[str, str],
    scheduled: tuple[tuple[str, bool], ...] = (),
    deleted: tuple[str, ...] = (),
    created: tuple[str, ...] = (),
    after: int = 0,
) -> dict[str, Any]:
    evictions = [_eviction("x", *outcome, after) for outcome in outcomes]
    # Those of other namespaces are not compared.
    evictions.append(_eviction("y", "web-b", "Rescheduled", 99))
    arrived = [
        {"namespace": "x", "name": name, "evictedAgain": flag, "scheduledTime": _time(after)}
        for name, flag in scheduled
    ]
    gone = [{"namespace": "x", "name": name, "deletionTime": _time(after)} for name in deleted]
    new = [
        {"namespace": "x", "owner": "StatefulSet/web", "node": node, "evictedAgain": False}
        for node in created
    ]
    return {
        "startTime": _time(0),
        "evictionLoops": [],
        "evictions": evictions,
        "scheduledPods": arrived,
        "deletedPods": gone,
        "createdPods": new,
    }


def _eviction(namespace: str, name: str, outcome: str, after: int) -> dict[str, Any]:
    replacement = {
        "outcome": outcome,
        "node": "",
        "scheduledTime": _time(after),
        "evictingCandidates": [],
    }
    return {
        "namespace": namespace,
        "name": name,
        "evictionTime": _time(0),
        "replacement": replacement,
    }


def _time(seconds: int) -> str:
    return f"2030-01-01T12:00:{seconds:02}Z" if seconds < 60 else "2030-01-01T13:00:00Z"


RIGHT = {
    "nothing happens": (plan(), (A, B), (A, B)),
    "rescheduled": (plan(("web-a", "Rescheduled")), (A, B), (GONE, B, NEW)),
    "pending": (plan(("web-a", "Pending")), (A, B), (GONE, B, replace(NEW, node=""))),
    "not replaced": (plan(("web-a", "NotReplaced")), (A, B), (GONE, B)),
    "gone for good": (plan(("web-a", "NotReplaced")), (A, B), (B,)),
    "evicted again": (plan(("web-a", "EvictedAgain")), (A,), (GONE, replace(NEW, deleted=True))),
    "a pending pod is scheduled": (
        plan(scheduled=(("web-w", False),)),
        (WAITING,),
        (replace(WAITING, node="n1"),),
    ),
    "the rest is deleted by its owner": (
        plan(("web-a", "NotReplaced"), deleted=("web-b",)),
        (A, B),
        (GONE, replace(B, deleted=True)),
    ),
    "its owner creates another": (
        plan(scheduled=(("web-w", False),), created=("n1", "")),
        (WAITING,),
        (replace(WAITING, node="n1"), NEW, replace(NEW, uid="m", node="")),
    ),
    "a pod of an unknown owner counts as if it is recreated": (
        plan(("web-a", "Unknown")),
        (A,),
        (GONE, replace(NEW, node="")),
    ),
    "and is evicted": (
        plan(("web-a", "EvictedAgain"), scheduled=(("web-w", True),)),
        (A, WAITING),
        (GONE, replace(WAITING, node="n1", deleted=True), replace(NEW, deleted=True)),
    ),
}
WRONG = {
    "another pod": (plan(("web-a", "Rescheduled")), (A, B), (A, replace(B, deleted=True), NEW)),
    "pending instead": (plan(("web-a", "Rescheduled")), (A,), (GONE, replace(NEW, node=""))),
    "not replaced": (plan(("web-a", "Rescheduled")), (A,), (GONE,)),
    "another workload": (plan(("web-a", "Rescheduled")), (A,), (GONE, replace(NEW, workload="db"))),
    "a storm that was not planned": (
        plan(("web-a", "Rescheduled")),
        (A,),
        (GONE, replace(NEW, deleted=True), replace(NEW, uid="m")),
    ),
    "a planned storm that does not come": (plan(("web-a", "EvictedAgain")), (A,), (GONE, NEW)),
}


def agreement(
    reported: dict[str, Any], before: tuple[PodState, ...], after: tuple[PodState, ...]
) -> Agreement:
    return Agreement(planned(reported, "x", before), observed(before, after))


@pytest.mark.parametrize(("reported", "before", "after"), RIGHT.values(), ids=RIGHT)
def test_plans_that_are_right(
    reported: dict[str, Any], before: tuple[PodState, ...], after: tuple[PodState, ...]
) -> None:
    assert agreement(reported, before, after).right


@pytest.mark.parametrize(("reported", "before", "after"), WRONG.values(), ids=WRONG)
def test_plans_that_are_wrong(
    reported: dict[str, Any], before: tuple[PodState, ...], after: tuple[PodState, ...]
) -> None:
    assert not agreement(reported, before, after).right


def test_counts_are_by_workload_and_state() -> None:
    outcome = planned(plan(("web-a", "Pending")), "x", (A, B))

    assert (outcome.total(RUNNING), outcome.total(PENDING)) == (1, 1)


def test_an_unknown_outcome_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown outcome 'Flies'"):
        planned(plan(("web-a", "Flies")), "x", (A,))


def test_the_same_seed_generates_the_same_worlds() -> None:
    assert generate(7, 5) == generate(7, 5) != generate(8, 5)


def test_many_worlds_have_every_kind_and_shape() -> None:
    workloads = [workload for world in generate(1, 60) for workload in world.workloads]

    assert {workload.kind for workload in workloads} == set(ALL_KINDS)
    assert {workload.tolerations for workload in workloads} == set(TOLERATIONS)
    assert {workload.shared for workload in workloads} == {True, False}


def test_rules_are_created_before_they_are_deleted() -> None:
    for world in generate(3, 60, changes=5):
        rules: set[str] = set()
        for change in world.changes:
            assert (change.rule in rules) == change.delete
            rules ^= {change.rule}


def test_the_floor_of_each_server_is_read(tmp_path: Path) -> None:
    path = tmp_path / "floor.txt"
    path.write_text("# least\nkubernetes 61  # percent\nstand-in 80\n")

    assert (read_floor(path, "kubernetes"), read_floor(path, "stand-in")) == (61, 80)


def test_the_last_time_of_a_plan_is_that_of_its_own_pods() -> None:
    assert planned(plan(("web-a", "Rescheduled"), after=40), "x", (A,)).last == 40
    assert planned(plan(), "x", (A,)).last == 0

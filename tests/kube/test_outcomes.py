"""Comparing a plan with reality, and the worlds that are tried; no server takes part."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kube.agreement.outcomes import PENDING, RUNNING, Agreement, PodState, observed, planned
from kube.agreement.table import read_floor
from kube.agreement.worlds import ALL_KINDS, TOLERATIONS, generate

A, B = (PodState(uid, f"web-{uid}", "web", "n1", "Running", False) for uid in "ab")
WAITING = PodState("w", "web-w", "web", "", "Pending", False)
GONE = replace(A, deleted=True)
NEW = replace(A, uid="n", name="web-n")


def plan(
    *outcomes: tuple[str, str], scheduled: tuple[tuple[str, bool], ...] = ()
) -> dict[str, Any]:
    evictions = [
        {"namespace": "x", "name": name, "replacement": {"outcome": outcome}}
        for name, outcome in outcomes
    ]
    # Those of other namespaces are not compared.
    evictions.append({"namespace": "y", "name": "web-b", "replacement": {"outcome": "Rescheduled"}})
    arrived = [{"namespace": "x", "name": name, "evictedAgain": flag} for name, flag in scheduled]
    return {"evictions": evictions, "scheduledPods": arrived}


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
    said: dict[str, Any], before: tuple[PodState, ...], after: tuple[PodState, ...]
) -> Agreement:
    return Agreement(planned(said, "x", before), observed(before, after))


@pytest.mark.parametrize(("said", "before", "after"), RIGHT.values(), ids=RIGHT)
def test_plans_that_are_right(
    said: dict[str, Any], before: tuple[PodState, ...], after: tuple[PodState, ...]
) -> None:
    assert agreement(said, before, after).right


@pytest.mark.parametrize(("said", "before", "after"), WRONG.values(), ids=WRONG)
def test_plans_that_are_wrong(
    said: dict[str, Any], before: tuple[PodState, ...], after: tuple[PodState, ...]
) -> None:
    assert not agreement(said, before, after).right


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

    assert {each.kind for each in workloads} == set(ALL_KINDS)
    assert {each.tolerations for each in workloads} == set(TOLERATIONS)
    assert {each.shared for each in workloads} == {True, False}


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

"""Why a cluster is or is not selected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from fleets import decision, equal, exists, inputs_of, labelled, later, placement, predicate
from sully.api.cluster.types import UNREACHABLE, Placement
from sully.domain.placement.options import OCM, PlacementOptions
from sully.domain.placement.results.verdicts import (
    Breakdown,
    PlacementExplanation,
    ScorePart,
    sentence,
)
from sully.testing.builders import cluster, cluster_set, cluster_taint, set_binding

BASE = (cluster_set(), set_binding(), cluster("a"), cluster("b", labels={"tier": "1"}))


@dataclass(frozen=True)
class Case:
    cluster: str
    stage: str
    text: str
    objects: tuple[Any, ...] = BASE
    desired: Placement | None = None
    options: PlacementOptions = OCM


OLD = (*BASE, cluster("t", cluster_taint(added=-30)))
CASES = {
    "selected": Case("a", "Selected", "selected, rank 1 with 100"),
    "not there": Case("x", "Unknown", "there is no such cluster"),
    "going": Case(
        "g", "Deleting", "the cluster is being deleted", (*BASE, cluster("g", terminating=True))
    ),
    "in no set": Case(
        "o",
        "Sets",
        "the cluster is in no set that the placement may use",
        (*BASE, cluster("o", sets="other")),
    ),
    "a predicate": Case(
        "a",
        "Predicate",
        "no predicate matches: predicate 0: labels (tier=1)",
        desired=placement(predicates=(predicate(labels=labelled(tier="1")),)),
    ),
    "a taint": Case("t", "TaintToleration", "taint k1=v1:NoSelect is not tolerated", OLD),
    "a taint, nearly tolerated": Case(
        "t",
        "TaintToleration",
        "taint k1=v1:NoSelect is not tolerated: the nearest toleration differs in its value",
        OLD,
        placement("p", equal(value="x")),
    ),
    "a taint, tolerated too short": Case(
        "t",
        "TaintToleration",
        "taint k1=v1:NoSelect was tolerated until 2030-01-01T11:59:40Z",
        OLD,
        placement("p", exists(seconds=10)),
    ),
    "not among the best": Case(
        "b", "Rank", "rank 2 with 100, and 1 is requested", desired=placement(want=1)
    ),
    "a placement that is wrong": Case(
        "a",
        "Misconfigured",
        "the placement cannot be evaluated",
        desired=placement("p", equal(key="")),
    ),
    "held": Case(
        "h",
        "Selected",
        "selected; its removal is delayed by the removal budget",
        (*BASE, cluster("h", cluster_taint(UNREACHABLE, "")), decision("p", "h")),
        options=replace(OCM, removals_per_minute=1),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_verdict(case: Case) -> None:
    desired = case.desired or placement()
    verdict = PlacementExplanation(inputs_of(case.objects, desired, options=case.options)).of(
        case.cluster
    )

    assert (verdict.stage, sentence(verdict)) == (case.stage, case.text)


def test_everything_about_one_cluster() -> None:
    objects = (*BASE, cluster("c", cluster_taint(added=-5)), decision("p", "c"), decision("q", "c"))
    verdict = PlacementExplanation(
        inputs_of(objects, placement("p", exists(seconds=9), want=2))
    ).of("c")

    assert verdict.decided
    assert verdict.scores == (ScorePart("Balance", 1, -100), ScorePart("Steady", 1, 100))
    assert (verdict.total, verdict.rank, verdict.cut_off) == (0, 3, 2)
    assert [(one.tolerated, one.until) for one in verdict.taints] == [(True, later(4))]


MISTAKES = {
    "in the first stage": (placement(predicates=(predicate("1 +"),)), Breakdown(2, 0, 0, 0, 0)),
    "in the second": (
        placement("p", equal("", "x"), predicates=(predicate(labels=labelled(tier="1")),)),
        Breakdown(2, 1, 0, 0, 0),
    ),
}


@pytest.mark.parametrize(("desired", "want"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_stage_that_was_not_reached_removes_nobody(desired: Placement, want: Breakdown) -> None:
    assert PlacementExplanation(inputs_of(BASE, desired)).breakdown == want


def test_breakdown() -> None:
    objects = (*BASE, cluster("c", cluster_taint(), labels={"tier": "1"}))
    desired = placement(want=3, predicates=(predicate(labels=labelled(tier="1")),))
    explanation = PlacementExplanation(inputs_of(objects, desired))

    assert explanation.breakdown == Breakdown(3, 1, 1, 1, 1)
    assert str(explanation.breakdown) == (
        "3 considered, 1 by predicate, 1 by taint, 1 feasible, 1 selected"
    )
    assert [one.stage for one in explanation.all()] == ["Predicate", "Selected", "TaintToleration"]

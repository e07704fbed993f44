"""Budgets in a simulation, case by case."""

from __future__ import annotations

from typing import Any

import pytest

import manifests
from manifests import stored
from planning.building import Obj, machines, planned, put, rule, running, waiting
from planning.test_simulation import TWO_NODES, WEB, Case, check, replacements
from sully.client.transport import Key
from sully.planning.dryrun.changes import Remove
from sully.views.kinds import RULES

BUDGET_EFFECT = "NoExecuteWithPodDisruptionBudget"


def budget(spare: int, **more: Any) -> Obj:
    """Return a budget with so many healthy pods more, or fewer, than it wants."""
    status = {
        "disruptionsAllowed": max(0, spare),
        "currentHealthy": 2 + spare,
        "desiredHealthy": 2,
        "expectedPods": 5,
    }
    made = stored(manifests.budget("pdb", 2, app="web"), namespace="a")
    return made | {"spec": made["spec"] | more, "status": status}


CASES = {
    "a budget allows one": Case(
        [*TWO_NODES, *running("p1", "n1", "gpu-0", owned_by=WEB, labels={"app": "web"}), budget(1)],
        (put(rule(effect=BUDGET_EFFECT, pool="n1")),),
        want=("p1 0 Rescheduled n2",),
    ),
    "a budget allows none": Case(
        [*TWO_NODES, *running("p1", "n1", "gpu-0", owned_by=WEB, labels={"app": "web"}), budget(0)],
        (put(rule(effect=BUDGET_EFFECT, pool="n1")),),
        blocked=("p1 PodDisruptionBudget pdb allows no disruption",),
    ),
    "a budget counts a pod that waited and gets a node by the change": Case(
        [
            *machines("n1", "n2", devices=2),
            *running("p1", "n1", "gpu-0", owned_by=WEB, labels={"app": "web"}),
            *waiting("p2", count=2, labels={"app": "web"}),
            rule("old", effect="NoSchedule", pool="n2"),
            budget(0),
        ],
        (Remove(RULES, Key("", "old")), put(rule(effect=BUDGET_EFFECT, device="gpu-0", pool="n1"))),
        want=("p1 0 Rescheduled n1",),
        scheduled=("p2 n2",),
    ),
    "one pod that comes is not enough where two are missing": Case(
        [
            *machines("n1", "n2", devices=2),
            *running("p1", "n1", "gpu-0", owned_by=WEB, labels={"app": "web"}),
            *waiting("p2", count=2, labels={"app": "web"}),
            rule("old", effect="NoSchedule", pool="n2"),
            budget(-1),
        ],
        (Remove(RULES, Key("", "old")), put(rule(effect=BUDGET_EFFECT, device="gpu-0", pool="n1"))),
        blocked=("p1 PodDisruptionBudget pdb allows no disruption",),
        scheduled=("p2 n2",),
    ),
    "a budget lets a pod go that is not ready": Case(
        [
            *TWO_NODES,
            *running("p1", "n1", "gpu-0", owned_by=WEB, labels={"app": "web"}, ready=False),
            budget(0),
        ],
        (put(rule(effect=BUDGET_EFFECT, pool="n1")),),
        want=("p1 0 Rescheduled n2",),
    ),
    "a budget that lacks pods keeps those that are not ready": Case(
        [
            *TWO_NODES,
            *running("p1", "n1", "gpu-0", owned_by=WEB, labels={"app": "web"}, ready=False),
            budget(-1),
        ],
        (put(rule(effect=BUDGET_EFFECT, pool="n1")),),
        blocked=("p1 PodDisruptionBudget pdb allows no disruption",),
    ),
    "unless it shows that they may always go": Case(
        [
            *TWO_NODES,
            *running("p1", "n1", "gpu-0", owned_by=WEB, labels={"app": "web"}, ready=False),
            budget(-1, unhealthyPodEvictionPolicy="AlwaysAllow"),
        ],
        (put(rule(effect=BUDGET_EFFECT, pool="n1")),),
        want=("p1 0 Rescheduled n2",),
    ),
    "a budget does not limit NoExecute": Case(
        [*TWO_NODES, *running("p1", "n1", "gpu-0", owned_by=WEB, labels={"app": "web"}), budget(0)],
        want=("p1 0 Rescheduled n2",),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_budgets(case: Case) -> None:
    check(case)


def test_however_many_a_budget_keeps_each_goes_when_the_one_before_has_a_place() -> None:
    number = 60
    objects = [*machines("n1", "n2", devices=number), budget(1)]
    for index in range(number):
        labels = {"app": "web"}
        pod = running(f"p{index}", "n1", f"gpu-{index}", owned_by=WEB, labels=labels, cpu="0.05")
        objects += pod
    plan = planned(objects, put(rule(effect=BUDGET_EFFECT, pool="n1")))

    assert {*replacements(plan)} == {f"p{index} 0 Rescheduled n2" for index in range(number)}
    assert not plan.blocked_evictions


BROKEN = {
    "more than it allows": (1, 2, "NoExecute", [(2, 1, 1)]),
    "as many as it allows": (2, 2, "NoExecute", []),
    "it allowed none": (0, 1, "NoExecute", [(1, 0, 1)]),
    "it lacks pods already": (-1, 1, "NoExecute", [(1, 0, 2)]),
    "evictions that honor it": (1, 2, BUDGET_EFFECT, []),
    "no eviction": (0, 2, "NoSchedule", []),
}


@pytest.mark.parametrize(("spare", "pods", "effect", "want"), BROKEN.values(), ids=BROKEN)
def test_broken_budgets(
    spare: int, pods: int, effect: str, want: list[tuple[int, int, int]]
) -> None:
    objects = [*machines("n1", devices=2), budget(spare)]
    for index in range(pods):
        labels = {"app": "web"}
        objects += running(f"p{index}", "n1", f"gpu-{index}", owned_by=WEB, labels=labels)

    plan = planned(objects, put(rule(effect=effect, pool="n1")))

    got = [(budget.pods, budget.allowed, budget.missing) for budget in plan.broken_budgets]
    assert got == want

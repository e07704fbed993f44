"""The nodes that a replacement may be scheduled to, in plans for each scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from planning.building import Obj, machines, planned, put, rule, running, toleration
from sully.domain.capabilities.control_plane import ControlPlane
from sully.domain.planning.report import document
from sully.planning.simulation.cluster_copy import SimulationOptions
from sully.scheduler.options import options_for

WEB = "ReplicaSet/web"
KUBERNETES = SimulationOptions(stop_seconds=1, scheduling=options_for(ControlPlane.KUBERNETES))


def on(*nodes: str) -> list[Obj]:
    return [
        item
        for number, node in enumerate(nodes)
        for item in running(f"p{number}", node, "gpu-0", owned_by=WEB)
    ]


def shown(plan: Any) -> list[str]:
    replacements = (eviction.replacement for eviction in plan.evictions)
    return [
        " ".join([pod.node, "of", *sorted(pod.candidates), str(pod.candidate_count)])
        for pod in replacements
    ]


CASES = {
    "one node is left": (machines("n1", "n2"), on("n1"), "n1", ["n2 of n2 1"]),
    "several fit": (machines("n1", "n2", "n3"), on("n1"), "n1", ["n2 of n2 n3 2"]),
    "a node without a free device is not a candidate": (
        machines("n1", "n2", "n3", "n4"),
        on("n1", "n4"),
        "n1",
        ["n2 of n2 n3 2"],
    ),
    "the second pod may get the node that the first gets in the simulation": (
        [*machines("n1", devices=2), *machines("n2", "n3")[1:]],
        [
            *running("p0", "n1", "gpu-0", owned_by=WEB),
            *running("p1", "n1", "gpu-1", owned_by=WEB),
        ],
        "n1",
        ["n2 of n2 n3 2", "n3 of n2 n3 2"],
    ),
}


@pytest.mark.parametrize(("nodes", "pods", "tainted", "want"), CASES.values(), ids=CASES)
def test_kube_scheduler_selects_one_of_the_nodes_that_fit(
    nodes: list[Obj], pods: list[Obj], tainted: str, want: list[str]
) -> None:
    plan = planned([*nodes, *pods], put(rule(pool=tainted)), options=KUBERNETES)

    assert shown(plan) == want


def test_sully_selects_the_least_loaded_node() -> None:
    plan = planned([*machines("n1", "n2", "n3"), *on("n1")], put(rule(pool="n1")))

    assert shown(plan) == ["n2 of n2 1"]


def test_names_are_limited_and_counted() -> None:
    nodes = machines(*(f"n{number:02}" for number in range(20)))
    plan = planned([*nodes, *on("n00")], put(rule(pool="n00")), options=KUBERNETES)

    (eviction,) = plan.evictions
    assert len(eviction.replacement.candidates) == 10
    assert eviction.replacement.candidate_count == 19
    assert eviction.replacement.candidates[0] == eviction.replacement.node


def tolerant(seconds: int | None) -> list[Obj]:
    return running("p0", "n1", "gpu-0", owned_by=WEB, tolerations=[toleration(seconds)])


RISKY = [*machines("n1", devices=2), *machines("n2")[1:]]
RISKS = {
    "taints tolerated for some time do not prevent scheduling": ([*RISKY, *tolerant(3)], ("n1",)),
    "no taint is tolerated": ([*RISKY, *on("n1")], ()),
}


@pytest.mark.parametrize(("objects", "want"), RISKS.values(), ids=RISKS)
def test_where_it_would_be_evicted_again(objects: list[Obj], want: tuple[str, ...]) -> None:
    plan = planned(objects, put(rule(pool="n1")), options=KUBERNETES)

    (eviction,) = plan.evictions
    assert (eviction.replacement.node, eviction.replacement.outcome.value) == ("n2", "Rescheduled")
    assert eviction.replacement.evicting_candidates == want


def test_a_pod_that_may_be_evicted_again_is_not_an_all_clear() -> None:
    plan = planned([*RISKY, *tolerant(3)], put(rule(pool="n1")), options=KUBERNETES)

    assert (len(plan.not_rescheduled), len(plan.at_risk), plan.has_unscheduled) == (0, 1, True)
    assert document(plan)["mayBeEvictedAgain"] == 1


def test_where_sully_schedules_tainted_devices_are_avoided() -> None:
    plan = planned([*RISKY, *tolerant(3)], put(rule(pool="n1")))

    assert (plan.at_risk, plan.has_unscheduled) == ((), False)

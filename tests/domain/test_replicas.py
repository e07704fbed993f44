"""Which pods go first, and the status of a ReplicaSet."""

from __future__ import annotations

from itertools import permutations

import pytest
from msgspec.structs import replace

from domain.lifecycles import NOON, ago, pod, replica_set
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.replicas import (
    DELETION_COST,
    deletion_cost,
    pods_to_delete,
    replica_status,
)
from sully.domain.workloads.workloads import WorkloadCondition

PAIRS: dict[str, tuple[Pod, Pod]] = {
    "one without a node": (pod("a", node=""), pod("b")),
    "one that has not started": (pod("a", phase="Pending"), pod("b")),
    "one of which nothing is known": (pod("a", phase="Unknown"), pod("b")),
    "one that does not serve": (pod("a", ready=None), pod("b")),
    "the cheaper one": (pod("b", annotations={DELETION_COST: "-1"}), pod("a")),
    "the one that serves for less long": (
        pod("b", ready=ago(seconds=1)),
        pod("a", ready=ago(hours=1)),
    ),
    "the one that failed more": (pod("b", restarts=3), pod("a", restarts=1)),
    "the younger one": (pod("b", created=ago(minutes=1)), pod("a", created=ago(days=1))),
    "of equals, always the same": (pod("a"), pod("b")),
    "a node before all else": (
        pod("b", node="", annotations={DELETION_COST: "10"}),
        pod("a", ready=None, restarts=5),
    ),
}


@pytest.mark.parametrize(("first", "second"), PAIRS.values(), ids=PAIRS.keys())
def test_first_is_deleted(first: Pod, second: Pod) -> None:
    for order in permutations((first, second)):
        assert pods_to_delete(order, 1, related=(), now=NOON) == [first]


def test_those_that_share_a_node_go_first() -> None:
    alone, crowded = pod("a", node="x"), pod("b", node="y")
    related = [alone, crowded, pod("c", node="y"), pod("d", node="x", terminating=True)]

    assert pods_to_delete([alone, crowded], 1, related=related, now=NOON) == [crowded]


def test_all_go_when_all_must() -> None:
    pods = [pod("a"), pod("b", node="")]

    assert pods_to_delete(pods, 2, related=(), now=NOON) == pods


COSTS = {
    "": 0,
    "5": 5,
    "-5": -5,
    "+5": 0,
    "05": 0,
    "x": 0,
    "2147483648": 0,
    "2147483647": 2**31 - 1,
}


@pytest.mark.parametrize(("text", "want"), COSTS.items())
def test_deletion_cost(text: str, want: int) -> None:
    assert deletion_cost(pod(annotations={DELETION_COST: text})) == want


FAILURE = WorkloadCondition(type="ReplicaFailure", status="True", reason="FailedCreate")
LATER = WorkloadCondition(type="ReplicaFailure", status="True", reason="FailedDelete")


def test_a_failure_is_reported_once_and_taken_back() -> None:
    owner = replica_set("web", 1)
    first = replica_status(owner, [], terminating=0, failure=FAILURE, now=NOON)
    reported = replace(owner, status=first)

    def conditions(failure: WorkloadCondition | None) -> tuple[WorkloadCondition, ...]:
        return replica_status(reported, [], terminating=0, failure=failure, now=NOON).conditions

    assert first.conditions == (FAILURE,)
    assert conditions(LATER) == (FAILURE,)
    assert conditions(None) == ()

"""Which pods StatefulSets create."""

from __future__ import annotations

import msgspec
import pytest

from sully.domain.workloads.daemonsets import DaemonSet
from sully.domain.workloads.statefulsets import (
    NextPods,
    ReplicaState,
    StatefulSet,
    next_pods,
    ordinal_of,
)

STATES = {"m": ReplicaState.MISSING, "u": ReplicaState.NOT_READY, "r": ReplicaState.READY}
ORDERED = {
    "rrr": NextPods(),
    "rrm": NextPods((2,), 2),
    "rmm": NextPods((1,), 1),
    "mmm": NextPods((0,), 0),
    "urm": NextPods((), 0),
    "rum": NextPods((), 1),
    "mur": NextPods((0,), 0),
}
PARALLEL = {"rrr": (), "mmm": (0, 1, 2), "umm": (1, 2), "mum": (0, 2)}


def created(pods: str, *, ordered: bool) -> NextPods:
    return next_pods(range(3), lambda ordinal: STATES[pods[ordinal]], ordered=ordered)


@pytest.mark.parametrize("pods", ORDERED)
def test_in_order(pods: str) -> None:
    assert created(pods, ordered=True) == ORDERED[pods]


@pytest.mark.parametrize("pods", PARALLEL)
def test_in_parallel(pods: str) -> None:
    assert created(pods, ordered=False) == NextPods(PARALLEL[pods])


def test_ordinals_may_start_anywhere() -> None:
    spec = {"replicas": 2, "ordinals": {"start": 5}, "podManagementPolicy": "Parallel"}
    stateful_set = msgspec.convert({"spec": spec}, StatefulSet)

    assert (list(stateful_set.range), stateful_set.is_ordered) == ([5, 6], False)


@pytest.mark.parametrize(
    ("name", "want"), [("db-0", 0), ("db-12", 12), ("a-1-b", None), ("p", None)]
)
def test_ordinals_in_names(name: str, want: int | None) -> None:
    assert ordinal_of(name) == want


@pytest.mark.parametrize(
    ("surge", "want"), [(0, False), ("0%", False), (1, True), ("10%", True), (None, False)]
)
def test_a_daemon_set_that_surges_does_not_wait(surge: int | str | None, want: bool) -> None:
    rolling = {} if surge is None else {"rollingUpdate": {"maxSurge": surge}}
    stateful_set = msgspec.convert({"spec": {"updateStrategy": rolling}}, DaemonSet)

    assert stateful_set.replaces_terminating is want

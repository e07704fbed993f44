"""What is reported about a rollout."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from domain.lifecycles import NOON, deployment, replica_set
from sully.domain.workloads.progress import (
    condition,
    counted,
    overdue_at,
    pause_status,
    rollout_status,
    with_condition,
)
from sully.domain.workloads.workloads import Deployment, DeploymentCondition, DeploymentStatus

LATER = NOON + timedelta(minutes=5)


def progressing(status: str, reason: str, at: datetime = NOON) -> DeploymentCondition:
    return condition("Progressing", status, reason, "", at)


def having(*conditions: DeploymentCondition, **more: Any) -> Deployment:
    counts = {
        "replicas": 3,
        "updated_replicas": 3,
        "ready_replicas": 3,
        "available_replicas": 3,
    } | more.pop("counts", {})
    status = DeploymentStatus(conditions=conditions, **counts)
    return deployment(3, status=status, **{"progress_deadline_seconds": 60} | more)


def test_counts() -> None:
    old, new = replica_set("old", 2, available=1), replica_set("new", 3, available=2)

    result = counted(deployment(4, unavailable=1), new, [old], NOON)

    assert (result.replicas, result.updated_replicas) == (5, 3)
    assert (result.available_replicas, result.unavailable_replicas) == (3, 2)
    assert result.observed_generation == 1
    assert result.terminating_replicas is None  # not reported
    (reported,) = result.conditions
    assert (reported.type, reported.status) == ("Available", "True")


CASES: dict[str, tuple[Deployment, int, str, str]] = {
    "done": (having(progressing("True", "ReplicaSetUpdated")), 3, "True", "NewReplicaSetAvailable"),
    "done long ago, and a pod fell over": (
        having(progressing("True", "NewReplicaSetAvailable")),
        2,
        "True",
        "NewReplicaSetAvailable",
    ),
    "something moved": (
        having(progressing("True", "NewReplicaSetCreated"), counts={"available_replicas": 1}),
        2,
        "True",
        "ReplicaSetUpdated",
    ),
    "it moves again after all": (
        having(progressing("False", "ProgressDeadlineExceeded"), counts={"available_replicas": 1}),
        2,
        "True",
        "ReplicaSetUpdated",
    ),
    "nothing moved for too long": (
        having(progressing("True", "ReplicaSetUpdated")),
        2,
        "False",
        "ProgressDeadlineExceeded",
    ),
    "nothing moved, but not for long": (
        having(progressing("True", "ReplicaSetUpdated", LATER)),
        2,
        "True",
        "ReplicaSetUpdated",
    ),
}


@pytest.mark.parametrize(("it", "available", "status", "reason"), CASES.values(), ids=CASES.keys())
def test_progress(it: Deployment, available: int, status: str, reason: str) -> None:
    new = replica_set("new", 3, available=available)

    condition = rollout_status(it, new, [], LATER).condition("Progressing")

    assert condition is not None
    assert (condition.status, condition.reason) == (status, reason)


def test_without_a_deadline_nothing_is_reported_about_progress() -> None:
    it = having(progressing("True", "ReplicaSetUpdated"), progress_deadline_seconds=None)

    assert rollout_status(it, replica_set("new", 3), [], NOON).condition("Progressing") is None


def test_a_step_moves_the_update_and_not_the_transition() -> None:
    it = having(progressing("True", "ReplicaSetUpdated"), counts={"available_replicas": 1})

    result = rollout_status(it, replica_set("new", 3, available=2), [], LATER)
    condition = result.condition("Progressing")

    assert condition is not None
    assert (condition.last_transition_time, condition.last_update_time) == (NOON, LATER)


def test_when_it_will_be_overdue() -> None:
    moving = having(progressing("True", "ReplicaSetUpdated"), counts={"available_replicas": 1})
    failed = having(progressing("False", "ProgressDeadlineExceeded"))

    assert overdue_at(moving, moving.status) == NOON + timedelta(seconds=60)
    assert overdue_at(failed, failed.status) is None
    assert overdue_at(having(), having().status) is None


def test_a_condition_that_reports_the_same_stays() -> None:
    status = DeploymentStatus(conditions=(progressing("True", "A"),))

    assert with_condition(status, progressing("True", "A", LATER)) == status
    (other,) = with_condition(status, progressing("True", "B", LATER)).conditions
    assert (other.last_transition_time, other.last_update_time) == (NOON, LATER)
    (turned,) = with_condition(status, progressing("False", "B", LATER)).conditions
    assert turned.last_transition_time == LATER


PAUSES: dict[str, tuple[Deployment, str]] = {
    "paused": (having(paused=True), "DeploymentPaused"),
    "paused already": (
        having(progressing("Unknown", "DeploymentPaused"), paused=True),
        "DeploymentPaused",
    ),
    "resumed": (having(progressing("Unknown", "DeploymentPaused")), "DeploymentResumed"),
    "failed before": (
        having(progressing("False", "ProgressDeadlineExceeded"), paused=True),
        "ProgressDeadlineExceeded",
    ),
    "neither": (having(progressing("True", "ReplicaSetUpdated")), "ReplicaSetUpdated"),
}


@pytest.mark.parametrize(("it", "want"), PAUSES.values(), ids=PAUSES.keys())
def test_pausing(it: Deployment, want: str) -> None:
    condition = pause_status(it, LATER).condition("Progressing")

    assert condition is not None
    assert condition.reason == want

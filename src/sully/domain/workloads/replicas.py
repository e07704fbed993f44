"""How a ReplicaSet counts its pods, and which of them it gives up first."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.workloads import (
    ReplicaSet,
    ReplicaSetStatus,
    WorkloadCondition,
    template_labels,
)

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
FAILURE = "ReplicaFailure"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_COST = re.compile(r"-?[1-9]\d{0,9}|0")


def pods_to_delete(
    pods: Sequence[Pod], count: int, *, related: Iterable[Pod], now: datetime
) -> list[Pod]:
    """Return the pods to delete when there are `count` too many.

    First those that serve least: without a node, not started, not ready. Then those with the lower
    deletion cost, those that share their node with most of the same workload (`related`), the
    younger ones and those that failed more. Ages are compared by order of magnitude, so that not
    always the newest is deleted.
    """
    if count >= len(pods):
        return list(pods)
    on_node = Counter(pod.spec.node_name for pod in related if pod.is_active)
    return sorted(pods, key=lambda pod: _worth(pod, on_node[pod.spec.node_name], now))[:count]


def _worth(pod: Pod, neighbours: int, now: datetime) -> tuple[object, ...]:
    since = pod.ready_since
    return (
        pod.spec.node_name != "",
        _PHASES.get(pod.status.phase, 0),
        pod.ready,
        deletion_cost(pod),
        -neighbours,
        # A pod that is not ready has no such age; all that get here with it are equal in that.
        _magnitude(since, now),
        -max((container.restart_count for container in pod.status.container_statuses), default=0),
        _magnitude(pod.metadata.creation_timestamp, now),
        pod.metadata.uid,
    )


def deletion_cost(pod: Pod) -> int:
    """Return the pod-deletion-cost of a pod; 0 if it is not valid."""
    text = pod.metadata.annotations.get(DELETION_COST, "")
    cost = int(text) if _COST.fullmatch(text) else 0
    return cost if -(2**31) <= cost < 2**31 else 0


def _magnitude(since: datetime | None, now: datetime) -> int:
    """Return the order of magnitude of an age; unknown counts as youngest."""
    if since is None:
        return -2
    age = (now - since) / timedelta(microseconds=1) * 1000
    return math.floor(math.log2(age)) if age >= 1 else -1


def replica_status(
    owner: ReplicaSet,
    pods: Sequence[Pod],
    *,
    terminating: int,
    failure: WorkloadCondition | None,
    now: datetime,
) -> ReplicaSetStatus:
    """Return the status of a ReplicaSet that has these active pods."""
    expected = template_labels(owner.spec.template).items()
    minimum = owner.spec.min_ready_seconds
    return replace(
        owner.status,
        replicas=len(pods),
        fully_labeled_replicas=sum(expected <= pod.metadata.labels.items() for pod in pods),
        ready_replicas=sum(pod.ready for pod in pods),
        available_replicas=sum(pod.available(minimum, now) for pod in pods),
        terminating_replicas=terminating,
        observed_generation=owner.metadata.generation,
        conditions=_conditions(owner.status.conditions, failure),
    )


def _conditions(
    old: tuple[WorkloadCondition, ...], failure: WorkloadCondition | None
) -> tuple[WorkloadCondition, ...]:
    """Keep a failure that is reported already as it was first reported."""
    known = any(condition.type == FAILURE for condition in old)
    if failure is None:
        return tuple(condition for condition in old if condition.type != FAILURE)
    return old if known else (*old, failure)


def next_available(pods: Iterable[Pod], min_ready_seconds: int, now: datetime) -> datetime | None:
    """Return when the next pod that is ready will have been so for long enough."""
    times = [pod.available_at(min_ready_seconds) for pod in pods]
    return min((at for at in times if at is not None and at > now), default=None)

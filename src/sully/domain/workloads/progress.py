"""What a Deployment reports about its rollout: counts and conditions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec.structs import replace

from sully.domain.workloads.replicas import FAILURE
from sully.domain.workloads.rollout import limits, total
from sully.domain.workloads.workloads import (
    Deployment,
    DeploymentCondition,
    DeploymentStatus,
    ReplicaSet,
)
from sully.machinery.formats.timestamps import later

PROGRESSING = "Progressing"
AVAILABLE = "Available"
COMPLETE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"
PAUSED = "DeploymentPaused"
RESUMED = "DeploymentResumed"

Conditions = tuple[DeploymentCondition, ...]


def condition(
    type_: str, status: str, reason: str, message: str, now: datetime
) -> DeploymentCondition:
    """Return a condition that is new at this moment."""
    return DeploymentCondition(
        type=type_,
        status=status,
        reason=reason,
        message=message,
        last_update_time=now,
        last_transition_time=now,
    )


def with_condition(status: DeploymentStatus, new: DeploymentCondition) -> DeploymentStatus:
    """Return the status with a condition; one with the same content stays as it is."""
    old = status.condition(new.type)
    if old is not None and old.status == new.status:
        if old.reason == new.reason:
            return status
        new = replace(new, last_transition_time=old.last_transition_time)
    return replace(without(status, new.type), conditions=(*_others(status, new.type), new))


def without(status: DeploymentStatus, type_: str) -> DeploymentStatus:
    """Return the status without a condition."""
    return replace(status, conditions=_others(status, type_))


def _others(status: DeploymentStatus, type_: str) -> Conditions:
    return tuple(condition for condition in status.conditions if condition.type != type_)


def counted(
    deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], now: datetime
) -> DeploymentStatus:
    """Return the status with the counts of the ReplicaSets, and whether enough serve."""
    sets = [*old, *([new] if new is not None else [])]
    available = sum(replica_set.status.available_replicas for replica_set in sets)
    status = DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=sum(replica_set.status.replicas for replica_set in sets),
        updated_replicas=new.status.replicas if new is not None else 0,
        ready_replicas=sum(replica_set.status.ready_replicas for replica_set in sets),
        available_replicas=available,
        unavailable_replicas=max(total(sets) - available, 0),
        terminating_replicas=_terminating(sets),
        collision_count=deployment.status.collision_count,
        conditions=deployment.status.conditions,
    )
    enough = available >= deployment.spec.replicas - limits(deployment).unavailable
    return with_condition(status, _availability(enough, now))


def _terminating(sets: Iterable[ReplicaSet]) -> int | None:
    counts = [replica_set.status.terminating_replicas for replica_set in sets]
    # One that has not reported yet makes the sum unknown.
    return None if None in counts else sum(count or 0 for count in counts)


def _availability(enough: bool, now: datetime) -> DeploymentCondition:
    if enough:
        text = "Deployment has minimum availability."
        return condition(AVAILABLE, "True", "MinimumReplicasAvailable", text, now)
    text = "Deployment does not have minimum availability."
    return condition(AVAILABLE, "False", "MinimumReplicasUnavailable", text, now)


def complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Report whether all pods have the current template and are available."""
    counts = (status.updated_replicas, status.replicas, status.available_replicas)
    seen = status.observed_generation >= deployment.metadata.generation
    return seen and all(count == deployment.spec.replicas for count in counts)


def rollout_status(
    deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], now: datetime
) -> DeploymentStatus:
    """Return the status with counts, and with the progress of the rollout."""
    status = counted(deployment, new, old, now)
    if deployment.deadline is None:
        status = without(status, PROGRESSING)
    else:
        status = _progress(deployment, status, _subject(deployment, new), now)
    failure = _failure(new, old)
    return without(status, FAILURE) if failure is None else with_condition(status, failure)


def _subject(deployment: Deployment, new: ReplicaSet | None) -> str:
    return f'Deployment "{deployment.name}"' if new is None else f'ReplicaSet "{new.name}"'


def _progress(
    deployment: Deployment, status: DeploymentStatus, subject: str, now: datetime
) -> DeploymentStatus:
    progressing = deployment.status.condition(PROGRESSING)
    over = status.replicas == status.updated_replicas
    if over and progressing is not None and progressing.reason == COMPLETE:
        # No rollout is under way, so a pod that fails now does not concern one.
        return status
    if complete(deployment, status):
        text = f"{subject} has successfully progressed."
        return with_condition(status, condition(PROGRESSING, "True", COMPLETE, text, now))
    if _moved(deployment.status, status):
        text = f"{subject} is progressing."
        updated = condition(PROGRESSING, "True", "ReplicaSetUpdated", text, now)
        if progressing is not None and progressing.status == "True":
            updated = replace(updated, last_transition_time=progressing.last_transition_time)
        # Also with the same reason: the deadline counts from the last step.
        return with_condition(without(status, PROGRESSING), updated)
    if _timed_out(deployment, status, now):
        text = f"{subject} has timed out progressing."
        return with_condition(status, condition(PROGRESSING, "False", TIMED_OUT, text, now))
    return status


def _moved(before: DeploymentStatus, status: DeploymentStatus) -> bool:
    return (
        status.updated_replicas > before.updated_replicas
        or status.replicas - status.updated_replicas < before.replicas - before.updated_replicas
        or status.ready_replicas > before.ready_replicas
        or status.available_replicas > before.available_replicas
    )


def _timed_out(deployment: Deployment, status: DeploymentStatus, now: datetime) -> bool:
    progressing = status.condition(PROGRESSING)
    if progressing is None or progressing.reason == COMPLETE:
        return False
    due = _due(deployment, progressing)
    return progressing.reason == TIMED_OUT or (due is not None and due < now)


def _due(deployment: Deployment, progressing: DeploymentCondition) -> datetime | None:
    if progressing.last_update_time is None or deployment.deadline is None:
        return None
    return later(progressing.last_update_time, deployment.deadline)


def overdue_at(deployment: Deployment, status: DeploymentStatus) -> datetime | None:
    """Return when the rollout is to be reported as stuck unless something moves."""
    progressing = status.condition(PROGRESSING)
    if progressing is None or progressing.reason == TIMED_OUT or complete(deployment, status):
        return None
    return _due(deployment, progressing)


def _failure(new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> DeploymentCondition | None:
    """Return the failure of a ReplicaSet to make or remove pods, the present one's first."""
    for owner in (*([new] if new is not None else []), *old):
        for condition in owner.status.conditions:
            if condition.type == FAILURE:
                return DeploymentCondition(
                    type=FAILURE,
                    status=condition.status,
                    reason=condition.reason,
                    message=condition.message,
                    last_update_time=condition.last_transition_time,
                    last_transition_time=condition.last_transition_time,
                )
    return None


def pause_status(deployment: Deployment, now: datetime) -> DeploymentStatus:
    """Return the status with the condition that the Deployment was paused or resumed, if it was."""
    progressing = deployment.status.condition(PROGRESSING)
    if deployment.deadline is None or (progressing is not None and progressing.reason == TIMED_OUT):
        return deployment.status
    known = progressing is not None and progressing.reason == PAUSED
    if deployment.spec.paused and not known:
        updated = condition(PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now)
    elif not deployment.spec.paused and known:
        updated = condition(PROGRESSING, "Unknown", RESUMED, "Deployment is resumed", now)
    else:
        return deployment.status
    return with_condition(deployment.status, updated)

"""Messages of plans about the owners of pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sully.domain.planning.owners import (
    LEADER_WORKER_SET,
    Expectation,
    IndexFailed,
    JobEnded,
    NodeExcluded,
    NotNeeded,
    Obstacle,
    OwnerBehavior,
    Recreation,
    WaitsForPod,
    kind_text,
)
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.jobs.failures import JobEnd

NO_CONTROLLER: Final = "no controller manages it, so it is not recreated"
_ENDS: Final[Mapping[JobEnd, str]] = {
    JobEnd.BACKOFF_LIMIT: "{failed} would exceed its backoffLimit of {limit}",
    JobEnd.FAILURE_POLICY: "its podFailurePolicy has the action FailJob for evicted pods",
    JobEnd.MAX_FAILED_INDEXES: "more indexes would fail than its maxFailedIndexes allows",
    JobEnd.FAILED_INDEXES: "indexes would exceed its backoffLimitPerIndex, and none are left",
    JobEnd.DEADLINE: "its activeDeadlineSeconds would be over",
}
_EXPECTED: Final[Mapping[Expectation, str]] = {
    Expectation.RECREATES: "{owner} is expected to recreate the pod",
    Expectation.RECREATES_GROUP: (
        "LeaderWorkerSet {group} is expected to delete and recreate all pods of the group"
        " (restartPolicy RecreateGroupOnPodRestart)"
    ),
    Expectation.RECREATES_BY_POLICY: (
        "{owner} is expected to recreate the pod, unless one of its policies prevents it"
    ),
    Expectation.RETRIES_BY_STRATEGY: (
        "{owner} is expected to let the step fail, and to create another pod only with a"
        " retryStrategy"
    ),
    Expectation.RESTARTS_JOBS: (
        "{owner} is expected to recreate all its Jobs, as often as its failurePolicy allows"
    ),
    Expectation.CREATES_NO_PODS: "{owner} is not expected to create pods",
}


def obstacle_text(obstacle: Obstacle) -> str:
    """Return why an owner does not create another pod."""
    match obstacle:
        case JobEnded():
            return _job_text(obstacle)
        case IndexFailed(job, index, limit):
            return f"index {index} of Job {job} would fail: its backoffLimitPerIndex is {limit}"
        case WaitsForPod(stateful_set, pod):
            return f"StatefulSet {stateful_set} creates it when pod {pod} is ready"
        case NotNeeded(owner):
            return f"{owner} wants fewer pods"
        case NodeExcluded(node, ""):
            return f"node {node} does not exist, and its DaemonSet creates no pod for it"
        case NodeExcluded(node, taint):
            return f"its DaemonSet does not tolerate the taint {taint} of node {node}"


def job_end_text(job: str, end: JobEnd, failed: int, limit: int) -> str:
    """Return why a Job fails, or why it creates no pod."""
    match end:
        case JobEnd.FINISHED:
            return f"Job {job} has finished"
        case JobEnd.SUSPENDED:
            return f"Job {job} is suspended"
        case JobEnd.COMPLETIONS:
            return f"Job {job} wants fewer pods"
        case _:
            pods = "1 failed pod" if failed == 1 else f"{failed} failed pods"
            return f"Job {job} would fail: {_ENDS[end].format(failed=pods, limit=limit)}"


def _job_text(ended: JobEnded) -> str:
    text = job_end_text(ended.job, ended.end, ended.failed, ended.limit)
    if not ended.job_set or not ended.end.fails:
        return text
    owner = f"JobSet {ended.job_set}"
    return f"{text}; {_EXPECTED[Expectation.RESTARTS_JOBS].format(owner=owner)}"


def expected_text(pod: Pod, behavior: OwnerBehavior) -> str:
    """Return what the owner of a pod is expected to do; empty if that is certain or unknown."""
    if behavior.expectation is Expectation.NONE:
        return ""
    text = _EXPECTED.get(behavior.expectation, "")
    group = pod.metadata.labels.get(LEADER_WORKER_SET) or (pod.owner.name if pod.owner else "")
    return text.format(owner=pod.owner_text.replace("/", " "), group=group)


def unknown_text(pod: Pod, behavior: OwnerBehavior, otherwise: str) -> str:
    """Return that it is not known what the owner does; `otherwise`: what if it recreates the pod.

    Empty if it is known.
    """
    owner = pod.owner
    if behavior.recreation is not Recreation.UNKNOWN or owner is None:
        return ""
    name = f"owner {owner.kind}/{owner.name} of kind {kind_text(owner)}"
    text = f"{name}: Sully does not know whether it recreates the pod"
    return f"{text}; if it does, the pod would be {otherwise}"

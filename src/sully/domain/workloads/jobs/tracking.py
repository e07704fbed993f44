"""The pods of a Job, and how they are counted: each once, however often the controller restarts.

A pod keeps a finalizer until it is counted: its uid is written to the status first, then the
finalizer is removed, then the number increases. What the controller does next is sync.py; how
failures count is failures.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from sully.api.batch.indexes import format_indexes, parse_indexes
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.jobs.failures import (
    TRACKING,
    JobState,
    count_failure,
    index_of,
    matching_rule,
)
from sully.domain.workloads.jobs.objects import Action, Job, JobStatus, UncountedPods
from sully.machinery.formats.timestamps import later


class JobPods(msgspec.Struct):
    """The pods of a Job, and what is counted of them."""

    job: Job
    pods: Sequence[Pod]
    active: list[Pod]
    terminating: int
    succeeded: list[Pod]
    """Pods that are not counted yet."""
    failed: list[tuple[Pod, Action]]
    status: JobStatus
    state: JobState
    completed: frozenset[int]


def is_tracked(pod: Pod) -> bool:
    """Report whether a pod still has the finalizer."""
    return TRACKING in pod.metadata.finalizers


def is_failed(pod: Pod, job: Job) -> bool:
    """Report whether a pod counts as failed."""
    if pod.status.phase == "Failed":
        return True
    if not pod.is_terminating or pod.status.phase == "Succeeded":
        return False
    # A pod without a node never terminates by itself: nothing runs it.
    return job.replaces_terminating or not pod.spec.node_name


def finish_time(pod: Pod, now: datetime) -> datetime:
    """Return when a pod finished: its containers, or else its deletion was requested."""
    states = [status.state.terminated for status in pod.status.container_statuses]
    times = [state.finished_at for state in states if state is not None and state.finished_at]
    if times and len(times) == len(states):
        return max(times)
    ready = pod.condition("Ready")
    if ready is not None and ready.status == "False" and ready.last_transition_time is not None:
        return ready.last_transition_time
    deleted = pod.metadata.deletion_timestamp
    if deleted is None:
        return now
    return later(deleted, -(pod.metadata.deletion_grace_period_seconds or 0))


def observe(job: Job, pods: Sequence[Pod], previous: JobState, now: datetime) -> JobPods:
    status = _flushed(job, pods)
    uncounted = status.uncounted_terminated_pods or UncountedPods()
    known = {*uncounted.succeeded, *uncounted.failed}
    fresh = [pod for pod in pods if is_tracked(pod) and pod.metadata.uid not in known]
    succeeded = [pod for pod in fresh if pod.status.phase == "Succeeded"]
    policy = job.spec.pod_failure_policy
    failed: list[tuple[Pod, Action]] = []
    for pod in fresh:
        if is_failed(pod, job):
            rule = matching_rule(policy, pod)
            failed.append((pod, rule.action if rule is not None else "Count"))
    if status.start_time is None and not job.spec.suspend:
        status = replace(status, start_time=now)
    completed = _completed(job, succeeded)
    state = JobState(
        failed=status.failed + len(uncounted.failed),
        failures=previous.failures,
        last_failure=previous.last_failure,
        failed_indexes=parse_indexes(status.failed_indexes or ""),
    )
    return JobPods(
        job=job,
        pods=pods,
        active=[pod for pod in pods if pod.is_active],
        terminating=sum(pod.is_terminating and not pod.is_terminal for pod in pods),
        succeeded=succeeded,
        failed=failed,
        status=status,
        state=_count_failures(job, state, succeeded, failed, now),
        completed=completed,
    )


def _flushed(job: Job, pods: Iterable[Pod]) -> JobStatus:
    """Return the status with those pods counted whose finalizer is removed."""
    uncounted = job.status.uncounted_terminated_pods or UncountedPods()
    tracked = {pod.metadata.uid for pod in pods if is_tracked(pod)}
    remaining = UncountedPods(
        succeeded=tuple(uid for uid in uncounted.succeeded if uid in tracked),
        failed=tuple(uid for uid in uncounted.failed if uid in tracked),
    )
    return replace(
        job.status,
        succeeded=job.status.succeeded + len(uncounted.succeeded) - len(remaining.succeeded),
        failed=job.status.failed + len(uncounted.failed) - len(remaining.failed),
        uncounted_terminated_pods=remaining,
    )


def _completed(job: Job, succeeded: Iterable[Pod]) -> frozenset[int]:
    if not job.is_indexed:
        return frozenset()
    indexes = parse_indexes(job.status.completed_indexes)
    new = {index for pod in succeeded if (index := index_of(pod)) is not None}
    return frozenset(index for index in indexes | new if index < (job.spec.completions or 0))


def _count_failures(
    job: Job,
    state: JobState,
    succeeded: Sequence[Pod],
    failed: Sequence[tuple[Pod, Action]],
    now: datetime,
) -> JobState:
    last_success = max((finish_time(pod, now) for pod in succeeded), default=None)
    if last_success is not None:
        state = state.after_success()
    for pod, action in failed:
        time = finish_time(pod, now)
        late = last_success is None or time > last_success
        state = count_failure(job, state, pod, time, action, backs_off=late)
    return state


def succeeded_count(ctx: JobPods) -> int:
    if ctx.job.is_indexed:
        return len(ctx.completed)
    uncounted = ctx.status.uncounted_terminated_pods or UncountedPods()
    return ctx.status.succeeded + len(uncounted.succeeded) + len(ctx.succeeded)


def released(ctx: JobPods, delayed: frozenset[str] = frozenset()) -> tuple[Pod, ...]:
    uncounted = ctx.status.uncounted_terminated_pods or UncountedPods()
    known = {*uncounted.succeeded, *uncounted.failed}
    again = [pod for pod in ctx.pods if is_tracked(pod) and pod.metadata.uid in known]
    failed = [pod for pod, _ in ctx.failed if pod.metadata.uid not in delayed]
    return (*again, *ctx.succeeded, *failed)


def counted_status(
    ctx: JobPods, active: Sequence[Pod], delayed: frozenset[str] = frozenset()
) -> JobStatus:
    """Return the status with the pods that are about to lose their finalizer."""
    job, status = ctx.job, ctx.status
    uncounted = status.uncounted_terminated_pods or UncountedPods()
    failed = [
        pod.metadata.uid
        for pod, action in ctx.failed
        if action != "Ignore" and pod.metadata.uid not in delayed
    ]
    succeeded = [] if job.is_indexed else [pod.metadata.uid for pod in ctx.succeeded]
    status = replace(
        status,
        active=len(active),
        ready=sum(pod.ready for pod in active),
        terminating=ctx.terminating + len(ctx.active) - len(active),
        uncounted_terminated_pods=UncountedPods(
            succeeded=(*uncounted.succeeded, *succeeded), failed=(*uncounted.failed, *failed)
        ),
    )
    if job.is_indexed:
        status = replace(
            status,
            succeeded=len(ctx.completed),
            completed_indexes=format_indexes(ctx.completed),
        )
    if job.spec.backoff_limit_per_index is not None:
        status = replace(status, failed_indexes=format_indexes(ctx.state.failed_indexes))
    return status

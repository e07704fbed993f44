"""What the Job controller does next: which pods it counts, deletes and creates, and the status.

`sync_job` is called again after each step. How pods are counted is tracking.py, which are
created and deleted pods.py, how failures count failures.py.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from sully.api.batch.indexes import format_indexes, intervals
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.jobs.failures import (
    JobEnd,
    JobState,
    desired_pods,
    end_of,
    failure_message,
)
from sully.domain.workloads.jobs.objects import Job, JobCondition, JobStatus, UncountedPods
from sully.domain.workloads.jobs.pods import (
    NewPod,
    awaiting_replacement,
    missing_pods,
    surplus_pods,
)
from sully.domain.workloads.jobs.tracking import (
    JobPods,
    counted_status,
    is_tracked,
    observe,
    released,
    succeeded_count,
)
from sully.domain.workloads.workloads import BURST
from sully.machinery.formats.timestamps import later

_REACHED: Final = ("CompletionsReached", "Reached expected number of succeeded pods")
_MESSAGES: Final[Mapping[JobEnd, str]] = {
    JobEnd.BACKOFF_LIMIT: "Job has reached the specified backoff limit",
    JobEnd.DEADLINE: "Job was active longer than specified deadline",
    JobEnd.MAX_FAILED_INDEXES: "Job has exceeded the specified maximal number of failed indexes",
    JobEnd.FAILED_INDEXES: "Job has failed indexes",
}


class JobSync(msgspec.Struct, frozen=True):
    """The next step of a Job."""

    status: JobStatus
    """Written before the finalizers are removed; without what is created and deleted."""
    state: JobState
    """What the controller stores: the back-off."""
    release: tuple[Pod, ...] = ()
    """Pods whose finalizer is removed, once the status is written."""
    delete: tuple[Pod, ...] = ()
    create: tuple[NewPod, ...] = ()
    again_at: datetime | None = None


def sync_job(job: Job, pods: Sequence[Pod], previous: JobState, now: datetime) -> JobSync:
    """Return the next step of a Job that is not finished."""
    ctx = observe(job, pods, previous, now)
    end, why = _end(ctx, now)
    if end is not None:
        return _finish(ctx, end, why, now)
    if job.is_terminating:
        return JobSync(counted_status(ctx, ctx.active), ctx.state, released(ctx))
    return _manage(ctx, now)


def _end(ctx: JobPods, now: datetime) -> tuple[str | None, tuple[str, str]]:
    """Return the condition that a Job is about to get, with reason and message."""
    job = ctx.job
    for type_ in ("SuccessCriteriaMet", "FailureTarget"):
        condition = job.condition(type_)
        if condition is not None and condition.status == "True":
            return type_, (condition.reason, condition.message)
    latest = replace(
        job, status=replace(ctx.status, completed_indexes=format_indexes(ctx.completed))
    )
    end = end_of(latest, ctx.state, now)
    if end is not None and end.fails:
        text = _policy_message(ctx) if end is JobEnd.FAILURE_POLICY else _MESSAGES[end]
        return "FailureTarget", (end.value, text)
    position = _success_rule(ctx)
    if position is not None:
        return "SuccessCriteriaMet", ("SuccessPolicy", f"Matched rules at index {position}")
    return None, ("", "")


def _policy_message(ctx: JobPods) -> str:
    policy = ctx.job.spec.pod_failure_policy
    return next(failure_message(policy, pod) for pod, action in ctx.failed if action == "FailJob")


def _success_rule(ctx: JobPods) -> int | None:
    policy = ctx.job.spec.success_policy
    completed = sorted(ctx.completed)
    if policy is None or not completed:
        return None
    for position, rule in enumerate(policy.rules):
        succeeded, count = len(completed), rule.succeeded_count
        if rule.succeeded_indexes is not None:
            required = intervals(rule.succeeded_indexes)
            succeeded = sum(_count_in(interval, completed) for interval in required)
            count = sum(map(len, required)) if count is None else count
        if count is not None and succeeded >= count:
            return position
    return None


def _count_in(interval: range, indexes: Sequence[int]) -> int:
    """Return how many of these indexes, in order, are in an interval."""
    return bisect_left(indexes, interval.stop) - bisect_left(indexes, interval.start)


def _finish(ctx: JobPods, type_: str, why: tuple[str, str], now: datetime) -> JobSync:
    """Delete what runs; the Job is finished when all pods have terminated and are counted."""
    release = released(ctx)
    status = counted_status(ctx, ())
    if not ctx.job.has_condition(type_):
        status = _with_condition(status, type_, why, now)
    uncounted = status.uncounted_terminated_pods or UncountedPods()
    waits = ctx.active or ctx.terminating or uncounted.succeeded or uncounted.failed
    tracked = [pod for pod in ctx.pods if is_tracked(pod) and pod not in release]
    if not waits and not tracked and not release:
        final = "Failed" if type_ == "FailureTarget" else "Complete"
        status = _with_condition(status, final, why, now)
        if final == "Complete":
            status = replace(status, completion_time=now)
    return JobSync(status, ctx.state, release, tuple(ctx.active[:BURST]))


def _manage(ctx: JobPods, now: datetime) -> JobSync:
    job = ctx.job
    if job.spec.suspend:
        delayed = awaiting_replacement(ctx, ())
        status = counted_status(ctx, (), delayed)
        if not job.has_condition("Suspended"):
            why = ("JobSuspended", "Job suspended")
            status = replace(_with_condition(status, "Suspended", why, now), start_time=None)
        release = released(ctx, delayed)
        return JobSync(status, ctx.state, release, tuple(ctx.active[:BURST]))
    latest = replace(job, status=replace(ctx.status, succeeded=succeeded_count(ctx)))
    desired = desired_pods(latest, len(ctx.active))
    surplus = surplus_pods(ctx, len(ctx.active) - desired)
    remaining = [pod for pod in ctx.active if pod not in surplus]
    if _is_complete(latest, len(remaining)):
        return _finish(ctx, "SuccessCriteriaMet", _REACHED, now)
    create: tuple[NewPod, ...] = ()
    again = _deadline(latest)
    if not surplus:
        blocked = 0 if job.replaces_terminating else ctx.terminating
        create, due = missing_pods(ctx, desired - blocked - len(ctx.active), now)
        again = min(filter(None, (again, due)), default=None)
    delayed = awaiting_replacement(ctx, create)
    status = counted_status(ctx, remaining, delayed)
    if job.has_condition("Suspended"):
        why = ("JobResumed", "Job resumed")
        status = _with_condition(status, "Suspended", why, now, "False")
        status = replace(status, start_time=now)
    release = released(ctx, delayed)
    return JobSync(status, ctx.state, release, tuple(surplus[:BURST]), create, again)


def _is_complete(job: Job, active: int) -> bool:
    needed = 1 if job.spec.completions is None else job.spec.completions
    return job.status.succeeded >= needed and active == 0


def _deadline(job: Job) -> datetime | None:
    seconds, start = job.spec.active_deadline_seconds, job.status.start_time
    return None if seconds is None or start is None else later(start, seconds)


def _with_condition(
    status: JobStatus, type_: str, why: tuple[str, str], now: datetime, value: str = "True"
) -> JobStatus:
    condition = JobCondition(
        type=type_,
        status=value,
        last_probe_time=now,
        last_transition_time=now,
        reason=why[0],
        message=why[1],
    )
    others = tuple(other for other in status.conditions if other.type != type_)
    return replace(status, conditions=(*others, condition))

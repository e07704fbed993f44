"""What the Job controller does next: which pods it counts, deletes and creates, and the status.

A pod keeps a finalizer until it is counted, so that none is missed: its uid is written to the
status first, then the finalizer is removed, then the number goes up. `sync_job` is asked again
after each step. How failures count is job_failures.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from sully.api.batch.indexes import format_indexes, parse_indexes
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.job_failures import (
    INDEX_FAILURES,
    TRACKING,
    JobEnd,
    JobState,
    back_off,
    count_failure,
    creation_time,
    end_of,
    failure_message,
    index_of,
    matching_rule,
    next_annotations,
    wanted_pods,
)
from sully.domain.workloads.jobs import Action, Job, JobCondition, JobStatus, UncountedPods

BURST: Final = 500
"""How many pods one sync creates or deletes at most."""
_REACHED: Final = ("CompletionsReached", "Reached expected number of succeeded pods")
_MESSAGES: Final[Mapping[JobEnd, str]] = {
    JobEnd.BACKOFF_LIMIT: "Job has reached the specified backoff limit",
    JobEnd.DEADLINE: "Job was active longer than specified deadline",
    JobEnd.MAX_FAILED_INDEXES: "Job has exceeded the specified maximal number of failed indexes",
    JobEnd.FAILED_INDEXES: "Job has failed indexes",
}


@dataclass(frozen=True, slots=True)
class NewPod:
    """A pod to create."""

    index: int | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobSync:
    """The next step of a Job."""

    status: JobStatus
    """Written before the finalizers are removed; without what is created and deleted."""
    state: JobState
    """What the controller remembers: the back-off."""
    release: tuple[Pod, ...] = ()
    """Pods whose finalizer is removed, once the status is written."""
    delete: tuple[Pod, ...] = ()
    create: tuple[NewPod, ...] = ()
    again_at: datetime | None = None


@dataclass(slots=True)
class _SyncContext:
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


def sync_job(job: Job, pods: Sequence[Pod], previous: JobState, now: datetime) -> JobSync:
    """Return the next step of a Job that is not finished."""
    ctx = _observe(job, pods, previous, now)
    end, why = _end(ctx, now)
    if end is not None:
        return _finish(ctx, end, why, now)
    if job.is_terminating:
        return JobSync(_counted(ctx, ctx.active), ctx.state, _released(ctx))
    return _manage(ctx, now)


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
    return deleted - timedelta(seconds=pod.metadata.deletion_grace_period_seconds or 0)


# -- what is there --------------------------------------------------------------------------------


def _observe(job: Job, pods: Sequence[Pod], previous: JobState, now: datetime) -> _SyncContext:
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
    return _SyncContext(
        job=job,
        pods=pods,
        active=[pod for pod in pods if pod.active],
        terminating=sum(pod.is_terminating and not pod.finished for pod in pods),
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
    kept = UncountedPods(
        succeeded=tuple(uid for uid in uncounted.succeeded if uid in tracked),
        failed=tuple(uid for uid in uncounted.failed if uid in tracked),
    )
    return replace(
        job.status,
        succeeded=job.status.succeeded + len(uncounted.succeeded) - len(kept.succeeded),
        failed=job.status.failed + len(uncounted.failed) - len(kept.failed),
        uncounted_terminated_pods=kept,
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


def _succeeded(ctx: _SyncContext) -> int:
    if ctx.job.is_indexed:
        return len(ctx.completed)
    uncounted = ctx.status.uncounted_terminated_pods or UncountedPods()
    return ctx.status.succeeded + len(uncounted.succeeded) + len(ctx.succeeded)


# -- the end --------------------------------------------------------------------------------------


def _end(ctx: _SyncContext, now: datetime) -> tuple[str | None, tuple[str, str]]:
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


def _policy_message(ctx: _SyncContext) -> str:
    policy = ctx.job.spec.pod_failure_policy
    return next(failure_message(policy, pod) for pod, action in ctx.failed if action == "FailJob")


def _success_rule(ctx: _SyncContext) -> int | None:
    policy = ctx.job.spec.success_policy
    for position, rule in enumerate(policy.rules if policy is not None else ()):
        required = ctx.completed
        count = rule.succeeded_count
        if rule.succeeded_indexes is not None:
            indexes = parse_indexes(rule.succeeded_indexes)
            required &= indexes
            count = len(indexes) if count is None else count
        if count is not None and ctx.completed and len(required) >= count:
            return position
    return None


def _finish(ctx: _SyncContext, type_: str, why: tuple[str, str], now: datetime) -> JobSync:
    """Delete what runs; the Job is finished when all pods have terminated and are counted."""
    release = _released(ctx)
    status = _counted(ctx, ())
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


# -- while it runs --------------------------------------------------------------------------------


def _manage(ctx: _SyncContext, now: datetime) -> JobSync:
    job = ctx.job
    if job.spec.suspend:
        delayed = _delayed(ctx, ())
        status = _counted(ctx, (), delayed)
        if not job.has_condition("Suspended"):
            why = ("JobSuspended", "Job suspended")
            status = replace(_with_condition(status, "Suspended", why, now), start_time=None)
        release = _released(ctx, delayed)
        return JobSync(status, ctx.state, release, tuple(ctx.active[:BURST]))
    latest = replace(job, status=replace(ctx.status, succeeded=_succeeded(ctx)))
    wanted = wanted_pods(latest, len(ctx.active))
    surplus = _surplus(ctx, len(ctx.active) - wanted)
    remaining = [pod for pod in ctx.active if pod not in surplus]
    if _is_complete(latest, len(remaining)):
        return _finish(ctx, "SuccessCriteriaMet", _REACHED, now)
    create: tuple[NewPod, ...] = ()
    again = _deadline(latest)
    if not surplus:
        blocked = 0 if job.replaces_terminating else ctx.terminating
        create, later = _missing(ctx, wanted - blocked - len(ctx.active), now)
        again = min(filter(None, (again, later)), default=None)
    delayed = _delayed(ctx, create)
    status = _counted(ctx, remaining, delayed)
    if job.has_condition("Suspended"):
        why = ("JobResumed", "Job resumed")
        status = _with_condition(status, "Suspended", why, now, "False")
        status = replace(status, start_time=now)
    release = _released(ctx, delayed)
    return JobSync(status, ctx.state, release, tuple(surplus[:BURST]), create, again)


def _is_complete(job: Job, active: int) -> bool:
    needed = 1 if job.spec.completions is None else job.spec.completions
    return job.status.succeeded >= needed and active == 0


def _deadline(job: Job) -> datetime | None:
    seconds, start = job.spec.active_deadline_seconds, job.status.start_time
    return None if seconds is None or start is None else start + timedelta(seconds=seconds)


def _surplus(ctx: _SyncContext, count: int) -> list[Pod]:
    """Return the active pods to delete: with an index that has another, then the least useful."""
    if not ctx.job.is_indexed:
        return _least_useful(ctx.active)[: max(count, 0)]
    kept: set[int] = set()
    surplus: list[Pod] = []
    for pod in sorted(ctx.active, key=lambda pod: (-_worth(pod), pod.metadata.name)):
        index = index_of(pod)
        done = ctx.completed | ctx.state.failed_indexes | kept
        if index is None or index >= (ctx.job.spec.completions or 0) or index in done:
            surplus.append(pod)
        else:
            kept.add(index)
    # Of the others those with the highest indexes.
    others = [pod for pod in ctx.active if pod not in surplus]
    others.sort(key=lambda pod: -(index_of(pod) or 0))
    return surplus + others[: max(count - len(surplus), 0)]


def _least_useful(pods: Iterable[Pod]) -> list[Pod]:
    return sorted(pods, key=lambda pod: (_worth(pod), pod.metadata.name))


def _worth(pod: Pod) -> int:
    return 2 * bool(pod.spec.node_name) + pod.ready


def _missing(
    ctx: _SyncContext, count: int, now: datetime
) -> tuple[tuple[NewPod, ...], datetime | None]:
    """Return the pods to create now, and when the next may be created."""
    job, count = ctx.job, min(count, BURST)
    if count <= 0:
        return (), None
    if not job.is_indexed:
        due = _due(ctx, now)
        return ((NewPod(),) * count, None) if due <= now else ((), due)
    new: list[NewPod] = []
    later: list[datetime] = []
    for index in _pending(ctx)[:count]:
        last = _last_failed(ctx, index)
        due = _due(ctx, now, last)
        if due > now:
            later.append(due)
            continue
        annotations = {}
        if job.spec.backoff_limit_per_index is not None:
            annotations = next_annotations(job, *last) if last is not None else {}
            annotations = {INDEX_FAILURES: "0", **annotations}
        new.append(NewPod(index, annotations))
    return tuple(new), min(later, default=None)


def _due(ctx: _SyncContext, now: datetime, last: tuple[Pod, Action] | None = None) -> datetime:
    if last is not None and ctx.job.spec.backoff_limit_per_index is not None:
        return creation_time(ctx.job, ctx.state, last[0], finish_time(last[0], now))
    if ctx.job.spec.backoff_limit_per_index is not None or ctx.state.last_failure is None:
        return now
    return ctx.state.last_failure + back_off(ctx.state.failures)


def _pending(ctx: _SyncContext) -> list[int]:
    """Return the indexes without a pod; one that is terminating may have to terminate first."""
    job = ctx.job
    present = {
        index_of(pod)
        for pod in ctx.pods
        if pod.active or (pod.is_terminating and not pod.finished and not job.replaces_terminating)
    }
    done = ctx.completed | ctx.state.failed_indexes
    return [
        index
        for index in range(job.spec.completions or 0)
        if index not in present and index not in done
    ]


def _last_failed(ctx: _SyncContext, index: int) -> tuple[Pod, Action] | None:
    """Return the failed pod of an index that is not replaced yet."""
    pods = [(pod, action) for pod, action in ctx.failed if index_of(pod) == index]
    return max(pods, key=lambda pair: pair[0].metadata.name, default=None)


# -- the status -----------------------------------------------------------------------------------


def _delayed(ctx: _SyncContext, create: Sequence[NewPod]) -> frozenset[str]:
    """Return the uids of failed pods that keep their finalizer until they are replaced.

    With a limit for each index, the failures of an index are known only from its last pod.
    """
    job = ctx.job
    if job.spec.backoff_limit_per_index is None:
        return frozenset()
    pending = set(_pending(ctx)) - {new.index for new in create}
    last = (_last_failed(ctx, index) for index in pending)
    return frozenset(pair[0].metadata.uid for pair in last if pair is not None)


def _released(ctx: _SyncContext, delayed: frozenset[str] = frozenset()) -> tuple[Pod, ...]:
    uncounted = ctx.status.uncounted_terminated_pods or UncountedPods()
    known = {*uncounted.succeeded, *uncounted.failed}
    again = [pod for pod in ctx.pods if is_tracked(pod) and pod.metadata.uid in known]
    failed = [pod for pod, _ in ctx.failed if pod.metadata.uid not in delayed]
    return (*again, *ctx.succeeded, *failed)


def _counted(
    ctx: _SyncContext, active: Sequence[Pod], delayed: frozenset[str] = frozenset()
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

"""How the failed pods of a Job count, when it creates others, and when it fails.

A deleted pod counts as failed immediately, or, with the replacement policy `Failed`, when it has
terminated. The controller and plans share these rules. In a plan the exit code of a container that
is signaled to terminate is not known: it is assumed to be that of a process that ends with the
signal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

import msgspec
from msgspec.structs import replace

from sully.api.batch.indexes import parse_indexes
from sully.api.core.pods.conditions import DISRUPTION_TARGET
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.jobs.objects import Action, ExitCodes, FailurePolicy, FailureRule, Job
from sully.machinery.formats.integers import parse_natural
from sully.machinery.formats.timestamps import later

SYNC_PERIOD: Final = timedelta(seconds=1)
"""How long the controller collects changes of pods before it acts on them."""
TRACKING: Final = "batch.kubernetes.io/job-tracking"
"""The finalizer of pods that are not counted yet."""
INDEX: Final = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
_FIRST_BACK_OFF: Final = timedelta(seconds=10)
_MOST_BACK_OFF: Final = timedelta(minutes=10)
_TERMINATED: Final = 143
"""The exit code of a process that SIGTERM ended."""
_DISRUPTED: Final = (DISRUPTION_TARGET, "True")
"""The condition that evicted pods get."""


class JobEnd(Enum):
    """Why a Job creates no more pods."""

    BACKOFF_LIMIT = "BackoffLimitExceeded"
    FAILURE_POLICY = "PodFailurePolicy"
    MAX_FAILED_INDEXES = "MaxFailedIndexesExceeded"
    FAILED_INDEXES = "FailedIndexes"
    DEADLINE = "DeadlineExceeded"
    FINISHED = "Finished"
    """It has succeeded or failed already, or is being deleted."""
    SUSPENDED = "Suspended"
    COMPLETIONS = "Completions"
    """No more pods than there are have to succeed."""

    @property
    def fails(self) -> bool:
        """Report whether the Job fails; then its other pods are deleted."""
        return self not in (JobEnd.FINISHED, JobEnd.SUSPENDED, JobEnd.COMPLETIONS)


class JobState(msgspec.Struct, frozen=True):
    """What a Job counts."""

    failed: int = 0
    """Pods that count towards the backoffLimit."""
    failures: int = 0
    """Failures since the last success, also ignored ones: they decide about the back-off."""
    last_failure: datetime | None = None
    failed_indexes: frozenset[int] = frozenset()
    failed_by_policy: bool = False

    def after_success(self) -> JobState:
        """Return the state without a back-off."""
        return replace(self, failures=0, last_failure=None)


def initial_state(job: Job) -> JobState:
    """Return what a Job has counted; when its last pod succeeded is not in its status."""
    status = job.status
    failures = status.failed if not status.succeeded else 0
    return JobState(
        failed=status.failed,
        failures=failures,
        failed_indexes=parse_indexes(status.failed_indexes or ""),
    )


def count_failure(
    job: Job, state: JobState, pod: Pod, time: datetime, action: Action, *, backs_off: bool = True
) -> JobState:
    """Return what a Job counts after a pod has failed; `backs_off` unless one succeeded since."""
    index, per_index = index_of(pod), job.spec.backoff_limit_per_index
    indexes = state.failed_indexes
    if per_index is not None and index is not None:
        over = action != "Ignore" and _number(pod, INDEX_FAILURES) >= per_index
        if over or action == "FailIndex":
            indexes |= {index}
    return replace(
        state,
        failed=state.failed + (action != "Ignore"),
        failures=state.failures + backs_off,
        last_failure=_latest(state.last_failure, time) if backs_off else state.last_failure,
        failed_indexes=indexes,
        failed_by_policy=state.failed_by_policy or action == "FailJob",
    )


def _latest(one: datetime | None, other: datetime) -> datetime:
    return other if one is None else max(one, other)


def action_for(policy: FailurePolicy | None, pod: Pod) -> Action:
    """Return the action of a Job's failure policy for a pod that will be evicted."""
    conditions = {(condition.type, condition.status) for condition in pod.status.conditions}
    codes = {container.name: _TERMINATED for container in pod.spec.containers}
    rule = _matching(policy, codes, conditions | {_DISRUPTED})
    return rule.action if rule is not None else "Count"


def matching_rule(policy: FailurePolicy | None, pod: Pod) -> FailureRule | None:
    """Return the rule of a failure policy that decides about a failed pod."""
    conditions = {(condition.type, condition.status) for condition in pod.status.conditions}
    return _matching(policy, exit_codes(pod), conditions)


def failure_message(policy: FailurePolicy | None, pod: Pod) -> str:
    """Return which rule of a failure policy decides about a failed pod, and why."""
    rule = matching_rule(policy, pod)
    if rule is None or policy is None:
        return ""
    where = f"matching {rule.action} rule at index {policy.rules.index(rule)}"
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if rule.on_exit_codes is not None:
        container, code = next(_matching_exits(rule.on_exit_codes, exit_codes(pod)))
        return f"Container {container} for pod {name} failed with exit code {code} {where}"
    patterns = {(pattern.type, pattern.status) for pattern in rule.on_pod_conditions or ()}
    conditions = pod.status.conditions
    type_ = next(
        condition.type for condition in conditions if (condition.type, condition.status) in patterns
    )
    return f"Pod {name} has condition {type_} {where}"


def exit_codes(pod: Pod) -> dict[str, int]:
    """Return the exit codes of the containers that have terminated."""
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return {
        status.name: status.state.terminated.exit_code
        for status in statuses
        if status.state.terminated is not None
    }


def _matching(
    policy: FailurePolicy | None, codes: Mapping[str, int], conditions: set[tuple[str, str]]
) -> FailureRule | None:
    for rule in policy.rules if policy is not None else ():
        if rule.on_exit_codes is not None:
            if any(_matching_exits(rule.on_exit_codes, codes)):
                return rule
        elif any((x.type, x.status) in conditions for x in rule.on_pod_conditions or ()):
            return rule
    return None


def _matching_exits(expected: ExitCodes, codes: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the failed containers with one of the codes, or with NotIn another one."""
    for name, code in codes.items():
        named = expected.container_name in (None, name)
        if code != 0 and named and (code in expected.values) == (expected.operator == "In"):
            yield name, code


def end_of(job: Job, state: JobState, now: datetime) -> JobEnd | None:
    """Return why a Job creates no more pods; None if it does."""
    spec, status = job.spec, job.status
    if _is_finished(job):
        return JobEnd.FINISHED
    if state.failed_by_policy:
        return JobEnd.FAILURE_POLICY
    if state.failed > spec.backoff_limit:
        return JobEnd.BACKOFF_LIMIT
    if spec.suspend:
        return _end_of_indexes(job, state) or JobEnd.SUSPENDED
    deadline, start = spec.active_deadline_seconds, status.start_time
    if deadline is not None and start is not None and now >= later(start, deadline):
        return JobEnd.DEADLINE
    return _end_of_indexes(job, state)


def _end_of_indexes(job: Job, state: JobState) -> JobEnd | None:
    spec, failed = job.spec, len(state.failed_indexes)
    if spec.backoff_limit_per_index is None or not failed:
        return None
    if spec.max_failed_indexes is not None and failed > spec.max_failed_indexes:
        return JobEnd.MAX_FAILED_INDEXES
    done = len(parse_indexes(job.status.completed_indexes))
    return JobEnd.FAILED_INDEXES if failed + done >= (spec.completions or 0) else None


def _is_finished(job: Job) -> bool:
    types = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")
    return job.metadata.deletion_timestamp is not None or any(map(job.has_condition, types))


def desired_pods(job: Job, active: int) -> int:
    """Return how many pods a Job wants to run, of which `active` do."""
    spec, succeeded = job.spec, job.status.succeeded
    if spec.completions is None:
        return active if succeeded else spec.parallelism
    return max(0, min(spec.completions - succeeded, spec.parallelism))


def creation_time(job: Job, state: JobState, pod: Pod, failed: datetime) -> datetime:
    """Return when a Job creates a pod that replaces a failed one.

    The back-off is one for all pods, or one for each index with a limit for each index.
    """
    if job.spec.backoff_limit_per_index is not None and index_of(pod) is not None:
        earlier = _number(pod, INDEX_FAILURES) + _number(pod, INDEX_IGNORED)
        return later(failed, back_off(earlier + 1))
    return later(state.last_failure or failed, back_off(state.failures))


def back_off(failures: int) -> timedelta:
    """Return how long a Job waits after its last failure; the time doubles with each."""
    if failures <= 0:
        return timedelta()
    # Larger exponents would exceed any limit, and then the range of times.
    factor: int = 2 ** min(failures - 1, 16)
    return min(_FIRST_BACK_OFF * factor, _MOST_BACK_OFF)


def next_annotations(job: Job, pod: Pod, action: Action) -> dict[str, str]:
    """Return how the replacement of a pod counts the failures of its index."""
    if job.spec.backoff_limit_per_index is None or index_of(pod) is None:
        return {}
    counts = {name: _number(pod, name) for name in (INDEX_FAILURES, INDEX_IGNORED)}
    counts[INDEX_IGNORED if action == "Ignore" else INDEX_FAILURES] += 1
    return {name: str(count) for name, count in counts.items() if count}


def index_of(pod: Pod) -> int | None:
    """Return the completion index of a pod of an Indexed Job; None if it has none."""
    text = pod.metadata.annotations.get(INDEX, "")
    return parse_natural(text)


def is_failed_index(state: JobState, pod: Pod) -> bool:
    """Report whether the index of a pod has failed, so that the pod is not replaced."""
    return index_of(pod) in state.failed_indexes


def _number(pod: Pod, annotation: str) -> int:
    text = pod.metadata.annotations.get(annotation, "")
    return parse_natural(text) or 0

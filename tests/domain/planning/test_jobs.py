"""What Jobs do about evicted pods."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from manifests import body
from sully.api.batch.indexes import format_indexes, parse_indexes
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.jobs.failures import (
    JobEnd,
    JobState,
    action_for,
    back_off,
    count_failure,
    creation_time,
    desired_pods,
    end_of,
    initial_state,
)
from sully.domain.workloads.jobs.objects import Job
from sully.testing.builders import pod_as
from sully.testing.clock import NOON

Obj = dict[str, Any]
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"


def job(spec: Obj | None = None, **status: Any) -> Job:
    return msgspec.convert(body("Job", "j", spec or {}, status), Job)


def pod(index: int | None = None, failures: int = 0, **conditions: str) -> Pod:
    annotations = {INDEX: str(index), FAILURES: str(failures)} if index is not None else {}
    return pod_as(
        Pod,
        "p",
        namespace="a",
        node="n",
        metadata={"annotations": annotations},
        spec={"containers": [{"name": "main"}]},
        status={
            "conditions": [{"type": type_, "status": is_} for type_, is_ in conditions.items()]
        },
    )


def after(batch_job: Job, *pods: Pod) -> JobState:
    state = initial_state(batch_job)
    for pod in pods:
        action = action_for(batch_job.spec.pod_failure_policy, pod)
        state = count_failure(batch_job, state, pod, NOON, action)
    return state


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(0, 0), (1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (8, 600), (10**9, 600)],
)
def test_the_back_off_doubles_up_to_ten_minutes(failures: int, seconds: int) -> None:
    assert back_off(failures) == timedelta(seconds=seconds)


def policy(*rules: Obj) -> Obj:
    return {"podFailurePolicy": {"rules": list(rules)}, "podReplacementPolicy": "Failed"}


def on_condition(action: str, type_: str = "DisruptionTarget", status: str = "True") -> Obj:
    return {"action": action, "onPodConditions": [{"type": type_, "status": status}]}


def on_exit(action: str, operator: str, *values: int, container: str | None = None) -> Obj:
    codes = {"operator": operator, "values": list(values)}
    more = {"containerName": container} if container else {}
    return {"action": action, "onExitCodes": codes | more}


ACTIONS = {
    "no rule": ((), "Count"),
    "ignored": ((on_condition("Ignore"),), "Ignore"),
    "fails the job": ((on_condition("FailJob"),), "FailJob"),
    "another condition": ((on_condition("FailJob", "ConfigIssue"),), "Count"),
    "a condition that the pod has": ((on_condition("FailJob", "Ready", "False"),), "FailJob"),
    "the first rule decides": ((on_condition("Ignore"), on_condition("FailJob")), "Ignore"),
    "a process that the signal ends": ((on_exit("FailIndex", "In", 143),), "FailIndex"),
    "other exit codes": ((on_exit("FailJob", "In", 1, 2),), "Count"),
    "all but some exit codes": ((on_exit("FailJob", "NotIn", 1),), "FailJob"),
    "another container": ((on_exit("FailJob", "In", 143, container="side"),), "Count"),
}


@pytest.mark.parametrize(("rules", "want"), ACTIONS.values(), ids=ACTIONS)
def test_the_failure_policy(rules: tuple[Obj, ...], want: str) -> None:
    batch_job = job(policy(*rules))

    assert action_for(batch_job.spec.pod_failure_policy, pod(Ready="False")) == want


@dataclass(frozen=True)
class Ends:
    want: JobEnd | None
    spec: Obj = field(default_factory=dict)
    status: Obj = field(default_factory=dict)
    pods: tuple[Pod, ...] = (pod(),)


INDEXED = {"completionMode": "Indexed", "completions": 3, "backoffLimit": 2**31 - 1}
ENDS = {
    "one of six failures": Ends(None),
    "no failure is allowed": Ends(JobEnd.BACKOFF_LIMIT, {"backoffLimit": 0}),
    "as many as are allowed": Ends(None, {"backoffLimit": 2}, pods=(pod(), pod())),
    "one more": Ends(JobEnd.BACKOFF_LIMIT, {"backoffLimit": 2}, pods=(pod(), pod(), pod())),
    "earlier failures count": Ends(JobEnd.BACKOFF_LIMIT, {"backoffLimit": 2}, {"failed": 2}),
    "also after a success": Ends(
        JobEnd.BACKOFF_LIMIT, {"backoffLimit": 2}, {"failed": 2, "succeeded": 1}
    ),
    "ignored failures do not": Ends(
        None, {"backoffLimit": 0, **policy(on_condition("Ignore"))}, pods=(pod(), pod())
    ),
    "the policy fails the job": Ends(JobEnd.FAILURE_POLICY, policy(on_condition("FailJob"))),
    "the policy ignores, though the limit is exceeded": Ends(
        JobEnd.BACKOFF_LIMIT, {"backoffLimit": 1, **policy(on_condition("Ignore"))}, {"failed": 2}
    ),
    "an index may fail again": Ends(
        None, {**INDEXED, "backoffLimitPerIndex": 1}, pods=(pod(0), pod(1))
    ),
    "an index has failed, others continue": Ends(
        None, {**INDEXED, "backoffLimitPerIndex": 1}, pods=(pod(0, failures=1),)
    ),
    "too many indexes": Ends(
        JobEnd.MAX_FAILED_INDEXES,
        {**INDEXED, "backoffLimitPerIndex": 0, "maxFailedIndexes": 1},
        pods=(pod(0), pod(1)),
    ),
    "the last index": Ends(
        JobEnd.FAILED_INDEXES,
        {**INDEXED, "backoffLimitPerIndex": 0},
        {"completedIndexes": "0,1", "succeeded": 2},
        pods=(pod(2),),
    ),
    "the policy fails an index": Ends(
        JobEnd.FAILED_INDEXES,
        {**INDEXED, "completions": 1, "backoffLimitPerIndex": 5}
        | policy(on_condition("FailIndex")),
        pods=(pod(0),),
    ),
    "its time is over": Ends(
        JobEnd.DEADLINE, {"activeDeadlineSeconds": 5}, {"startTime": NOON - timedelta(seconds=5)}
    ),
    "its time is not over": Ends(
        None, {"activeDeadlineSeconds": 5}, {"startTime": NOON - timedelta(seconds=4)}
    ),
    "suspended": Ends(JobEnd.SUSPENDED, {"suspend": True}),
    "it has failed": Ends(
        JobEnd.FINISHED, status={"conditions": [{"type": "Failed", "status": "True"}]}
    ),
    "a condition that is not true": Ends(
        None, status={"conditions": [{"type": "Failed", "status": "False"}]}
    ),
}


@pytest.mark.parametrize("case", ENDS.values(), ids=ENDS)
def test_when_a_job_creates_no_more_pods(case: Ends) -> None:
    batch_job = job(case.spec, **case.status)

    assert end_of(batch_job, after(batch_job, *case.pods), NOON) == case.want


@pytest.mark.parametrize(
    ("spec", "status", "pods", "seconds"),
    [
        ({}, {}, (pod(),), 10),
        ({}, {}, (pod(), pod(), pod()), 40),
        ({}, {"failed": 1}, (pod(),), 20),
        ({}, {"failed": 3, "succeeded": 1}, (pod(),), 10),
        (policy(on_condition("Ignore")), {}, (pod(), pod()), 20),
        ({**INDEXED, "backoffLimitPerIndex": 6}, {}, (pod(0), pod(1)), 10),
        ({**INDEXED, "backoffLimitPerIndex": 6}, {}, (pod(0, failures=2),), 40),
    ],
    ids=["one", "three", "earlier", "reset by a success", "ignored", "per index", "again"],
)
def test_when_a_pod_is_created(spec: Obj, status: Obj, pods: tuple[Pod, ...], seconds: int) -> None:
    batch_job = job(spec, **status)
    time = creation_time(batch_job, after(batch_job, *pods), pods[-1], NOON)

    assert time - NOON == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("spec", "succeeded", "active", "want"),
    [
        ({"parallelism": 3, "completions": 3}, 0, 2, 3),
        ({"parallelism": 3, "completions": 3}, 1, 1, 2),
        ({"parallelism": 3, "completions": 3}, 3, 0, 0),
        ({"parallelism": 2, "completions": 9}, 1, 0, 2),
        ({"parallelism": 3}, 0, 1, 3),
        ({"parallelism": 3}, 1, 1, 1),
    ],
)
def test_how_many_pods_are_desired(spec: Obj, succeeded: int, active: int, want: int) -> None:
    assert desired_pods(job(spec, succeeded=succeeded), active) == want


@pytest.mark.parametrize(("text", "want"), [("", ()), ("3", (3,)), ("1,3-5,7", (1, 3, 4, 5, 7))])
def test_indexes(text: str, want: tuple[int, ...]) -> None:
    assert parse_indexes(text) == set(want)
    assert format_indexes(want) == text

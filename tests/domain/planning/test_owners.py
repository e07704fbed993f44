"""What owners do about evicted pods, by their kind."""

from __future__ import annotations

import pytest

from sully.domain.planning.owner_messages import expected_text, obstacle_text, unknown_text
from sully.domain.planning.owners import (
    Expectation,
    IndexFailed,
    JobEnded,
    NodeExcluded,
    NotNeeded,
    Obstacle,
    Recreation,
    WaitsForPod,
    behavior_of,
)
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.jobs.failures import JobEnd
from sully.testing.builders import pod_as


def pod(version: str, kind: str, **labels: str) -> Pod:
    reference = {"apiVersion": version, "kind": kind, "name": "o", "uid": "u", "controller": True}
    names = {
        "lws": "leaderworkerset.sigs.k8s.io/name",
        "jobset": "jobset.sigs.k8s.io/jobset-name",
    }
    metadata = {
        "ownerReferences": [reference] if kind else [],
        "labels": {names[name]: value for name, value in labels.items()},
    }
    return pod_as(Pod, "p", namespace="a", node="n", metadata=metadata)


NONE = Expectation.NONE
KINDS = {
    "nobody": (pod("", ""), Recreation.NEVER, NONE),
    "static": (pod("v1", "Node"), Recreation.NEVER, NONE),
    "rc": (pod("v1", "ReplicationController"), Recreation.WHILE_TERMINATING, NONE),
    "rs": (pod("apps/v1", "ReplicaSet"), Recreation.WHILE_TERMINATING, NONE),
    "sts": (pod("apps/v1", "StatefulSet"), Recreation.IN_ORDER, NONE),
    "ds": (pod("apps/v1", "DaemonSet"), Recreation.ON_ITS_NODE, NONE),
    "job": (pod("batch/v1", "Job"), Recreation.AS_JOB, NONE),
    "ray": (pod("ray.io/v1", "RayCluster"), Recreation.AFTER_DELETION, Expectation.RECREATES),
    "torch": (
        pod("kubeflow.org/v1", "PyTorchJob"),
        Recreation.AFTER_DELETION,
        Expectation.RECREATES,
    ),
    "mpi": (
        pod("kubeflow.org/v2beta1", "MPIJob"),
        Recreation.AFTER_DELETION,
        Expectation.RECREATES,
    ),
    "volcano": (
        pod("batch.volcano.sh/v1alpha1", "Job"),
        Recreation.AFTER_DELETION,
        Expectation.RECREATES_BY_POLICY,
    ),
    "lws": (
        pod("apps/v1", "StatefulSet", lws="l"),
        Recreation.IN_ORDER,
        Expectation.RECREATES_GROUP,
    ),
    "argo": (
        pod("argoproj.io/v1alpha1", "Workflow"),
        Recreation.UNKNOWN,
        Expectation.RETRIES_BY_STRATEGY,
    ),
    "kueue": (
        pod("kueue.x-k8s.io/v1beta1", "Workload"),
        Recreation.UNKNOWN,
        Expectation.CREATES_NO_PODS,
    ),
    "unknown": (pod("example.com/v1", "Foo"), Recreation.UNKNOWN, NONE),
    "same kind, another group": (pod("example.com/v1", "ReplicaSet"), Recreation.UNKNOWN, NONE),
}


@pytest.mark.parametrize(("owned", "recreation", "expectation"), KINDS.values(), ids=KINDS)
def test_kinds(owned: Pod, recreation: Recreation, expectation: Expectation) -> None:
    behavior = behavior_of(owned)

    assert (behavior.recreation, behavior.expectation) == (recreation, expectation)


def test_an_unknown_owner_is_named_with_its_kind() -> None:
    owned = pod("example.com/v1", "Foo")

    assert unknown_text(owned, behavior_of(owned), "unschedulable") == (
        "owner Foo/o of kind example.com/Foo: Sully does not know whether it recreates the pod;"
        " if it does, the pod would be unschedulable"
    )


TEXTS = {
    "RayCluster o is expected to recreate the pod": pod("ray.io/v1", "RayCluster"),
    "LeaderWorkerSet serving is expected to delete and recreate all pods of the group"
    " (restartPolicy RecreateGroupOnPodRestart)": pod("apps/v1", "StatefulSet", lws="serving"),
    "": pod("apps/v1", "ReplicaSet"),
}


@pytest.mark.parametrize("want", TEXTS, ids=("ray", "lws", "certain"))
def test_expectations_are_reported_as_such(want: str) -> None:
    assert expected_text(TEXTS[want], behavior_of(TEXTS[want])) == want


LIMIT = JobEnd.BACKOFF_LIMIT
OBSTACLES: dict[str, Obstacle] = {
    "Job j would fail: 1 failed pod would exceed its backoffLimit of 0": JobEnded("j", LIMIT, 1),
    "Job j would fail: 3 failed pods would exceed its backoffLimit of 2": JobEnded(
        "j", LIMIT, 3, 2
    ),
    "Job j would fail: 1 failed pod would exceed its backoffLimit of 0; JobSet s is expected to"
    " recreate all its Jobs, as often as its failurePolicy allows": JobEnded(
        "j", LIMIT, 1, job_set="s"
    ),
    "Job j would fail: its podFailurePolicy has the action FailJob for evicted pods": JobEnded(
        "j", JobEnd.FAILURE_POLICY
    ),
    "Job j would fail: its activeDeadlineSeconds would be over": JobEnded("j", JobEnd.DEADLINE),
    "Job j has finished": JobEnded("j", JobEnd.FINISHED, job_set="s"),
    "Job j is suspended": JobEnded("j", JobEnd.SUSPENDED),
    "index 2 of Job j would fail: its backoffLimitPerIndex is 1": IndexFailed("j", 2, 1),
    "StatefulSet db creates it when pod db-0 is ready": WaitsForPod("db", "db-0"),
    "StatefulSet/db wants fewer pods": NotNeeded("StatefulSet/db"),
    "node n does not exist, and its DaemonSet creates no pod for it": NodeExcluded("n"),
    "its DaemonSet does not tolerate the taint k:NoSchedule of node n": NodeExcluded(
        "n", "k:NoSchedule"
    ),
}


@pytest.mark.parametrize("want", OBSTACLES)
def test_why_a_pod_is_not_recreated(want: str) -> None:
    assert obstacle_text(OBSTACLES[want]) == want

"""What the owner of a pod does when the pod is evicted, by the kind of the owner.

The controllers of Kubernetes are known exactly (`domain/workloads`, replacements.py). Of well-known
custom kinds it is known what their controllers usually do: that is an expectation, and plans report
so. Whether any other kind recreates a pod is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Final

import msgspec

from sully.domain.scheduling.objects import Node, Pod
from sully.domain.workloads.daemonsets import should_run
from sully.domain.workloads.jobs.failures import JobEnd
from sully.machinery.meta import OwnerReference

LEADER_WORKER_SET: Final = "leaderworkerset.sigs.k8s.io/name"
"""The label of pods that belong to a group of a LeaderWorkerSet."""
JOB_SET: Final = "jobset.sigs.k8s.io/jobset-name"
"""The label of pods whose Job belongs to a JobSet."""


class Recreation(Enum):
    """When an owner creates another pod."""

    NEVER = "Never"
    """No controller manages the pod, or only its node does (a static pod)."""
    WHILE_TERMINATING = "WhileTerminating"
    """Immediately: terminating pods do not count."""
    AFTER_DELETION = "AfterDeletion"
    """When the pod is deleted: another has the same name, or there is one for each node."""
    IN_ORDER = "InOrder"
    """When the pod is deleted, and the pods before it are ready (statefulsets.py)."""
    ON_ITS_NODE = "OnItsNode"
    """When the pod is deleted, and only for the same node."""
    AS_JOB = "AsJob"
    """After a back-off, unless the Job fails (`domain/workloads/jobs`)."""
    UNKNOWN = "Unknown"


class Expectation(Enum):
    """What a controller that is not part of Kubernetes is expected to do about an evicted pod."""

    NONE = ""
    RECREATES = "Recreates"
    RECREATES_GROUP = "RecreatesGroup"
    """It deletes and recreates all pods of the group."""
    RECREATES_BY_POLICY = "RecreatesByPolicy"
    """It recreates the pod, unless a policy of the object prevents it."""
    RETRIES_BY_STRATEGY = "RetriesByStrategy"
    """It lets a step fail, and creates another pod only with a retry strategy."""
    RESTARTS_JOBS = "RestartsJobs"
    """It recreates all its Jobs when one of them fails, as often as its failure policy allows."""
    CREATES_NO_PODS = "CreatesNoPods"
    """It admits or groups pods that others create."""


class OwnerBehavior(msgspec.Struct, frozen=True):
    """What is known about the owner of a pod."""

    recreation: Recreation
    expectation: Expectation = Expectation.NONE


_STATIC: Final = OwnerBehavior(Recreation.NEVER)
_UNKNOWN: Final = OwnerBehavior(Recreation.UNKNOWN)
_RECREATES: Final = OwnerBehavior(Recreation.AFTER_DELETION, Expectation.RECREATES)
_NO_PODS: Final = OwnerBehavior(Recreation.UNKNOWN, Expectation.CREATES_NO_PODS)
_KUBEFLOW: Final = ("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")

BEHAVIORS: Final[Mapping[tuple[str, str], OwnerBehavior]] = {
    ("", "Node"): _STATIC,
    ("", "ReplicationController"): OwnerBehavior(Recreation.WHILE_TERMINATING),
    ("apps", "ReplicaSet"): OwnerBehavior(Recreation.WHILE_TERMINATING),
    ("apps", "StatefulSet"): OwnerBehavior(Recreation.IN_ORDER),
    ("apps", "DaemonSet"): OwnerBehavior(Recreation.ON_ITS_NODE),
    ("batch", "Job"): OwnerBehavior(Recreation.AS_JOB),
    ("ray.io", "RayCluster"): _RECREATES,
    ("ray.io", "RayJob"): _RECREATES,
    ("ray.io", "RayService"): _RECREATES,
    **{("kubeflow.org", kind): _RECREATES for kind in _KUBEFLOW},
    ("batch.volcano.sh", "Job"): OwnerBehavior(
        Recreation.AFTER_DELETION, Expectation.RECREATES_BY_POLICY
    ),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): OwnerBehavior(
        Recreation.AFTER_DELETION, Expectation.RECREATES_GROUP
    ),
    ("jobset.x-k8s.io", "JobSet"): OwnerBehavior(Recreation.UNKNOWN, Expectation.RESTARTS_JOBS),
    ("argoproj.io", "Workflow"): OwnerBehavior(Recreation.UNKNOWN, Expectation.RETRIES_BY_STRATEGY),
    ("kueue.x-k8s.io", "Workload"): _NO_PODS,
    ("scheduling.volcano.sh", "PodGroup"): _NO_PODS,
}
"""By API group and kind of the owner."""


def behavior_of(pod: Pod) -> OwnerBehavior:
    """Return what the owner of a pod does when it is evicted."""
    owner = pod.owner
    if owner is None:
        return _STATIC
    known = _behavior(owner.api_version, owner.kind)
    if known.recreation is Recreation.IN_ORDER and LEADER_WORKER_SET in pod.metadata.labels:
        return OwnerBehavior(known.recreation, Expectation.RECREATES_GROUP)
    return known


@cache
def _behavior(api_version: str, kind: str) -> OwnerBehavior:
    # Plans ask several times for each of thousands of pods.
    return BEHAVIORS.get((api_version.rpartition("/")[0], kind), _UNKNOWN)


def kind_text(owner: OwnerReference) -> str:
    """Return the kind of an owner with its group, such as `example.com/Foo`."""
    group = owner.api_version.rpartition("/")[0]
    return f"{group}/{owner.kind}" if group else owner.kind


# -- why a pod is not recreated -------------------------------------------------------------------


class JobEnded(msgspec.Struct, frozen=True):
    """Its Job creates no more pods."""

    job: str
    end: JobEnd
    failed: int = 0
    limit: int = 0
    job_set: str = ""
    """The JobSet that the Job belongs to."""


class IndexFailed(msgspec.Struct, frozen=True):
    """The index of the pod has failed."""

    job: str
    index: int
    limit: int


class WaitsForPod(msgspec.Struct, frozen=True):
    """Its StatefulSet waits until a pod with a lower ordinal is ready."""

    stateful_set: str
    pod: str


class NotNeeded(msgspec.Struct, frozen=True):
    """Its owner wants fewer pods."""

    owner: str


class NodeExcluded(msgspec.Struct, frozen=True):
    """Its DaemonSet creates no pod for its node."""

    node: str
    taint: str = ""
    """The taint that it does not tolerate; empty: the node does not exist."""


Obstacle = JobEnded | IndexFailed | WaitsForPod | NotNeeded | NodeExcluded
"""Why an owner does not create another pod."""


def excluded(pod: Pod, name: str, node: Node | None) -> NodeExcluded | None:
    """Return why a DaemonSet creates no pod for a node; None if it does."""
    if node is None:
        return NodeExcluded(name)
    taint = should_run(pod, node).taint
    return NodeExcluded(name, f"{taint.key}:{taint.effect}") if taint is not None else None

"""The kinds that the controllers of workloads share, and the indexes of their caches.

Controllers that read the same kind as the same type share a cache. The types are in
domain/workloads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from sully.client.informers.informer import Informer
from sully.client.objects import key_of
from sully.client.transport import Key, Kind
from sully.controllers.framework.controller import NAMESPACE_TERMINATING, has_status_cause
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.daemonsets import DaemonSet
from sully.domain.workloads.history import ControllerRevision
from sully.domain.workloads.jobs.objects import Job
from sully.domain.workloads.statefulsets import StatefulSet
from sully.domain.workloads.workloads import (
    Budget,
    Deployment,
    ReplicaSet,
    Workload,
    selector_of,
)
from sully.machinery.errors import ApiError
from sully.machinery.meta import ObjectMeta

REPLICA_SETS: Kind[ReplicaSet] = Kind("apps", "v1", "replicasets", "ReplicaSet", ReplicaSet)
DEPLOYMENTS: Kind[Deployment] = Kind("apps", "v1", "deployments", "Deployment", Deployment)
JOBS: Kind[Job] = Kind("batch", "v1", "jobs", "Job", Job)
STATEFUL_SETS: Kind[StatefulSet] = Kind("apps", "v1", "statefulsets", "StatefulSet", StatefulSet)
DAEMON_SETS: Kind[DaemonSet] = Kind("apps", "v1", "daemonsets", "DaemonSet", DaemonSet)
REVISIONS: Kind[ControllerRevision] = Kind(
    "apps", "v1", "controllerrevisions", "ControllerRevision", ControllerRevision
)
CLAIMS: Kind[dict[str, Any]] = Kind(
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", dict
)


class Pods:
    """The cache of pods, indexed by controller and by namespace."""

    def __init__(self, informer: Informer[Pod]) -> None:
        self.informer = informer
        informer.add_index("controller", by_controller)
        informer.add_index("namespace", lambda pod: (pod.metadata.namespace,))

    def controlled_by(self, uid: str) -> list[Pod]:
        """Return the pods of a controller, in order of their names."""
        return self.informer.by_index("controller", uid)

    def uncontrolled(self, namespace: str) -> list[Pod]:
        """Return the orphaned pods of a namespace."""
        return self.informer.by_index("controller", orphans(namespace))

    def in_namespace(self, namespace: str) -> list[Pod]:
        """Return all pods of a namespace."""
        return self.informer.by_index("namespace", namespace)


def by_controller(obj: Pod | Workload) -> Iterable[str]:
    """Index objects by the uid of their controller; orphans by `orphans`."""
    controller = obj.metadata.controller()
    return (orphans(obj.metadata.namespace) if controller is None else controller.uid,)


def orphans(namespace: str) -> str:
    """Return the index value of the orphans of a namespace."""
    return f"orphans in {namespace}"


SelectorT = TypeVar(
    "SelectorT", bound=ReplicaSet | Deployment | StatefulSet | DaemonSet | Job | Budget
)


class SelectorIndex(Generic[SelectorT]):
    """Objects with a label selector, looked up by the labels that they select."""

    def __init__(self, informer: Informer[SelectorT], index: str) -> None:
        self._informer = informer
        self._index = index
        informer.add_index(index, lambda obj: (obj.metadata.namespace,))

    def keys(self, namespace: str, labels: Mapping[str, str]) -> Iterator[Key]:
        """Yield the objects of a namespace that select these labels."""
        for obj in self._informer.by_index(self._index, namespace):
            if selector_of(obj).matches(labels):
                yield key_of(obj)


def controller_ref(kind: Kind[Any], metadata: ObjectMeta) -> dict[str, Any]:
    """Return the owner reference to a controller."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": metadata.name,
        "uid": metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_namespace_terminating(error: ApiError) -> bool:
    """Report whether an object cannot be created because its namespace is terminating."""
    return has_status_cause(error, NAMESPACE_TERMINATING)

"""The kinds that the controllers of pods share, and pods as they are looked up.

A cache is shared by those who read the same kind as the same type, so both stand here. What the
types are is domain/workloads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, Literal, Protocol, TypeVar

from sully.client.events import Reference
from sully.client.informers.informer import Informer
from sully.client.objects import key_of
from sully.client.transport import Key, Kind
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.workloads import Budget, Deployment, ReplicaSet, selector_of
from sully.machinery.errors import ApiError
from sully.machinery.meta import ObjectMeta

PODS: Kind[Pod] = Kind("", "v1", "pods", "Pod", Pod)
"""Pods as all controllers of a process read them, so that they share one cache."""
REPLICA_SETS: Kind[ReplicaSet] = Kind("apps", "v1", "replicasets", "ReplicaSet", ReplicaSet)
DEPLOYMENTS: Kind[Deployment] = Kind("apps", "v1", "deployments", "Deployment", Deployment)
BUDGETS: Kind[Budget] = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", Budget)


class Recorder(Protocol):
    """Records events, as `EventRecorder` does."""

    def event(
        self, about: Reference, type_: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        """Say what happened to an object."""
        ...


class Pods:
    """The cache of pods, by who controls them and by namespace."""

    def __init__(self, informer: Informer[Pod]) -> None:
        self.informer = informer
        informer.add_index("controller", by_controller)
        informer.add_index("namespace", lambda pod: (pod.metadata.namespace,))

    def controlled_by(self, uid: str) -> list[Pod]:
        """Return the pods that an owner manages, in order of their names."""
        return self.informer.by_index("controller", uid)

    def uncontrolled(self, namespace: str) -> list[Pod]:
        """Return the orphaned pods of a namespace."""
        return self.informer.by_index("controller", orphans(namespace))

    def in_namespace(self, namespace: str) -> list[Pod]:
        """Return all pods of a namespace."""
        return self.informer.by_index("namespace", namespace)


def by_controller(owned: Pod | ReplicaSet) -> Iterable[str]:
    """Index objects by the uid of their controller; orphans by `orphans`."""
    controller = owned.metadata.controller()
    return (orphans(owned.metadata.namespace) if controller is None else controller.uid,)


def orphans(namespace: str) -> str:
    """Return the index value of the orphans of a namespace."""
    return f"orphans in {namespace}"


SelectingT = TypeVar("SelectingT", bound=ReplicaSet | Deployment | Budget)


class Selecting(Generic[SelectingT]):
    """Objects that choose others of their namespace by labels, looked up from what they choose."""

    def __init__(self, informer: Informer[SelectingT], index: str) -> None:
        self._informer = informer
        self._index = index
        informer.add_index(index, lambda obj: (obj.metadata.namespace,))

    def keys(self, namespace: str, labels: Mapping[str, str]) -> Iterator[Key]:
        """Yield which of them choose something with these labels."""
        for selecting in self._informer.by_index(self._index, namespace):
            if selector_of(selecting).matches(labels):
                yield key_of(selecting)


def controller_ref(kind: Kind[Any], metadata: ObjectMeta) -> dict[str, Any]:
    """Return how an object that is managed names the one that manages it."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": metadata.name,
        "uid": metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_terminating(error: ApiError) -> bool:
    """Report whether nothing can be created because the namespace is on its way out."""
    causes = (error.details or {}).get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)

"""The table of constraints on a real control plane: kube-scheduler decides as we predict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import manifests
from e2e.raw import Raw
from kube.control_plane import poll
from kube.process import Foreign
from scheduler.constraint_cases import (
    BOUND,
    CASES,
    NAMESPACE,
    PREEMPTED,
    Case,
    Obj,
    Preempted,
    pod,
)

pytestmark = [pytest.mark.e2e, pytest.mark.kube]

PATHS = {
    "Node": "/api/v1/nodes",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "Pod": "/api/v1/namespaces/{}/pods",
}
OTHER = "other"
NOT_READY = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]
"""The nodes have no kubelet."""


class Cluster:
    """A control plane whose objects are those of one case."""

    def __init__(self, admin: Raw) -> None:
        self._admin = admin

    def get(self, path: str) -> Any:
        return self._admin.request("GET", path).json()

    def path(self, obj: Obj) -> str:
        collection = PATHS[obj["kind"]].format(obj["metadata"].get("namespace", ""))
        return f"{collection}/{obj['metadata']['name']}"

    def create(self, obj: Obj) -> None:
        collection = self.path(obj).rpartition("/")[0]
        answer = self._admin.request("POST", collection, as_written(obj))
        assert answer.code == 201, answer.body
        if "deletionTimestamp" in obj["metadata"]:
            self._admin.request("DELETE", self.path(obj))

    def prioritize(self, objects: Iterable[Obj]) -> None:
        """Create the priority classes of pods, unless they exist."""
        for obj in objects:
            classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
            self._admin.request("POST", classes, priority_class(obj))

    def preempted(self, obj: Obj) -> tuple[str, tuple[str, ...]]:
        """Return the node that a pod is nominated for, and the pods that are deleted for it."""
        nominated = self.get(self.path(obj))["status"].get("nominatedNodeName", "")
        pods = self.get(PATHS["Pod"].format(NAMESPACE))["items"]
        gone = (x["metadata"] for x in pods if "deletionTimestamp" in x["metadata"])
        return nominated, tuple(sorted(f"{x['namespace']}/{x['name']}" for x in gone))

    def relabel(self, namespace: str, labels: Obj) -> None:
        """Create a namespace, or give it other labels: deleting one takes long."""
        manifest = {"metadata": {"name": namespace, "labels": labels}}
        self._admin.request("POST", "/api/v1/namespaces", manifest)
        expected = {"metadata": {"labels": {"team": None, **labels}}}
        path, patch = f"/api/v1/namespaces/{namespace}", "application/merge-patch+json"
        self._admin.request("PATCH", path, expected, patch)
        account = f"{path}/serviceaccounts/default"
        poll(lambda: self._admin.request("GET", account).code == 200)

    def settle(self, obj: Obj) -> None:
        """Wait until controllers have done what they do with an object."""
        if obj["kind"] in ("PersistentVolume", "PersistentVolumeClaim"):
            phase = obj["status"]["phase"]
            poll(lambda: self.get(self.path(obj))["status"]["phase"] == phase)

    def decision(self, obj: Obj) -> tuple[str, str]:
        """Wait for what the scheduler does with a pod: its node, or its message."""

        def decided() -> bool:
            return any(self._decision(obj))

        poll(decided)
        return self._decision(obj)

    def _decision(self, obj: Obj) -> tuple[str, str]:
        result = self.get(self.path(obj))
        conditions = result["status"].get("conditions", ())
        messages = (x.get("message", "") for x in conditions if x["type"] == "PodScheduled")
        return result["spec"].get("nodeName", ""), next(messages, "")

    def clear(self) -> None:
        for namespace in (NAMESPACE, OTHER):
            for kind in ("Pod", "PersistentVolumeClaim"):
                self._delete_all(PATHS[kind].format(namespace))
        for kind in ("PersistentVolume", "StorageClass", "Node"):
            self._delete_all(PATHS[kind])

    def _delete_all(self, path: str) -> None:
        self._admin.request("DELETE", f"{path}?gracePeriodSeconds=0")
        poll(lambda: not self.get(path)["items"])


def priority_class(obj: Obj) -> Obj:
    """Return the class for the priority of a pod."""
    value, policy = obj["spec"]["priority"], obj["spec"].get("preemptionPolicy", "")
    more = {"preemptionPolicy": policy} if policy else {}
    return manifests.body("PriorityClass", f"p{value}{policy.lower()}") | {"value": value, **more}


def as_written(obj: Obj) -> Obj:
    """Return an object without what controllers write."""
    metadata = {k: v for k, v in obj["metadata"].items() if k != "deletionTimestamp"}
    metadata["annotations"] = {
        k: v for k, v in metadata.get("annotations", {}).items() if k != BOUND
    }
    if obj["kind"] == "Pod":
        spec = obj["spec"] | {"tolerations": [*obj["spec"].get("tolerations", ()), *NOT_READY]}
        if "priority" in spec:
            # The number comes from a class.
            spec["priorityClassName"] = priority_class(obj)["metadata"]["name"]
            spec = {k: v for k, v in spec.items() if k not in ("priority", "preemptionPolicy")}
        return obj | {"metadata": metadata, "spec": spec}
    if obj["kind"] == "Node":
        return obj | {"status": obj["status"] | {"capacity": obj["status"]["allocatable"]}}
    return obj | {"metadata": metadata}


@contextmanager
def cluster_of(case: Case, there: Foreign) -> Iterator[Cluster]:
    cluster = Cluster(there.admin())
    cluster.clear()
    labels: dict[str, Obj] = {NAMESPACE: {}, OTHER: {}}
    labels |= {
        x["metadata"]["name"]: x["metadata"]["labels"]
        for x in case.objects
        if x["kind"] == "Namespace"
    }
    for namespace, own in labels.items():
        cluster.relabel(namespace, own)
    objects = [*case.nodes, *(x for x in case.objects if x["kind"] != "Namespace")]
    for obj in objects:
        cluster.create(obj)
    for obj in objects:
        cluster.settle(obj)
    # When it has been refused by all nodes, the scheduler has seen them.
    witness = pod("witness", nodeSelector={"no": "node"})
    cluster.create(witness)
    seen = f"0/{len(case.nodes)} nodes are available"
    poll(lambda: cluster.decision(witness)[1].startswith(seen))
    try:
        yield cluster
    finally:
        cluster.clear()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_kube_scheduler_decides_the_same(case: Case, kubernetes: Foreign) -> None:
    with cluster_of(case, kubernetes) as cluster:
        cluster.create(case.pod)
        node, message = cluster.decision(case.pod)

    assert (node in case.fits, message) == (bool(case.fits), case.message)


@pytest.mark.parametrize(("objects", "want"), PREEMPTED.values(), ids=PREEMPTED.keys())
def test_kube_scheduler_preempts_a_candidate(
    objects: tuple[Obj, ...], want: Preempted, kubernetes: Foreign
) -> None:
    incoming, *others = objects
    with cluster_of(Case(incoming), kubernetes) as cluster:
        cluster.prioritize(objects)
        for other in others:
            cluster.create(other)
        cluster.create(incoming)
        cluster.decision(incoming)
        if want:
            poll(lambda: all(cluster.preempted(incoming)))
        result = cluster.preempted(incoming)

    assert result in (want or (("", ()),))

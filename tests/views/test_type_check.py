"""What does not fit in an object of a file, named by its field."""

from __future__ import annotations

from typing import Any

import pytest

import manifests
from sully.views.snapshot.type_check import type_error

V1, HUB = "v1", "resource.k8s.io/v1"
CLUSTERS = "cluster.open-cluster-management.io"


def pod(**spec: Any) -> dict[str, Any]:
    return manifests.pod("p") | {"spec": manifests.pod_spec(**spec)}


def resources(**amounts: Any) -> dict[str, Any]:
    return pod(containers=[{"name": "c", "resources": {"requests": amounts}}])


def other(kind: str, version: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "o"}, **more}


FOUND = {
    "nothing in a list": (pod(containers=[None]), "spec.containers[0]: an object", "null"),
    "text for an object": (pod(containers=["x"]), "spec.containers[0]: an object", "'x'"),
    "an object for a list": (pod(containers={}), "spec.containers: a list", "an object"),
    "a list for an object": (other("Pod", V1, spec=[]), "spec: an object", "a list"),
    "a number for text": (pod(nodeName=3), "spec.nodeName: text", "3"),
    "half a character": (pod(nodeName="\ud800"), "spec.nodeName: text", r"'\ud800'"),
    "text for a number": (pod(priority="3"), "spec.priority: a whole number", "'3'"),
    "true for a number": (pod(priority=True), "spec.priority: a whole number", "true"),
    "text for true or false": (pod(hostNetwork="no"), "spec.hostNetwork: true or false", "'no'"),
    "no amount": (
        resources(cpu="much"),
        "spec.containers[0].resources.requests.cpu: an amount such as 2, 500m or 16Gi",
        "'much'",
    ),
    "no time": (
        other("DeviceTaintRule", HUB, spec={"taint": {"key": "k", "timeAdded": "noon"}}),
        "spec.taint.timeAdded: a time such as 2026-01-31T12:00:00Z",
        "'noon'",
    ),
    "null among labels": (
        {**pod(), "metadata": {"name": "p", "labels": {"a": None}}},
        "metadata.labels.a: text",
        "null",
    ),
    "an older version, in its own shape": (
        other("ResourceSlice", "resource.k8s.io/v1beta1", spec={"devices": [{"basic": 3}]}),
        "spec.devices[0].basic: an object",
        "3",
    ),
    "a patch as a custom resource": (
        other("ResourceSlicePatch", "sully.dev/v1alpha1", spec={"devices": []}),
        "spec.devices: an object",
        "a list",
    ),
    "a cluster": (
        other("ManagedCluster", f"{CLUSTERS}/v1", spec={"taints": {"key": "k"}}),
        "spec.taints: a list",
        "an object",
    ),
    "a version that is unknown is read as ours": (
        other("ManagedCluster", f"{CLUSTERS}/v9", spec=3),
        "spec: an object",
        "3",
    ),
}


@pytest.mark.parametrize(("obj", "expected", "actual"), FOUND.values(), ids=FOUND)
def test_what_does_not_fit(obj: dict[str, Any], expected: str, actual: str) -> None:
    assert type_error(obj, strict=False) == f"{expected} is expected, not {actual}"


FITTING = {
    "a pod": pod(priority=3, nodeName="n"),
    "an amount as a number": resources(cpu=2, memory="16Gi"),
    "null for nothing": pod(nodeName=None, tolerations=None),
    "a field that we do not know": pod(novelty=3),
    "a kind that does not count": other("ConfigMap", V1, data=3),
}


@pytest.mark.parametrize("obj", FITTING.values(), ids=FITTING)
def test_what_fits(obj: dict[str, Any]) -> None:
    assert type_error(obj, strict=False) == ""


STRICT = {
    "null for a list": (pod(tolerations=None), "spec.tolerations: a list is expected, not null"),
    "a number for an amount": (
        resources(cpu=2),
        'spec.containers[0].resources.requests.cpu: text such as "2" is expected, not 2',
    ),
    "what must be there": (pod(containers=[{}]), "spec.containers[0].name: it is missing"),
}


@pytest.mark.parametrize(("obj", "want"), STRICT.values(), ids=STRICT)
def test_strict_errors(obj: dict[str, Any], want: str) -> None:
    assert type_error(obj, strict=False) == ""
    assert type_error(obj, strict=True) == want

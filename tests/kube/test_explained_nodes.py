"""`sully explain pod` of pods whose node is fixed or cordoned, where Kubernetes schedules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import manifests
from e2e.raw import Raw
from e2e.watching import until
from kube.process import Foreign
from sully.testing.remote import simulated_nodes

Obj = dict[str, Any]
SPACE = "explained"
PODS = f"/api/v1/namespaces/{SPACE}/pods"
NODES = "/api/v1/nodes"
MERGE = "application/merge-patch+json"
FLAGS = ("--nodes", "2", "--devices", "1", "--driver", "gpu.example.com", "--name-prefix", "fixed")


@pytest.fixture
def admin(there: Foreign) -> Iterator[Raw]:
    """Return the admin's access, with a namespace and two nodes."""
    admin = there.admin()
    admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": SPACE}})
    until(admin, f"/api/v1/namespaces/{SPACE}/serviceaccounts", lambda result: "default" in result)
    with simulated_nodes(there.kubeconfig, *FLAGS):
        # Kubernetes taints a new node until its controller has seen that it is ready.
        until(admin, NODES, lambda nodes: not any(x["spec"].get("taints") for x in nodes.values()))
        yield admin
        admin.request("DELETE", PODS, {"gracePeriodSeconds": 0})
        until(admin, PODS, lambda pods: not pods)


def _on(node: str, **more: Any) -> Obj:
    """Return the spec of a pod as a DaemonSet creates it."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return {"affinity": {"nodeAffinity": required}, **more}


def _refused(admin: Raw, name: str, spec: Obj, cpu: str = "1") -> str:
    """Create a pod that the scheduler cannot schedule; return its message."""
    body = manifests.pod(name, manifests.pod_spec(resources={"requests": {"cpu": cpu}}, **spec))
    assert admin.request("POST", PODS, body).code == 201
    pods = until(admin, PODS, lambda pods: bool(_message(pods[name])))
    return _message(pods[name])


def _message(pod: Obj) -> str:
    conditions = pod["status"].get("conditions") or ()
    messages = (x.get("message", "") for x in conditions if x["type"] == "PodScheduled")
    return next(messages, "")


def _explained(there: Foreign, name: str) -> Obj:
    done = there.sully("explain", "pod", name, "-n", SPACE, "-o", "json")
    assert done.returncode == 0, done.stderr
    document: Obj = json.loads(done.stdout)
    return document


def _nodes(admin: Raw) -> list[str]:
    items = admin.request("GET", NODES).json()["items"]
    return sorted(item["metadata"]["name"] for item in items)


def test_a_node_that_is_fixed_and_too_small(there: Foreign, admin: Raw) -> None:
    first, *_ = _nodes(admin)
    _refused(admin, "daemon", _on(first), cpu="9999")

    result = _explained(there, "daemon")

    assert result["cause"] == "NodesUnsuitable"
    assert result["because"] == [f"Node/{first}"]
    assert result["summary"][0].endswith(f"node {first} has insufficient cpu.")
    assert f"Only node {first} counts for it: its affinity names it." in result["summary"]


def test_a_node_that_is_cordoned(there: Foreign, admin: Raw) -> None:
    first, *_ = _nodes(admin)
    cordon = {"spec": {"unschedulable": True}}
    assert admin.request("PATCH", f"{NODES}/{first}", cordon, MERGE).code == 200
    _refused(admin, "fixed", _on(first))

    result = _explained(there, "fixed")

    assert result["cause"] == "NodesUnsuitable"
    assert result["summary"][0].endswith(f"node {first} is cordoned.")
    assert result["remedies"] == [
        f"Uncordon node {first} (kubectl uncordon {first}). The pod would then be scheduled to"
        f" node {first}."
    ]
    # What it suggests helps.
    free = {"spec": {"unschedulable": False}}
    assert admin.request("PATCH", f"{NODES}/{first}", free, MERGE).code == 200
    pods = until(admin, PODS, lambda pods: bool(pods["fixed"]["spec"].get("nodeName")))
    assert pods["fixed"]["spec"]["nodeName"] == first

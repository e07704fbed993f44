"""The agent of a managed cluster, taken over: it wants work, rights, or other namespaces."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import manifests
from hostile.target import Caller, Target
from sully.testing.patience import PATIENCE

pytestmark = pytest.mark.slow

Obj = dict[str, Any]
CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
POLICIES = "/apis/sully.dev/v1alpha1/clustertaintpolicies"
MARKS = "sully.dev/policy-taints"


def _agent(target: Target, cluster: str) -> Caller:
    """Register and accept a cluster; return its agent, once it has its rights."""
    target.admin.post(CLUSTERS, manifests.cluster(cluster, accepted=True)).ok()
    prefix = "system:open-cluster-management"
    agent = target.user(f"{prefix}:{cluster}:agent", f"{prefix}:{cluster}", prefix)
    _eventually(lambda: agent.get(f"{CLUSTERS}/{cluster}").code == 200)
    return agent


def _eventually(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def _taints(target: Target, cluster: str) -> set[str]:
    result = target.admin.get(f"{CLUSTERS}/{cluster}").ok()["spec"].get("taints") or []
    return {taint["key"] for taint in result}


def _change(agent: Caller, cluster: str, change: Callable[[Obj], None]) -> int:
    """Read the cluster, change it and write it back; again if others wrote in between."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        whole = agent.get(f"{CLUSTERS}/{cluster}").ok()
        change(whole)
        code = agent.put(f"{CLUSTERS}/{cluster}", whole).code
        if code != 409:
            return code
    raise AssertionError("the cluster keeps changing")


@pytest.mark.parametrize("name", ["kube-system", "default", "team-a"])
def test_cluster_is_named_like_a_namespace(target: Target, name: str) -> None:
    target.admin.post("/api/v1/namespaces", {"metadata": {"name": "team-a"}})
    body = {"metadata": {"name": name}, "spec": {"hubAcceptsClient": True}}

    refused = target.admin.post(CLUSTERS, body)
    body["spec"] = {}
    target.admin.post(CLUSTERS, body).ok()
    accepted = target.admin.merge(f"{CLUSTERS}/{name}", {"spec": {"hubAcceptsClient": True}})

    assert (refused.code, accepted.code) == (403, 403)
    assert "exists and is not the namespace of cluster" in accepted.json["message"]
    bindings = target.admin.get(f"{RBAC}/namespaces/{name}/rolebindings").ok()["items"]
    assert [
        binding for binding in bindings if "managedcluster" in binding["metadata"]["name"]
    ] == []


def test_removes_the_taint_of_a_policy(target: Target) -> None:
    agent = _agent(target, "tainted")
    rule = {
        "condition": {"type": "Hot", "status": "True"},
        "taint": {"key": "hot", "effect": "NoSelect"},
    }
    spec = {"clusterSelector": {"matchLabels": {"env": "prod"}}, "rules": [rule]}
    labels = {"metadata": {"labels": {"env": "prod"}}}
    target.admin.merge(f"{CLUSTERS}/tainted", labels).ok()
    target.admin.post(POLICIES, {"metadata": {"name": "hot"}, "spec": spec}).ok()
    hot = {
        "type": "Hot",
        "status": "True",
        "reason": "Test",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    result = target.admin.get(f"{CLUSTERS}/tainted").ok()["status"].get("conditions") or []
    status = {"status": {"conditions": [*result, hot]}}
    target.admin.merge(f"{CLUSTERS}/tainted/status", status).ok()
    _eventually(lambda: "hot" in _taints(target, "tainted"))

    def without(whole: Obj) -> None:
        left = [taint for taint in whole["spec"]["taints"] if taint["key"] != "hot"]
        whole["spec"]["taints"] = left
        whole["metadata"]["annotations"].pop(MARKS)

    def unselected(whole: Obj) -> None:
        whole["metadata"]["labels"].pop("env")

    assert _change(agent, "tainted", without) == 403
    assert _change(agent, "tainted", unselected) == 403
    assert "hot" in _taints(target, "tainted")


def test_gives_the_taint_of_an_administrator_to_the_policies(target: Target) -> None:
    """The controller of policies removes what is marked as theirs and no policy wants."""
    agent = _agent(target, "quarantined")

    def quarantine(whole: Obj) -> None:
        taint = {"key": "quarantine", "effect": "NoSelect"}
        whole["spec"]["taints"] = [*(whole["spec"].get("taints") or []), taint]

    def mark(whole: Obj) -> None:
        annotations = whole["metadata"].get("annotations") or {}
        whole["metadata"]["annotations"] = {**annotations, MARKS: "quarantine:NoSelect"}

    def remove(whole: Obj) -> None:
        taints = whole["spec"]["taints"]
        whole["spec"]["taints"] = [taint for taint in taints if taint["key"] != "quarantine"]

    assert _change(target.admin, "quarantined", quarantine) == 200
    assert (_change(agent, "quarantined", mark), _change(agent, "quarantined", remove)) == (
        200,
        403,
    )

    body = target.admin.get(f"{CLUSTERS}/quarantined").ok()
    assert "quarantine" not in body["metadata"].get("annotations", {}).get(MARKS, "")
    assert "quarantine" in _taints(target, "quarantined")


def test_is_reachable_for_years(target: Target) -> None:
    """A cluster counts as unreachable when it has not renewed its lease for five durations."""
    agent = _agent(target, "silent")

    def extend(whole: Obj) -> None:
        whole["spec"]["leaseDurationSeconds"] = 100_000_000

    assert _change(agent, "silent", extend) == 403
    assert _change(target.admin, "silent", extend) == 200


def test_keeps_its_rights_when_the_cluster_is_deleted(target: Target) -> None:
    """The finalizer holds the cluster until the rights of its agent are gone."""
    agent = _agent(target, "terminating")
    _eventually(
        lambda: bool(target.admin.get(f"{CLUSTERS}/terminating").ok()["metadata"].get("finalizers"))
    )

    assert _change(agent, "terminating", lambda whole: whole["metadata"].pop("finalizers")) == 403

    target.admin.delete(f"{CLUSTERS}/terminating")
    _eventually(lambda: target.admin.get(f"{CLUSTERS}/terminating").code == 404)
    assert agent.get(f"{CLUSTERS}/terminating").code == 403


def test_keeps_its_cluster_from_being_deleted(target: Target) -> None:
    agent = _agent(target, "held")

    def hold(whole: Obj) -> None:
        finalizers = whole["metadata"].get("finalizers") or []
        whole["metadata"]["finalizers"] = [*finalizers, "example.com/mine"]

    assert _change(agent, "held", hold) == 403
    assert _change(target.admin, "held", hold) == 200


def test_has_its_cluster_deleted_as_garbage(target: Target) -> None:
    """Its role has no right to delete it: taints and history of its cluster would be gone."""
    agent = _agent(target, "disowned")
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": "gone", "uid": "u-1"}

    def disown(whole: Obj) -> None:
        whole["metadata"]["ownerReferences"] = [owner]

    assert _change(agent, "disowned", disown) == 403


def test_keeps_its_rights_when_the_cluster_is_denied(target: Target) -> None:
    """Its status shows that it was never accepted; rights are taken by what was given."""
    agent = _agent(target, "denied")
    whole = agent.get(f"{CLUSTERS}/denied").ok()
    conditions = [
        condition
        for condition in (whole.get("status") or {}).get("conditions") or []
        if condition["type"] != "HubAcceptedManagedCluster"
    ]
    agent.merge(f"{CLUSTERS}/denied/status", {"status": {"conditions": conditions}})

    target.admin.merge(f"{CLUSTERS}/denied", {"spec": {"hubAcceptsClient": False}}).ok()

    lease = "/apis/coordination.k8s.io/v1/namespaces/denied/leases"
    _eventually(lambda: agent.get(lease).code == 403)
    _eventually(lambda: _change(agent, "denied", lambda _: None) == 403)

"""Times at the end of the calendar, from whoever may write one: nothing may be added to them.

A controller that fails on such an object fails for everybody, and again after each restart.
"""

from __future__ import annotations

from typing import Any

import pytest

import manifests
from hostile.target import Caller, Target, eventually
from manifests import claim, gpus, slice_

pytestmark = pytest.mark.slow

Obj = dict[str, Any]
END = "9999-12-31T23:59:59Z"
MICRO_END = "9999-12-31T23:59:59.999999Z"
MOST_SECONDS = 2**63 - 1
RESOURCE = "/apis/resource.k8s.io/v1"
SULLY = "/apis/sully.dev/v1alpha1"
CLUSTER = "/apis/cluster.open-cluster-management.io"
CLUSTERS = f"{CLUSTER}/v1/managedclusters"
DRIVER = "times.example.com"


@pytest.fixture(scope="module")
def node(target: Target) -> Caller:
    """Return a node with devices, whose agent is hostile, beside one with healthy devices."""
    body = manifests.device_class(DRIVER, f"device.driver == '{DRIVER}'")
    target.admin.post(f"{RESOURCE}/deviceclasses", body).ok()
    taint = {"key": "late", "effect": "NoExecute", "timeAdded": END}
    for name, more in (("healthy", {}), ("late", {"taints": [taint]})):
        kubelet = target.node(name)
        kubelet.post("/api/v1/nodes", {"metadata": {"name": name}}).ok()
        allocatable = {"pods": "110", "cpu": "8", "memory": "8Gi"}
        kubelet.merge(f"/api/v1/nodes/{name}/status", {"status": {"allocatable": allocatable}}).ok()
        devices = (gpu | more for gpu in gpus(2))
        body = slice_(name, name, *devices, driver=DRIVER, nodeName=name)
        kubelet.post(f"{RESOURCE}/resourceslices", body).ok()
    return target.node("late")


@pytest.mark.usefixtures("node")
def test_taint_that_begins_at_the_end_of_time(target: Target, namespace: str) -> None:
    """The scheduler asks when tolerations of such a taint expire, for pods of others."""
    toleration = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    body = claim("gpu", DRIVER, tolerations=[toleration])
    target.admin.post(f"{RESOURCE}/namespaces/{namespace}/resourceclaims", body).ok()
    spec = manifests.pod_spec(resourceClaims=[{"name": "c", "resourceClaimName": "gpu"}])
    pods = f"/api/v1/namespaces/{namespace}/pods"
    target.admin.post(pods, manifests.pod("uses", spec)).ok()

    node = eventually(lambda: target.admin.get(f"{pods}/uses").ok()["spec"].get("nodeName"))

    assert node == "healthy"


def _policy(name: str, source: Obj) -> Obj:
    spec = {
        "mode": "Enforce",
        "selector": {"driver": DRIVER},
        "taint": {"key": f"example.com/{name}"},
        "steps": [{"effect": "NoSchedule"}],
        "sources": [{"name": "source", **source}],
        "holdFor": "1ms",
        "clearAfter": "10m",
        "flaps": {"count": 3, "within": "1h"},
    }
    return manifests.body("DeviceTaintPolicy", name, spec)


def _rules(target: Target, key: str) -> list[Obj]:
    rules = target.admin.get(f"{RESOURCE}/devicetaintrules").ok()["items"]
    return [rule for rule in rules if rule["spec"]["taint"]["key"] == key]


def test_health_that_is_reported_at_the_end_of_time(target: Target, node: Caller) -> None:
    """The agent of one node may report the health of its devices."""
    reason = {"key": "xid", "severity": "Critical", "since": MICRO_END}
    target.admin.post(f"{SULLY}/devicetaintpolicies", _policy("health", {"deviceHealth": {}})).ok()

    def report(name: str, time: str) -> None:
        device: Obj = {"device": f"{DRIVER}/{name}/gpu-0", "status": "Unhealthy", "since": time}
        device["reasons"] = [reason | {"since": time}]
        body = manifests.device_health(name, device, renewTime=time, leaseDurationSeconds=86400)
        target.admin.post(f"{SULLY}/devicehealths", body).ok()

    report("late", MICRO_END)
    now = target.admin.get("/api/v1/nodes/healthy").ok()["metadata"]["creationTimestamp"]
    report("healthy", now.replace("Z", ".000000Z"))

    assert node.get("/api/v1/nodes/late").code == 200
    eventually(lambda: len(_rules(target, "example.com/health")) == 1)


def test_pod_that_is_ready_at_the_end_of_time(target: Target, node: Caller, namespace: str) -> None:
    """A node reports the status of its pods: here of one that a budget and a ReplicaSet count."""
    labels = {"app": "late"}
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    spec = {"minAvailable": 1, "selector": {"matchLabels": labels}}
    target.admin.post(budgets, {"metadata": {"name": "b"}, "spec": spec}).ok()
    template = {"metadata": {"labels": labels}, "spec": manifests.pod_spec(nodeName="late")}
    sets = f"/apis/apps/v1/namespaces/{namespace}/replicasets"
    selector = {"matchLabels": labels}
    spec = {"replicas": 1, "minReadySeconds": 5, "selector": selector, "template": template}
    target.admin.post(sets, {"metadata": {"name": "r"}, "spec": spec}).ok()
    pods = f"/api/v1/namespaces/{namespace}/pods"
    (pod,) = eventually(lambda: target.admin.get(pods).ok()["items"])
    conditions = [
        {"type": type_, "status": "True", "lastTransitionTime": END}
        for type_ in ("Ready", "DisruptionTarget")
    ]
    status = {"status": {"phase": "Running", "conditions": conditions}}
    node.merge(f"{pods}/{pod['metadata']['name']}/status", status).ok()

    eventually(lambda: target.admin.get(f"{sets}/r").ok()["status"].get("readyReplicas") == 1)
    eventually(lambda: target.admin.get(f"{budgets}/b").ok()["status"]["currentHealthy"] == 1)


def test_job_with_a_deadline_after_the_end_of_time(target: Target, namespace: str) -> None:
    spec = {
        "activeDeadlineSeconds": MOST_SECONDS,
        "template": {"spec": manifests.pod_spec(restartPolicy="Never")},
    }
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    target.admin.post(jobs, {"metadata": {"name": "long"}, "spec": spec}).ok()

    eventually(lambda: target.admin.get(f"{jobs}/long").ok()["status"].get("active") == 1)


def test_condition_of_a_cluster_at_the_end_of_time(target: Target) -> None:
    """Its agent reports conditions; a policy still sets the taint of another one."""
    target.admin.post(CLUSTERS, {"metadata": {"name": "late"}, "spec": {}}).ok()
    rules = [
        {
            "condition": {"type": type_, "status": "True"},
            "setAfterSeconds": 60,
            "taint": {"key": type_.lower(), "effect": "NoSelect"},
        }
        for type_ in ("Cold", "Hot")
    ]
    body = {"metadata": {"name": "late"}, "spec": {"clusterSelector": {}, "rules": rules}}
    target.admin.post(f"{SULLY}/clustertaintpolicies", body).ok()
    condition = {"status": "True", "reason": "Test", "message": ""}
    conditions = [
        condition | {"type": "Cold", "lastTransitionTime": END},
        condition | {"type": "Hot", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]
    status = {"status": {"conditions": conditions}}
    target.admin.merge(f"{CLUSTERS}/late/status", status).ok()

    def taints() -> set[str]:
        spec = target.admin.get(f"{CLUSTERS}/late").ok()["spec"]
        return {taint["key"] for taint in spec.get("taints") or ()}

    eventually(lambda: "hot" in taints())
    assert "cold" not in taints()


def test_score_until_the_end_of_time(target: Target, namespace: str) -> None:
    """An add-on writes the scores of its cluster; every placement reads them."""
    body: Obj = {"metadata": {"name": "scored"}, "spec": {"hubAcceptsClient": True}}
    target.admin.post(CLUSTERS, body).ok()
    scores = f"{CLUSTER}/v1alpha1/namespaces/scored/addonplacementscores"
    eventually(lambda: target.admin.get("/api/v1/namespaces/scored").code == 200)
    target.admin.post(scores, {"metadata": {"name": "score"}}).ok()
    status = {"scores": [{"name": "s", "value": 5}], "validUntil": MICRO_END}
    target.admin.merge(f"{scores}/score/status", {"status": status}).ok()
    tenant = target.tenant(namespace)
    sets = f"{CLUSTER}/v1beta2/namespaces/{namespace}/managedclustersetbindings"
    body = {"metadata": {"name": "global"}, "spec": {"clusterSet": "global"}}
    target.admin.post(sets, body).ok()
    add_on = {"type": "AddOn", "addOn": {"resourceName": "score", "scoreName": "s"}}
    policy = {"mode": "Exact", "configurations": [{"scoreCoordinate": add_on, "weight": 1}]}
    spec = {"tolerations": [{"operator": "Exists"}], "prioritizerPolicy": policy}
    placements = f"{CLUSTER}/v1beta1/namespaces/{namespace}/placements"
    tenant.post(placements, {"metadata": {"name": "p"}, "spec": spec}).ok()

    eventually(lambda: tenant.get(f"{placements}/p").ok().get("status"))

"""Nodes with devices and a Deployment on a server, and the story of an update of their firmware."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import manifests
from e2e.watching import until
from kube.process import Foreign
from sully.testing.remote import simulated_nodes

Obj = dict[str, Any]
SPACE, DRIVER, PREFIX = "upkeep", "upkeep.example.com", "upkeep"
TEMPLATES = f"/apis/resource.k8s.io/v1/namespaces/{SPACE}/resourceclaimtemplates"
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{SPACE}/resourceclaims"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{SPACE}/deployments"
PODS = f"/api/v1/namespaces/{SPACE}/pods"
MAINTENANCES = "/apis/sully.dev/v1alpha1/devicemaintenances"
NODES = ("--nodes", "2", "--devices", "2", "--driver", DRIVER, "--name-prefix", PREFIX)
FAST = ("--start-seconds", "0", "--stop-seconds", "0.1")


@contextmanager
def nodes_on(server: Foreign) -> Iterator[Foreign]:
    """Add nodes and a Deployment with one pod."""
    admin = server.admin()
    admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": SPACE}})
    until(admin, f"/api/v1/namespaces/{SPACE}/serviceaccounts", lambda result: "default" in result)
    template = manifests.claim_template("gpu", manifests.claim_spec(DRIVER, "gpu"))
    admin.request("POST", TEMPLATES, template)
    with simulated_nodes(server.kubeconfig, *NODES, *FAST, "--yes"):
        pod = manifests.pod_spec(
            template="gpu", terminationGracePeriodSeconds=1, tolerations=[{"operator": "Exists"}]
        )
        pods = manifests.pod_template({"app": "web"}, pod)
        body = manifests.workload("Deployment", "web", pods, replicas=1)
        assert admin.request("POST", DEPLOYMENTS, body).code == 201
        yield server
        admin.request("DELETE", f"{DEPLOYMENTS}/web")
        admin.request("DELETE", PODS, {"gracePeriodSeconds": 0})
        for path in (PODS, CLAIMS):
            until(admin, path, lambda result: not result)


def is_ready(pod: Obj) -> bool:
    """Report whether a pod is Ready."""
    conditions = pod.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def node_of(cluster: Foreign) -> str:
    """Return where the pod runs."""
    result = until(cluster.admin(), PODS, lambda pods: any(map(is_ready, pods.values())))
    return str(next(pod["spec"]["nodeName"] for pod in result.values() if is_ready(pod)))


def waits(name: str, unit: str, result: dict[str, Obj]) -> bool:
    """Report whether a unit waits for approval."""
    units = result.get(name, {}).get("status", {}).get("units", [])
    return any(one["name"] == unit and one["phase"] == "AwaitingApproval" for one in units)


def update_firmware(cluster: Foreign) -> None:
    """Drain, approve and give back one node after the other."""
    admin, first, rules_path = cluster.admin(), node_of(cluster), cluster.rules()
    select = ("--driver", DRIVER, "--by", "Node", "--max-unavailable", "1")
    window = ("--start", "1s", "--for", "1h", "--approval", "--reason", "firmware v2")
    done = cluster.sully("maintenance", "create", "firmware", *select, *window, "--yes")
    assert done.returncode == 0, (done.stdout, done.stderr)
    # One node after the other: each is drained, approved and given back.
    for node in (f"{PREFIX}-0000", f"{PREFIX}-0001"):
        until(admin, MAINTENANCES, partial(waits, "firmware", node))
        rules = admin.request("GET", rules_path).json()["items"]
        assert {rule["spec"]["deviceSelector"]["pool"] for rule in rules} == {node}
        assert node_of(cluster) != node
        reported = cluster.sully("explain", "device", f"{DRIVER}/{node}/gpu-0")
        assert "maintenance firmware" in reported.stdout
        done = cluster.sully("maintenance", "approve", "firmware", node)
        assert done.returncode == 0, done.stderr
    until(
        admin,
        MAINTENANCES,
        lambda result: result["firmware"]["status"].get("phase") == "Completed",
    )
    until(admin, rules_path, lambda result: not result)
    for action, verb in {"pause": "paused", "cancel": "cancelled"}.items():
        too_late = cluster.sully("maintenance", action, "firmware")
        assert (too_late.returncode, too_late.stdout) == (1, "")
        assert f'"firmware" is Completed: it cannot be {verb}' in too_late.stderr
    assert first in (f"{PREFIX}-0000", f"{PREFIX}-0001")

"""DeviceMaintenances on every kind of server: ours, a stand-in, Kubernetes.

The controller runs as the account that `sully install` created, with exactly its permissions. On
other servers it has only rules and the Eviction API. The stories are those of the guides.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from e2e.watching import until
from kube.conftest import SERVERS
from kube.crews import Crew
from kube.process import Foreign
from kube.scenes import MERGE
from sully.testing.cluster import process
from sully.testing.remote import simulated_nodes

Obj = dict[str, Any]
OURS = "sully"
SPACE, DRIVER, PREFIX = "upkeep", "upkeep.example.com", "upkeep"
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
TEMPLATES = f"/apis/resource.k8s.io/v1/namespaces/{SPACE}/resourceclaimtemplates"
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{SPACE}/resourceclaims"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{SPACE}/deployments"
PODS = f"/api/v1/namespaces/{SPACE}/pods"
MAINTENANCES = "/apis/sully.dev/v1alpha1/devicemaintenances"
NODES = ("--nodes", "2", "--devices", "2", "--driver", DRIVER, "--name-prefix", PREFIX)
FAST = ("--start-seconds", "0", "--stop-seconds", "0.1")


@pytest.fixture(scope="module", params=[pytest.param(OURS, marks=pytest.mark.e2e), *SERVERS])
def server(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Foreign]:
    """Run each server, with the controller beside it."""
    if request.param == OURS:
        with process() as up:
            yield Foreign(up.data_dir, up.url)
        return
    name = "kubernetes" if request.param == "kubernetes" else "stand_in"
    there: Foreign = request.getfixturevalue(name)
    with Crew(there, tmp_path_factory.mktemp("account"), "devicemaintenances").at_work():
        yield there


@pytest.fixture(scope="module")
def nodes(server: Foreign) -> Iterator[Foreign]:
    """Add nodes and a Deployment with one pod."""
    admin = server.admin()
    admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": SPACE}})
    until(admin, f"/api/v1/namespaces/{SPACE}/serviceaccounts", lambda found: "default" in found)
    requests = [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]
    spec = {"spec": {"devices": {"requests": requests}}}
    admin.request("POST", TEMPLATES, {"metadata": {"name": "gpu"}, "spec": spec})
    with simulated_nodes(server.kubeconfig, *NODES, *FAST, "--yes"):
        pod = {
            "terminationGracePeriodSeconds": 1,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "c", "image": "example.com/x:1"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        }
        labels = {"app": "web"}
        pods = {"metadata": {"labels": labels}, "spec": pod}
        deployment = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pods}
        body = {"metadata": {"name": "web"}, "spec": deployment}
        assert admin.request("POST", DEPLOYMENTS, body).code == 201
        yield server
        admin.request("DELETE", f"{DEPLOYMENTS}/web")
        admin.request("DELETE", PODS, {"gracePeriodSeconds": 0})
        for path in (PODS, CLAIMS):
            until(admin, path, lambda found: not found)


@pytest.fixture
def cluster(nodes: Foreign) -> Iterator[Foreign]:
    admin = nodes.admin()
    until(admin, PODS, lambda found: any(map(_is_ready, found.values())))
    yield nodes
    admin.request("DELETE", MAINTENANCES)
    for path in (MAINTENANCES, RULES):
        until(admin, path, lambda found: not found)


def _is_ready(pod: Obj) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _node(cluster: Foreign) -> str:
    """Return where the pod runs."""
    found = until(cluster.admin(), PODS, lambda pods: any(map(_is_ready, pods.values())))
    return str(next(pod["spec"]["nodeName"] for pod in found.values() if _is_ready(pod)))


def _waits(name: str, unit: str, found: dict[str, Obj]) -> bool:
    """Report whether a unit waits for approval."""
    units = found.get(name, {}).get("status", {}).get("units", [])
    return any(one["name"] == unit and one["phase"] == "AwaitingApproval" for one in units)


def test_firmware_update(cluster: Foreign) -> None:
    admin, first = cluster.admin(), _node(cluster)
    select = ("--driver", DRIVER, "--by", "Node", "--max-unavailable", "1")
    window = ("--start", "1s", "--for", "1h", "--approval", "--reason", "firmware v2")
    done = cluster.sully("maintenance", "create", "firmware", *select, *window, "--yes")
    assert done.returncode == 0, (done.stdout, done.stderr)
    # One node after the other: each is drained, approved and given back.
    for node in (f"{PREFIX}-0000", f"{PREFIX}-0001"):
        until(admin, MAINTENANCES, partial(_waits, "firmware", node))
        rules = admin.request("GET", RULES).json()["items"]
        assert {rule["spec"]["deviceSelector"]["pool"] for rule in rules} == {node}
        assert _node(cluster) != node
        told = cluster.sully("explain", "device", f"{DRIVER}/{node}/gpu-0")
        assert "maintenance firmware" in told.stdout
        done = cluster.sully("maintenance", "approve", "firmware", node)
        assert done.returncode == 0, done.stderr
    until(
        admin,
        MAINTENANCES,
        lambda found: found["firmware"]["status"].get("phase") == "Completed",
    )
    until(admin, RULES, lambda found: not found)
    assert first in (f"{PREFIX}-0000", f"{PREFIX}-0001")


def test_decommission(cluster: Foreign) -> None:
    admin, node = cluster.admin(), _node(cluster)
    spec = {
        "selector": {"driver": DRIVER, "pool": node},
        "start": "2031-01-01T00:00:00Z",
        "closeBefore": "8760h",
        "rolling": {"by": "Node"},
        "hook": {"type": "Approval"},
    }
    body = {
        "apiVersion": "sully.dev/v1alpha1",
        "kind": "DeviceMaintenance",
        "metadata": {"name": "retire"},
        "spec": spec,
    }
    assert admin.request("POST", MAINTENANCES, body).code == 201
    change = {"spec": {"closeBefore": "0s", "start": "2026-01-01T00:00:00Z"}}
    answer = admin.request("PATCH", f"{MAINTENANCES}/retire", change, kind=MERGE)
    assert answer.code == 200, answer.body
    until(admin, MAINTENANCES, partial(_waits, "retire", node))
    assert _node(cluster) != node
    assert cluster.sully("maintenance", "cancel", "retire").returncode == 0
    until(admin, RULES, lambda found: not found)
    again = {"spec": {"cancelled": False}}
    assert admin.request("PATCH", f"{MAINTENANCES}/retire", again, kind=MERGE).code == 422


def test_a_typo_selects_nothing(cluster: Foreign) -> None:
    done = cluster.sully(
        "maintenance", "create", "typo", "--driver", "x.example.com", "--start", "1s"
    )
    assert done.returncode == 1
    assert "the selector matches no device; nothing changed" in done.stderr
    careless = {
        "apiVersion": "sully.dev/v1alpha1",
        "kind": "DeviceMaintenance",
        "metadata": {"name": "all"},
        "spec": {"selector": {}, "start": "2031-01-01T00:00:00Z"},
    }
    answer = cluster.admin().request("POST", MAINTENANCES, careless)
    assert answer.code == 422
    assert "set matchAll to true" in answer.body.decode()

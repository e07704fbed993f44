"""Pods that are evicted again and again, and latent effects: planned, and what then happens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import manifests
from e2e.raw import Raw
from e2e.watching import until
from kube.process import Foreign
from sully.testing.remote import simulated_nodes

Obj = dict[str, Any]
SPACE, DRIVER, KEY = "loops", "loops.example.com", "example.com/fault"
DEVICES = "/apis/resource.k8s.io/v1"
RULES = f"{DEVICES}/devicetaintrules"
PODS = f"/api/v1/namespaces/{SPACE}/pods"
EVENTS = f"/api/v1/namespaces/{SPACE}/events"
NODES = ("--nodes", "1", "--devices", "3", "--driver", DRIVER, "--name-prefix", "loops")
PACE = ("--start-seconds", "0", "--stop-seconds", "0.2")
ALL_DEVICES = f"{DRIVER}/*/*"
RULE = manifests.rule("loops", "NoExecute", key=KEY, selector={"driver": DRIVER})


def template() -> Obj:
    """Return a template whose pods tolerate the taint for a second."""
    toleration = {"key": KEY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    return manifests.claim_template(
        "train", manifests.claim_spec(DRIVER, "gpu", tolerations=[toleration])
    )


def deployment() -> Obj:
    """Return a Deployment with one pod, which has a device."""
    pods = manifests.pod_template({"app": "train"}, manifests.pod_spec(template="train"))
    return manifests.workload("Deployment", "train", pods, replicas=1)


@pytest.fixture
def admin(there: Foreign) -> Iterator[Raw]:
    """Return the admin's access to a cluster with a Deployment that runs on a device."""
    admin = there.admin()
    admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": SPACE}})
    until(admin, f"/api/v1/namespaces/{SPACE}/serviceaccounts", lambda result: "default" in result)
    with simulated_nodes(there.kubeconfig, *NODES, *PACE):
        paths = {
            f"{DEVICES}/namespaces/{SPACE}/resourceclaimtemplates": template(),
            f"/apis/apps/v1/namespaces/{SPACE}/deployments": deployment(),
        }
        for path, body in paths.items():
            answer = admin.request("POST", path, body)
            assert answer.code == 201, answer.body
        until(admin, PODS, lambda pods: any(x["spec"].get("nodeName") for x in pods.values()))
        yield admin
        for path, body in paths.items():
            admin.request("DELETE", f"{path}/{body['metadata']['name']}")
        admin.request("DELETE", RULES)
        admin.request("DELETE", PODS, {"gracePeriodSeconds": 0})
        until(admin, PODS, lambda pods: not pods)


def evictions(events: dict[str, Obj]) -> set[str]:
    return {
        event["involvedObject"]["uid"]
        for event in events.values()
        if event["reason"] == "DeviceTaintManagerEviction"
    }


def test_a_loop_is_planned_refused_recognized_and_ended(
    there: Foreign, admin: Raw, tmp_path: Path
) -> None:
    path = tmp_path / "rule.json"
    path.write_text(json.dumps(RULE))

    planned = there.sully("plan", "-f", str(path))
    assert planned.returncode == 4, planned.stderr
    assert planned.stdout.startswith(f"Eviction loop: 1 pod of Deployment {SPACE}/train would be")
    assert "All would be rescheduled" not in planned.stdout

    taint = ("taint", "device", ALL_DEVICES, f"{KEY}:NoExecute")
    refused = there.sully(*taint, "--yes")
    assert refused.returncode == 4, refused.stderr
    assert "use --force to continue anyway" in refused.stderr
    assert admin.request("GET", RULES).json()["items"] == []

    started = there.sully(*taint, "--yes", "--force", "--name", "loops")
    assert started.returncode == 0, started.stderr
    until(admin, EVENTS, lambda events: len(evictions(events)) > 3)

    explained = there.sully("explain", "rule", "loops", "-o", "json")
    document = json.loads(explained.stdout)
    assert (document["state"], document["cause"]) == ("Evicting", "EvictionLoop")
    assert f"pods of Deployment {SPACE}/train were evicted in the last" in document["summary"][0]
    remedy = f"sully taint device '{ALL_DEVICES}' {KEY}:NoSchedule"
    assert document["remedies"][0].endswith(remedy)

    listed = there.sully("evictions")
    assert "they are recreated on tainted devices and evicted again" in listed.stderr
    assert "'sully explain rule loops' shows why" in listed.stderr
    assert " looping " in listed.stdout
    gone = next(
        event["involvedObject"]["name"]
        for event in admin.request("GET", EVENTS).json()["items"]
        if event["reason"] == "DeviceTaintManagerEviction"
    )
    member = there.sully("explain", "pod", gone, "-n", SPACE)
    assert "'sully explain rule loops' shows what would help." in member.stdout

    ended = there.sully("taint", "device", ALL_DEVICES, f"{KEY}:NoSchedule", "--yes")
    assert ended.returncode == 0, ended.stderr
    until(admin, PODS, lambda pods: [is_unschedulable(pod) for pod in pods.values()] == [True])


def is_unschedulable(pod: Obj) -> bool:
    conditions = {
        condition["type"]: condition for condition in pod["status"].get("conditions") or ()
    }
    return conditions.get("PodScheduled", {}).get("reason") == "Unschedulable"


def test_latent_effects_come_true(there: Foreign, admin: Raw) -> None:
    cordon = ("device", ALL_DEVICES, f"{KEY}:NoSchedule")

    planned = there.sully("plan", *cordon, "-o", "json")
    [owner] = json.loads(planned.stdout)["latentEffects"]["owners"]
    assert planned.returncode == 0, planned.stderr
    assert (owner["owner"], owner["nextPod"]) == ("Deployment/train", "Replacement")

    assert there.sully("taint", *cordon, "--yes").returncode == 0
    [pod] = admin.request("GET", PODS).json()["items"]
    admin.request("DELETE", f"{PODS}/{pod['metadata']['name']}")
    until(admin, PODS, lambda pods: [is_unschedulable(pod) for pod in pods.values()] == [True])

"""Jobs of policies and maintenances on servers that are not ours: a stand-in, Kubernetes.

There the server's own controllers run the Job, and its own scheduler allocates the claim. Pods are
on simulated nodes and end when a test decides. The controllers run as the account that
`sully install` created, and restart while a Job runs: it ends when nobody looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

import manifests
from e2e.raw import Raw
from e2e.watching import Named, until
from kube.conftest import SERVERS
from kube.crews import Crew
from kube.process import Foreign
from kube.scenes import MERGE
from sully.testing.remote import simulated_nodes

Obj = dict[str, Any]
SPACE, DRIVER, NODE = "gpu-tests", "proof.example.com", "proof-0000"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{SPACE}/resourceclaims"
JOBS = f"/apis/batch/v1/namespaces/{SPACE}/jobs"
PODS = f"/api/v1/namespaces/{SPACE}/pods"
OURS = "/apis/sully.dev/v1alpha1"
POLICIES, MAINTENANCES = f"{OURS}/devicetaintpolicies", f"{OURS}/devicemaintenances"
NODES = ("--nodes", "1", "--devices", "2", "--driver", DRIVER, "--name-prefix", "proof")
FAST = ("--start-seconds", "0", "--stop-seconds", "0.1", "--yes")
BY_JOB: Obj = {
    "type": "Job",
    "job": {
        "namespace": SPACE,
        "deviceClassName": DRIVER,
        "attempts": 2,
        "retryAfter": "100ms",
        "template": {
            "spec": {
                "template": {
                    "spec": {
                        "terminationGracePeriodSeconds": 1,
                        # Nodes without a kubelet stay not ready on a real server.
                        "tolerations": [{"operator": "Exists"}],
                        "containers": [{"name": "test", "image": "example.com/gpu-test:1"}],
                    }
                }
            }
        },
    },
}


@pytest.fixture(scope="module", params=SERVERS)
def crew(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Crew]:
    """Run each server with a simulated node, and a namespace for Jobs that test devices."""
    name = "kubernetes" if request.param == "kubernetes" else "stand_in"
    there: Foreign = request.getfixturevalue(name)
    ready = Crew(
        there, tmp_path_factory.mktemp("account"), "devicetaintpolicies,devicemaintenances"
    )
    admin = there.admin()
    labels = {"resource.kubernetes.io/admin-access": "true"}
    space = {"metadata": {"name": SPACE, "labels": labels}}
    assert admin.request("POST", "/api/v1/namespaces", space).code == 201
    until(admin, f"/api/v1/namespaces/{SPACE}/serviceaccounts", lambda result: "default" in result)
    with simulated_nodes(there.kubeconfig, *NODES, *FAST):
        yield ready


@pytest.fixture
def admin(crew: Crew) -> Iterator[Raw]:
    """Delete what a test created, after it."""
    admin = crew.server.admin()
    yield admin
    for path in (POLICIES, MAINTENANCES, f"{PODS}/user", f"{CLAIMS}/user"):
        admin.request("DELETE", path)
    # Garbage collection does the rest, which needs none of our controllers.
    for path in (crew.server.rules(), JOBS, PODS, CLAIMS):
        until(admin, path, lambda result: not result)


def _taint(admin: Raw, device: str, *taints: Obj) -> None:
    """Publish these taints of a device, as its driver does."""
    (result,) = [
        one
        for one in admin.request("GET", SLICES).json()["items"]
        if one["spec"]["driver"] == DRIVER and one["spec"].get("devices")
    ]
    for one in result["spec"]["devices"]:
        one["taints"] = list(taints) if one["name"] == device else []
    path = f"{SLICES}/{result['metadata']['name']}"
    patch = {"spec": {"devices": result["spec"]["devices"]}}
    assert admin.request("PATCH", path, patch, kind=MERGE).code == 200


def _running_pods(admin: Raw, count: int = 1, without: frozenset[str] = frozenset()) -> list[str]:
    """Wait until Jobs have so many running pods in addition to some; return their names."""

    def names(pods: Named) -> list[str]:
        running = (one for one in pods.values() if one["status"].get("phase") == "Running")
        return sorted({one["metadata"]["name"] for one in running} - without)

    return names(until(admin, PODS, lambda pods: len(names(pods)) == count))


def _end(admin: Raw, pod: str, code: int) -> None:
    """Let a pod end with an exit code."""
    patch = {"metadata": {"annotations": {"sully.dev/simulated-exit": f"{code}@0s"}}}
    assert admin.request("PATCH", f"{PODS}/{pod}", patch, kind=MERGE).code == 200


def _has_ended(type_: str, jobs: Named) -> bool:
    return any(
        one["type"] == type_ and one["status"] == "True"
        for job in jobs.values()
        for one in job["status"].get("conditions", ())
    )


def _waits_for(text: str, result: Named) -> bool:
    devices = result["proven"].get("status", {}).get("devices", ())
    return any(text in one.get("message", "") for one in devices)


def _condition(name: str, type_: str, holds: Callable[[Obj], bool], result: Named) -> bool:
    conditions = result[name].get("status", {}).get("conditions", ())
    return any(one["type"] == type_ and holds(one) for one in conditions)


def _tainted(crew: Crew) -> dict[str, str]:
    answer = crew.server.admin().request("GET", crew.server.rules())
    rules = (one["spec"] for one in answer.json()["items"])
    return {one["deviceSelector"]["device"]: one["taint"]["effect"] for one in rules}


def test_a_policy_needs_the_success_of_a_job(crew: Crew, admin: Raw) -> None:
    policy = {
        "apiVersion": "sully.dev/v1alpha1",
        "kind": "DeviceTaintPolicy",
        "metadata": {"name": "proven"},
        "spec": {
            "mode": "Enforce",
            "selector": {"driver": DRIVER},
            "sources": [{"name": "ecc", "driverTaint": {"key": "example.com/ecc"}}],
            "taint": {"key": "example.com/faulty"},
            "steps": [{"effect": "NoSchedule"}],
            "proof": BY_JOB,
        },
    }
    assert admin.request("POST", POLICIES, policy).code == 201
    with crew.at_work():
        _taint(admin, "gpu-1", {"key": "example.com/ecc", "effect": "None"})
        until(admin, crew.server.rules(), lambda rules: len(rules) == 1)
        assert admin.request("GET", JOBS).json()["items"] == []
        _taint(admin, "gpu-1")
        (failing,) = _running_pods(admin)
        _check_claim(admin, "gpu-1")
        # The status is written once a second.
        until(admin, POLICIES, partial(_waits_for, "is running"))
        stdout = crew.server.sully("explain", "policy", "proven").stdout
        assert f"Job {SPACE}/" in stdout
        assert "is running" in stdout
    # It fails while no controller of ours runs.
    _end(admin, failing, 1)
    until(admin, JOBS, partial(_has_ended, "Failed"))
    with crew.at_work():
        failed = partial(_condition, "proven", "sully.dev/ProofFailed")
        until(admin, POLICIES, partial(failed, lambda one: "exit code 1" in one["message"]))
        assert _tainted(crew) == {"gpu-1": "NoSchedule"}
        (passing,) = _running_pods(admin, without=frozenset((failing,)))
        _check_claim(admin, "gpu-1")
        _end(admin, passing, 0)
        until(admin, crew.server.rules(), lambda rules: not rules)
        until(admin, POLICIES, partial(failed, lambda one: one["status"] == "False"))


def _check_claim(admin: Raw, device: str) -> None:
    """Check that the Job that runs has exactly one device, with admin access."""
    claims = admin.request("GET", CLAIMS).json()["items"]
    (claim,) = [one for one in claims if one.get("status", {}).get("reservedFor")]
    (request,) = claim["spec"]["devices"]["requests"]
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    assert request["exactly"]["adminAccess"] is True
    assert (result["pool"], result["device"], result["adminAccess"]) == (NODE, device, True)
    (owner,) = claim["metadata"]["ownerReferences"]
    assert owner["kind"] == "Job"


def test_a_maintenance_works_by_jobs(crew: Crew, admin: Raw) -> None:
    """Close, drain a pod, work by Jobs, prove by Jobs, give back; each across a restart."""
    _start_pod(admin)
    maintenance = {
        "apiVersion": "sully.dev/v1alpha1",
        "kind": "DeviceMaintenance",
        "metadata": {"name": "firmware"},
        "spec": {
            "selector": {"driver": DRIVER},
            "start": "2026-01-01T00:00:00Z",
            "rolling": {"by": "Node"},
            "drain": {"force": True},
            "hook": {**BY_JOB, "job": {**BY_JOB["job"], "parallelism": 2}},
            "proof": {**BY_JOB, "job": {**BY_JOB["job"], "parallelism": 2}},
        },
    }
    assert admin.request("POST", MAINTENANCES, maintenance).code == 201
    done: frozenset[str] = frozenset()
    for phase in ("Working", "Proving"):
        with crew.at_work():
            until(admin, MAINTENANCES, partial(_is_in, phase))
            pods = _running_pods(admin, 2, without=done)
            assert _tainted(crew) == {"gpu-0": "NoSchedule", "gpu-1": "NoSchedule"}
            assert "user" not in until(admin, PODS, lambda result: "user" not in result)
        for pod in pods:
            _end(admin, pod, 0)
        done |= frozenset(pods)
        until(admin, PODS, lambda result: not any(_is_active(one) for one in result.values()))
    with crew.at_work():
        until(
            admin,
            MAINTENANCES,
            lambda result: result["firmware"]["status"].get("phase") == "Completed",
        )
        until(admin, crew.server.rules(), lambda rules: not rules)


def _start_pod(admin: Raw) -> None:
    """Start a pod that uses a device, and so has to be evicted first."""
    assert admin.request("POST", CLAIMS, manifests.claim("user", DRIVER)).code == 201
    spec = manifests.pod_spec(
        "user", terminationGracePeriodSeconds=1, tolerations=[{"operator": "Exists"}]
    )
    assert admin.request("POST", PODS, manifests.pod("user", spec)).code == 201
    assert _running_pods(admin) == ["user"]


def _is_active(pod: Obj) -> bool:
    return pod["status"].get("phase") not in ("Succeeded", "Failed")


def _is_in(phase: str, result: Named) -> bool:
    units = result["firmware"].get("status", {}).get("units", ())
    return any(one["phase"] == phase for one in units)

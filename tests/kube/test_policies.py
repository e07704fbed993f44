"""DeviceTaintPolicies on every kind of server: ours, a stand-in, Kubernetes.

The controllers run as the account that `sully install` created, with exactly its permissions. On
other servers the rules are all that Kubernetes' own scheduler and evictor see.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from e2e.raw import Raw
from e2e.watching import until
from kube.conftest import SERVERS
from kube.crews import Crew
from kube.process import Foreign
from kube.scenes import MERGE
from manifests import gpus, slice_
from sully.testing.cluster import process

Obj = dict[str, Any]
OURS = "sully"
DRIVER, NODE = "policy.example.com", "policy-node"
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
POLICIES = "/apis/sully.dev/v1alpha1/devicetaintpolicies"
FAULT: Obj = {"key": "example.com/ecc", "effect": "None"}
POLICY: Obj = {
    "apiVersion": "sully.dev/v1alpha1",
    "kind": "DeviceTaintPolicy",
    "metadata": {"name": "faulty"},
    "spec": {
        "mode": "Enforce",
        "selector": {"driver": DRIVER},
        "sources": [{"name": "ecc", "driverTaint": {"key": "example.com/ecc"}}],
        "taint": {"key": "example.com/faulty"},
        "steps": [{"effect": "None"}, {"after": "100ms", "effect": "NoSchedule"}],
        "limits": [{"scope": "Pool", "maxUnavailable": 1}],
        "proof": {"type": "Manual"},
    },
}


@dataclass(frozen=True)
class Cluster:
    """A server with a few devices, and the controller of policies."""

    server: Foreign
    admin: Raw

    def supports_suppression(self) -> bool:
        """Report whether Sully schedules and evicts there."""
        return self.admin.request("GET", "/version").json()["gitVersion"].find("sully") >= 0

    def publish(self, *faulty: int, fault: Obj = FAULT) -> None:
        """Publish devices as their driver does."""
        devices = [
            device | ({"taints": [fault]} if number in faulty else {})
            for number, device in enumerate(gpus(3))
        ]
        body = slice_("policy-gpus", NODE, *devices, driver=DRIVER, nodeName=NODE)
        if self.admin.request("GET", f"{SLICES}/policy-gpus").code == 404:
            assert self.admin.request("POST", SLICES, body).code == 201
        patch = {"spec": {"devices": devices}}
        answer = self.admin.request("PATCH", f"{SLICES}/policy-gpus", patch, kind=MERGE)
        assert answer.code == 200, answer.body

    def effects(self, **wanted: str) -> None:
        """Wait until devices have these effects, and no others."""
        until(self.admin, RULES, lambda rules: _effects(rules) == wanted)

    def sully(self, *words: str) -> str:
        done = self.server.sully(*words)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout


def _effects(rules: dict[str, Obj]) -> dict[str, str]:
    specs = [rule["spec"] for rule in rules.values()]
    return {
        spec["deviceSelector"]["device"].replace("-", ""): spec["taint"]["effect"]
        for spec in specs
        if spec["deviceSelector"]["driver"] == DRIVER
    }


@pytest.fixture(scope="module", params=[pytest.param(OURS, marks=pytest.mark.e2e), *SERVERS])
def server(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Foreign]:
    """Run each server, with the controllers beside it."""
    if request.param == OURS:
        with process() as up:
            yield Foreign(up.data_dir, up.url)
        return
    name = "kubernetes" if request.param == "kubernetes" else "stand_in"
    there: Foreign = request.getfixturevalue(name)
    with Crew(there, tmp_path_factory.mktemp("account"), "devicetaintpolicies").at_work():
        yield there


@pytest.fixture
def cluster(server: Foreign) -> Iterator[Cluster]:
    ready = Cluster(server, server.admin())
    ready.publish()
    yield ready
    for path in (POLICIES, RULES, f"{SLICES}/policy-gpus"):
        ready.admin.request("DELETE", path)
    until(ready.admin, RULES, lambda rules: not _effects(rules))


def test_from_a_fault_to_a_taint_and_back(cluster: Cluster) -> None:
    assert cluster.admin.request("POST", POLICIES, POLICY).code == 201
    cluster.publish(0)
    cluster.effects(gpu0="NoSchedule")
    cluster.publish(0, 1)
    cluster.effects(gpu0="NoSchedule", gpu1="None")
    until(
        cluster.admin,
        POLICIES,
        lambda found: found["faulty"].get("status", {}).get("phases", {}).get("HeldBack") == 1,
    )
    told = json.loads(cluster.sully("explain", "policy", "faulty", "-o", "json"))
    assert (told["state"], told["cause"]) == ("Active", "LimitReached")
    assert "policy faulty" in cluster.sully("explain", "device", f"{DRIVER}/{NODE}/gpu-0")

    cluster.publish(1)
    until(
        cluster.admin,
        POLICIES,
        lambda found: found["faulty"]["status"].get("phases", {}).get("AwaitingProof") == 1,
    )
    cluster.sully("policies", "clear", "faulty", f"{NODE}/gpu-0")
    cluster.effects(gpu1="NoSchedule")


def test_a_deleted_policy_takes_its_rules_along(cluster: Cluster) -> None:
    assert cluster.admin.request("POST", POLICIES, POLICY).code == 201
    cluster.publish(2)
    cluster.effects(gpu2="NoSchedule")
    assert cluster.admin.request("DELETE", f"{POLICIES}/faulty").code == 200
    cluster.effects()


def test_what_is_kept_stays(cluster: Cluster) -> None:
    kept = {**POLICY, "spec": {**POLICY["spec"], "onDelete": "Keep"}}
    assert cluster.admin.request("POST", POLICIES, kept).code == 201
    cluster.publish(2)
    cluster.effects(gpu2="NoSchedule")
    assert cluster.admin.request("DELETE", f"{POLICIES}/faulty").code == 200
    until(cluster.admin, POLICIES, lambda found: not found)
    cluster.effects(gpu2="NoSchedule")


def test_a_plan_shows_it_first(cluster: Cluster, tmp_path: Path) -> None:
    cluster.publish(0)
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(POLICY))
    planned = json.loads(cluster.sully("plan", "-f", str(file), "-o", "json"))

    (policy,) = planned["policies"]
    (device,) = policy["devices"]
    assert (policy["selected"], device["device"]) == (3, f"{DRIVER}/{NODE}/gpu-0")
    assert [step["effect"] for step in device["steps"]] == ["None", "NoSchedule"]
    assert cluster.admin.request("GET", RULES).json()["items"] == []


def test_a_false_positive_is_suppressed_where_sully_acts(cluster: Cluster, tmp_path: Path) -> None:
    """Elsewhere the plan, the status and the list say that it cannot be."""
    cluster.publish(0, fault=FAULT | {"effect": "NoSchedule"})
    until_ = {"key": "example.com/ecc", "until": "2031-01-01T00:00:00Z"}
    spec = {"mode": "Enforce", "selector": {"driver": DRIVER}, "suppress": [until_]}
    policy = {**POLICY, "spec": spec}
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(policy))
    ours = cluster.supports_suppression()

    planned = cluster.sully("plan", "-f", str(file))
    told = "Suppressed on" if ours else "It would suppress nothing here: kube-scheduler"
    assert told in planned
    assert cluster.admin.request("POST", POLICIES, policy).code == 201
    reason = "Suppressed" if ours else "NotSupported"
    until(cluster.admin, POLICIES, lambda found: _reason(found, "sully.dev/Suppressed") == reason)
    shown = json.loads(cluster.sully("devices", f"{DRIVER}/{NODE}/gpu-0", "-o", "json"))
    taint = shown["devices"][0]["taints"][0]
    if ours:
        assert taint["effect"] == "None"
        assert taint["suppressed"]["by"] == "policy faulty"
        assert "suppressed by policy faulty" in cluster.sully("devices", DRIVER)
        assert "1 Suppressed" in cluster.sully("policies")
    else:
        assert (taint["effect"], "suppressed" in taint) == ("NoSchedule", False)
        assert "cannot suppress" in cluster.sully("policies")
    assert cluster.admin.request("DELETE", f"{POLICIES}/faulty").code == 200


def _reason(found: dict[str, Obj], type_: str) -> str:
    conditions = found["faulty"].get("status", {}).get("conditions", ())
    return next((one["reason"] for one in conditions if one["type"] == type_), "")


def test_every_device_only_on_purpose(cluster: Cluster) -> None:
    careless = {**POLICY, "spec": {**POLICY["spec"], "selector": {}}}

    answer = cluster.admin.request("POST", POLICIES, careless)
    assert answer.code == 422
    assert "set matchAll to true" in answer.body.decode()

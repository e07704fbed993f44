"""A server with a few devices and a policy for them: from a fault to a taint and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from e2e.raw import Raw
from e2e.watching import until
from kube.process import Foreign
from kube.scenes import MERGE
from manifests import body, gpus, slice_

Obj = dict[str, Any]
DRIVER, NODE = "policy.example.com", "policy-node"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
POLICIES = "/apis/sully.dev/v1alpha1/devicetaintpolicies"
FAULT: Obj = {"key": "example.com/ecc", "effect": "None"}
POLICY = body(
    "DeviceTaintPolicy",
    "faulty",
    {
        "mode": "Enforce",
        "selector": {"driver": DRIVER},
        "sources": [{"name": "ecc", "driverTaint": {"key": "example.com/ecc"}}],
        "taint": {"key": "example.com/faulty"},
        "steps": [{"effect": "None"}, {"after": "100ms", "effect": "NoSchedule"}],
        "limits": [{"scope": "Pool", "maxUnavailable": 1}],
        "proof": {"type": "Manual"},
    },
)


@dataclass(frozen=True)
class Cluster:
    """A server with a few devices, and the controller of policies."""

    server: Foreign
    admin: Raw
    rules: str
    """Where rules are."""

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

    def effects(self, **expected: str) -> None:
        """Wait until devices have these effects, and no others."""
        until(self.admin, self.rules, lambda rules: _effects(rules) == expected)

    def sully(self, *arguments: str) -> str:
        done = self.server.sully(*arguments)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout


def _effects(rules: dict[str, Obj]) -> dict[str, str]:
    specs = [rule["spec"] for rule in rules.values()]
    return {
        spec["deviceSelector"]["device"].replace("-", ""): spec["taint"]["effect"]
        for spec in specs
        if spec["deviceSelector"]["driver"] == DRIVER
    }


@contextmanager
def cluster_on(server: Foreign) -> Iterator[Cluster]:
    """Publish devices on a server, and delete everything at the end."""
    ready = Cluster(server, server.admin(), server.rules())
    ready.publish()
    yield ready
    for path in (POLICIES, ready.rules, f"{SLICES}/policy-gpus"):
        ready.admin.request("DELETE", path)
    until(ready.admin, ready.rules, lambda rules: not _effects(rules))


def from_a_fault_to_a_taint_and_back(cluster: Cluster) -> None:
    """Create a policy; faults go through its steps within its limits, and are cleared."""
    assert cluster.admin.request("POST", POLICIES, POLICY).code == 201
    cluster.publish(0)
    cluster.effects(gpu0="NoSchedule")
    cluster.publish(0, 1)
    cluster.effects(gpu0="NoSchedule", gpu1="None")
    until(
        cluster.admin,
        POLICIES,
        lambda result: result["faulty"].get("status", {}).get("phases", {}).get("HeldBack") == 1,
    )
    document = json.loads(cluster.sully("explain", "policy", "faulty", "-o", "json"))
    assert (document["state"], document["cause"]) == ("Active", "LimitReached")
    assert "policy faulty" in cluster.sully("explain", "device", f"{DRIVER}/{NODE}/gpu-0")

    cluster.publish(1)
    until(
        cluster.admin,
        POLICIES,
        lambda result: result["faulty"]["status"].get("phases", {}).get("AwaitingProof") == 1,
    )
    cluster.sully("policies", "clear", "faulty", f"{NODE}/gpu-0")
    cluster.effects(gpu1="NoSchedule")

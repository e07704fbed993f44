"""DeviceTaintPolicies on every kind of server: ours, a stand-in, Kubernetes.

The controllers run as the account that `sully install` created, with exactly its permissions. On
other servers the rules are all that Kubernetes' own scheduler and evictor see.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.commandlines import parsed
from e2e.raw import Raw
from e2e.watching import until
from kube import maintenance_story
from kube.conftest import SERVERS
from kube.crews import Crew
from kube.maintenance_story import PODS, is_ready, node_of, nodes_on
from kube.policy_cluster import (
    DRIVER,
    FAULT,
    NODE,
    POLICIES,
    POLICY,
    SLICES,
    Cluster,
    Obj,
    cluster_on,
    from_a_fault_to_a_taint_and_back,
)
from kube.process import Foreign
from kube.scenes import MERGE
from sully.cli.client.session import Session
from sully.cli.inspect.policies.command import decide_devices, resume_policies
from sully.client.discovery.adapting import AdaptingTransport
from sully.client.kubeconfig.kubeconfig import load_kubeconfig
from sully.testing.clock import FakeClock
from sully.testing.cluster import process

OURS = "sully"


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
    with cluster_on(server) as ready:
        yield ready


def test_from_a_fault_to_a_taint_and_back(cluster: Cluster) -> None:
    from_a_fault_to_a_taint_and_back(cluster)


def test_pods_are_evicted_and_stay_pending_until_it_recovers(server: Foreign) -> None:
    """The scheduler and the evictor of the server act on the rules of a policy."""
    admin, rules = server.admin(), server.rules()
    spec = {
        "mode": "Enforce",
        "selector": {"driver": maintenance_story.DRIVER},
        "sources": POLICY["spec"]["sources"],
        "taint": {"key": "example.com/faulty"},
        "steps": [{"effect": "NoSchedule"}, {"after": "100ms", "effect": "NoExecute"}],
    }
    with nodes_on(server):
        node_of(server)
        before = set(until(admin, PODS, lambda pods: len(pods) == 1))
        assert admin.request("POST", POLICIES, {**POLICY, "spec": spec}).code == 201
        _taint_all(admin, [FAULT])
        until(admin, PODS, lambda pods: any(map(_is_unschedulable, pods.values())))
        pods = until(admin, PODS, lambda pods: not before & pods.keys())
        assert not any(map(is_ready, pods.values()))
        items = admin.request("GET", rules).json()["items"]
        assert [rule["spec"]["taint"]["effect"] for rule in items] == ["NoExecute"] * 4
        _taint_all(admin, [])
        node_of(server)
        until(admin, rules, lambda items: not items)
        assert admin.request("DELETE", f"{POLICIES}/faulty").code == 200


def _taint_all(admin: Raw, taints: list[Obj]) -> None:
    """Publish taints of all devices of simulated nodes, as their driver does."""
    for item in admin.request("GET", SLICES).json()["items"]:
        if item["spec"]["driver"] == maintenance_story.DRIVER:
            devices = [{**device, "taints": taints} for device in item["spec"]["devices"]]
            path, patch = f"{SLICES}/{item['metadata']['name']}", {"spec": {"devices": devices}}
            assert admin.request("PATCH", path, patch, kind=MERGE).code == 200


def _is_unschedulable(pod: Obj) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(one.get("reason") == "Unschedulable" for one in conditions)


def test_a_deleted_policy_takes_its_rules_along(cluster: Cluster) -> None:
    assert cluster.admin.request("POST", POLICIES, POLICY).code == 201
    cluster.publish(2)
    cluster.effects(gpu2="NoSchedule")
    assert cluster.admin.request("DELETE", f"{POLICIES}/faulty").code == 200
    cluster.effects()


def test_what_is_kept_stays(cluster: Cluster) -> None:
    keeping = {**POLICY, "spec": {**POLICY["spec"], "onDelete": "Keep"}}
    assert cluster.admin.request("POST", POLICIES, keeping).code == 201
    cluster.publish(2)
    cluster.effects(gpu2="NoSchedule")
    arguments = ("untaint", "device", f"{NODE}/gpu-2", "example.com/faulty")
    (rule,) = cluster.admin.request("GET", cluster.rules).json()["items"]
    by_taint = cluster.server.sully(*arguments, "--dry-run")
    by_name = cluster.server.sully("untaint", "rule", rule["metadata"]["name"], "--dry-run")
    assert cluster.admin.request("DELETE", f"{POLICIES}/faulty").code == 200
    until(cluster.admin, POLICIES, lambda result: not result)
    cluster.effects(gpu2="NoSchedule")
    done = cluster.server.sully(*arguments)

    for asked in (by_taint, by_name):
        assert "is of policy faulty, which may create it again" in asked.stderr
    assert (done.returncode, "warning" in done.stderr) == (0, False)
    cluster.effects()


def test_a_device_with_a_fault_is_not_declared_healthy(cluster: Cluster) -> None:
    assert cluster.admin.request("POST", POLICIES, POLICY).code == 201
    cluster.publish(0)
    cluster.effects(gpu0="NoSchedule")
    done = cluster.server.sully("policies", "clear", "faulty", f"{NODE}/gpu-0")

    assert (done.returncode, done.stdout) == (1, "")
    assert f'"{DRIVER}/{NODE}/gpu-0" still has a fault: ecc; it keeps its taint' in done.stderr
    (rule,) = cluster.admin.request("GET", cluster.rules).json()["items"]
    assert "sully.dev/cleared-at" not in rule["metadata"]["annotations"]


@pytest.mark.parametrize("hours", [-1, 1], ids=["behind", "ahead"])
def test_decisions_depend_on_no_clock_of_the_client(cluster: Cluster, hours: int) -> None:
    spec = POLICY["spec"] | {"storm": {"devices": 1, "within": "1h"}, "limits": []}
    assert cluster.admin.request("POST", POLICIES, {**POLICY, "spec": spec}).code == 201
    cluster.publish(0)
    until(
        cluster.admin,
        POLICIES,
        lambda result: _reason(result, "sully.dev/Storm") == "TooManyFaults",
    )
    asyncio.run(_decide_elsewhere(cluster, hours, "resume", "faulty"))
    cluster.effects(gpu0="NoSchedule")
    cluster.publish()
    until(
        cluster.admin,
        POLICIES,
        lambda result: result["faulty"]["status"].get("phases", {}).get("AwaitingProof") == 1,
    )
    asyncio.run(_decide_elsewhere(cluster, hours, "clear", "faulty", f"{NODE}/gpu-0"))
    cluster.effects()


async def _decide_elsewhere(cluster: Cluster, hours: int, *arguments: str) -> None:
    """Run a command where the clock is wrong."""
    clock = FakeClock(datetime.now(UTC) + timedelta(hours=hours))
    config = load_kubeconfig([cluster.server.kubeconfig], required=True)
    async with AdaptingTransport(config.access()) as transport:
        session = Session(parsed("policies", *arguments), "policies", clock, transport)
        work = resume_policies if arguments[0] == "resume" else decide_devices
        assert await work(session) == 0


def test_a_plan_shows_it_first(cluster: Cluster, tmp_path: Path) -> None:
    cluster.publish(0)
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(POLICY))
    planned = json.loads(cluster.sully("plan", "-f", str(file), "-o", "json"))

    (policy,) = planned["policies"]
    (device,) = policy["devices"]
    assert (policy["selected"], device["device"]) == (3, f"{DRIVER}/{NODE}/gpu-0")
    assert [step["effect"] for step in device["steps"]] == ["None", "NoSchedule"]
    assert cluster.admin.request("GET", cluster.rules).json()["items"] == []


def test_a_false_positive_is_suppressed_where_sully_acts(cluster: Cluster, tmp_path: Path) -> None:
    """Elsewhere the plan, the status and the list report that it cannot be."""
    cluster.publish(0, fault=FAULT | {"effect": "NoSchedule"})
    until_ = {"key": "example.com/ecc", "until": "2031-01-01T00:00:00Z"}
    spec = {"mode": "Enforce", "selector": {"driver": DRIVER}, "suppress": [until_]}
    policy = {**POLICY, "spec": spec}
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(policy))
    ours = cluster.supports_suppression()

    planned = cluster.sully("plan", "-f", str(file))
    reported = "Suppressed on" if ours else "It would suppress nothing here: kube-scheduler"
    assert reported in planned
    assert cluster.admin.request("POST", POLICIES, policy).code == 201
    reason = "Suppressed" if ours else "NotSupported"
    until(cluster.admin, POLICIES, lambda result: _reason(result, "sully.dev/Suppressed") == reason)
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


def _reason(result: dict[str, Obj], type_: str) -> str:
    conditions = result["faulty"].get("status", {}).get("conditions", ())
    return next((one["reason"] for one in conditions if one["type"] == type_), "")


def test_every_device_only_on_purpose(cluster: Cluster) -> None:
    careless = {**POLICY, "spec": {**POLICY["spec"], "selector": {}}}

    answer = cluster.admin.request("POST", POLICIES, careless)
    assert answer.code == 422
    assert "set matchAll to true" in answer.body.decode()

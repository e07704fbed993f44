"""`sully explain` against a running control plane: its findings are true, and its remedies work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.terminals import environment, piped
from e2e.beside import plane as controlled
from e2e.cluster import Cluster, claim, deployment, devices, pod, rule, template
from sully.testing.cluster import Process

pytestmark = pytest.mark.e2e
FLEET = ("--simulated-nodes", "2", "--devices-per-node", "2")
HIDDEN = (
    "warning: not allowed to list deviceclasses, devicetaintrules, nodes,"
    " resourceslicepatches, resourceslices, taintrecords; the output does not consider them\n"
    "warning: only namespace asking may be listed; other namespaces are not considered\n"
)
QUICK = ("--simulated-start-seconds", "0", "--simulated-stop-seconds", "0.2")


@pytest.fixture(scope="module")
def plane(where: str) -> Iterator[Process]:
    with controlled(where, *FLEET, *QUICK) as up:
        yield up


@pytest.fixture
def cluster(plane: Process, any_kubectl: Path, home: Path) -> Iterator[Cluster]:
    made = Cluster(any_kubectl, plane.kubeconfig, home, "asking")
    made.create_namespace()
    made.listed(lambda slices: len(slices) == 2, "resourceslices")
    yield made
    made.delete("devicetaintrules", f"namespace/{made.namespace}")


def explain(cluster: Cluster, kind: str, name: str, *, text: str = "") -> dict[str, Any]:
    arguments = ("explain", kind, name, "-n", cluster.namespace, "-o", "json")
    done = piped(*arguments, env=environment(cluster.kubeconfig))
    assert (done.returncode, done.stderr) == (0, text)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_a_pod_waits_because_of_a_rule_and_the_advice_helps(cluster: Cluster) -> None:
    cluster.apply(rule("sick", "NoSchedule"), claim("gpu", devices()))
    cluster.apply(pod("first", "x", resourceClaimName="gpu"))
    cluster.wait("PodScheduled=false", "pod/first")

    result = explain(cluster, "pod", "first")
    assert (result["state"], result["cause"]) == ("Pending", "DevicesTainted")
    assert result["because"] == ["DeviceTaintRule/sick"]
    assert "from rule sick (created by kubernetes-admin)" in result["summary"][2]
    assert result["remedies"][0].startswith("Tolerate example.com/sick:NoSchedule from rule sick")

    toleration = {"key": "example.com/sick", "operator": "Equal", "effect": "NoSchedule"}
    cluster.apply(claim("tolerant", devices(1, toleration)))
    cluster.apply(pod("second", "x", resourceClaimName="tolerant"))
    cluster.wait("Ready", "pod/second")

    node = cluster.get("pod", "second")["spec"]["nodeName"]
    assert result["remedies"][0].endswith(f"would then be scheduled to node {node}.")
    running = explain(cluster, "pod", "second")
    assert (running["state"], running["cause"]) == ("Running", "TaintsDoNotEvict")
    assert (
        "It prevents scheduling of 1 Pending pod: asking/first."
        in (explain(cluster, "rule", "sick")["summary"])
    )


def test_a_pod_was_evicted_and_it_is_known_why(cluster: Cluster) -> None:
    cluster.apply(template("web", devices()), deployment("web"))
    cluster.rolled_out("web")
    (name,) = cluster.names("web")
    ((pool, device),) = cluster.devices(name)

    cluster.apply(rule("dead", "NoExecute", pool=pool, device=device))
    cluster.gone(name)

    result = explain(cluster, "pod", name)
    assert (result["state"], result["cause"]) == ("Evicted", "EvictedByTaint")
    assert result["because"] == ["DeviceTaintRule/dead"]
    assert f"/{pool}/{device} had taint example.com/sick:NoExecute" in result["summary"][1]
    assert explain(cluster, "rule", "dead")["cause"] == "Completed"
    assert explain(cluster, "device", f"{pool}/{device}")["cause"] == "PreventsScheduling"

    cluster.delete("devicetaintrule/dead")
    assert explain(cluster, "pod", name)["because"] == ["DeviceTaintRule/dead"]


def test_a_workload_owner_asks_about_his_own_pod(
    plane: Process, cluster: Cluster, tmp_path: Path
) -> None:
    mine = tmp_path / "kubeconfig"
    data = ("--data-dir", str(plane.data_dir))
    made = piped("kubeconfig", "--user", "dev", *data, "-o", str(mine), env=environment())
    assert made.returncode == 0, made.stderr
    cluster.run("create", "rolebinding", "dev", "--clusterrole=view", "--user=dev")
    cluster.apply(rule("sick", "NoSchedule"), claim("gpu", devices()))
    cluster.apply(pod("waits", "x", resourceClaimName="gpu"))
    cluster.wait("PodScheduled=false", "pod/waits")

    his = replace(cluster, kubeconfig=mine)
    result = explain(his, "pod", "waits", text=HIDDEN)

    assert (result["state"], result["cause"]) == ("Pending", "DevicesTainted")
    assert result["because"] == ["DeviceTaintRule/sick"]
    assert "4 devices have taint example.com/sick:NoSchedule from rule sick." in result["summary"]
    assert [f"warning: {note}" for note in result["notes"]] == HIDDEN.splitlines()
    assert explain(his, "rule", "sick", text=HIDDEN)["summary"] == [
        "You are not allowed to see rule sick; in namespace asking it prevents scheduling of 1 pod"
        " on devices: asking/waits."
    ]


def test_all_namespaces_are_considered_without_permission_to_list_records(
    cluster: Cluster,
) -> None:
    kinds = "pods,nodes,poddisruptionbudgets,devicetaintrules,deviceclasses,resourceslices"
    kinds += ",resourceclaims,resourceclaimtemplates,resourceslicepatches"
    cluster.run("create", "clusterrole", "reader", "--verb=list", f"--resource={kinds}")
    cluster.run("create", "clusterrolebinding", "reader", "--clusterrole=reader", "--user=reader")
    arguments = ("explain", "node", "worker-0000", "--as", "reader")

    done = piped(*arguments, env=environment(cluster.kubeconfig))

    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        "warning: not allowed to list evictionrecords, taintrecords;"
        " the output does not consider them\n"
    )


def test_a_cluster_that_nobody_accepted(cluster: Cluster) -> None:
    group = "cluster.open-cluster-management.io"
    cluster.apply(
        {
            "apiVersion": f"{group}/v1",
            "kind": "ManagedCluster",
            "metadata": {"name": "east"},
            "spec": {"hubAcceptsClient": False},
        },
        {
            "apiVersion": f"{group}/v1beta2",
            "kind": "ManagedClusterSetBinding",
            "metadata": {"name": "default"},
            "spec": {"clusterSet": "default"},
        },
        {
            "apiVersion": f"{group}/v1beta1",
            "kind": "Placement",
            "metadata": {"name": "web"},
            "spec": {},
        },
    )
    cluster.wait("PlacementSatisfied=false", "placement/web")
    cluster.shows(f"{group}/unreachable", ".spec.taints[*].key", "managedclusters", "east")

    east, web = explain(cluster, "cluster", "east"), explain(cluster, "placement", "web")

    assert (east["state"], east["cause"]) == ("Unreachable", "NotAccepted")
    assert (web["state"], web["cause"]) == ("Empty", "ClustersTainted")
    assert "by the hub because its condition" in web["summary"][2]
    assert web["remedies"][0].startswith(f"Tolerate {group}/unreachable:NoSelect")
    cluster.delete("managedcluster/east")

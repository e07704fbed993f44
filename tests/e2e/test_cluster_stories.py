"""What people see of the health of clusters, on simulated clusters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import manifests
from e2e.beside import plane as controlled
from e2e.cluster import Cluster
from sully.testing.cluster import Process

pytestmark = pytest.mark.e2e
GROUP = "cluster.open-cluster-management.io"
AVAILABLE = "ManagedClusterConditionAvailable"
SIMULATE_UNREACHABLE, UNHEALTHY = "sully.dev/unreachable", "sully.dev/unhealthy"
UNREACHABLE, UNAVAILABLE = f"{GROUP}/unreachable", f"{GROUP}/unavailable"
C0, C1, C2 = (f"mcl/member-cluster-000{number}" for number in range(3))


@pytest.fixture(scope="module")
def plane(where: str) -> Iterator[Process]:
    """Run a hub on which a lease expires after five seconds."""
    hub = ("--simulated-clusters", "4", "--simulated-cluster-lease-seconds", "1")
    with controlled(where, *hub) as up:
        yield up


@pytest.fixture
def hub(plane: Process, any_kubectl: Path, home: Path) -> Iterator[Cluster]:
    """Have all clusters in good health, before and after."""
    made = Cluster(any_kubectl, plane.kubeconfig, home)
    made.wait(AVAILABLE, "mcl", number=4)
    yield made
    made.annotate("mcl", {SIMULATE_UNREACHABLE: None, UNHEALTHY: None})
    made.wait(AVAILABLE, "mcl")


def until(hub: Cluster, path: str, value: str, what: str) -> None:
    """Wait until a field has a value."""
    hub.shows(value, path, *what.split("/"))


def tainted(hub: Cluster, what: str, key: str, effect: str = "NoSelect") -> None:
    """Wait until a cluster has a taint."""
    until(hub, f'.spec.taints[?(@.key=="{key}")].effect', effect, what)


def place(hub: Cluster, name: str, **spec: Any) -> str:
    """Make a placement on all clusters; return what to ask for it."""
    hub.apply(manifests.set_binding("global"), manifests.placement(name, spec))
    return f"placement/{name}"


def decided(hub: Cluster, name: str) -> set[str]:
    items = hub.get("placementdecisions", labelSelector=f"{GROUP}/placement={name}")["items"]
    return {one["clusterName"] for item in items for one in item["status"]["decisions"]}


def test_a_hub_has_sets_and_members(hub: Cluster) -> None:
    rows = [row.split() for row in hub.run("get", "mcl", "--no-headers").splitlines()]

    assert [row[1] for row in rows] == ["true"] * 4
    assert [row[3:5] for row in rows] == [["True", "True"]] * 4
    for name in ("default", "global"):
        text = "4 ManagedClusters selected"
        until(hub, ".status.conditions[0].message", text, f"mclset/{name}")
    result = hub.get("mcl", "member-cluster-0001")
    assert {claim["name"] for claim in result["status"]["clusterClaims"]} >= {"id.k8s.io", "region"}


def test_an_unreachable_cluster_is_removed_from_placements_and_returns(hub: Cluster) -> None:
    placement = place(hub, "everywhere")
    until(hub, ".status.numberOfSelectedClusters", "4", placement)

    hub.annotate(C1, {SIMULATE_UNREACHABLE: "true"})
    tainted(hub, C1, UNREACHABLE)
    hub.wait(f"{AVAILABLE}=Unknown", C1)
    until(hub, ".status.numberOfSelectedClusters", "3", placement)
    assert "member-cluster-0001" not in decided(hub, "everywhere")
    cluster = Cluster(hub.kubectl, hub.kubeconfig, hub.home, "member-cluster-0001")
    cluster.event("the connection check from the managed cluster to the hub cluster has failed")

    hub.annotate(C1, {SIMULATE_UNREACHABLE: None})
    hub.wait(f"{AVAILABLE}=True", C1)
    until(hub, ".status.numberOfSelectedClusters", "4", placement)


def test_a_cluster_in_bad_health_is_unavailable(hub: Cluster) -> None:
    forever = {"key": UNAVAILABLE, "operator": "Exists"}
    patient = place(hub, "patient", tolerations=[forever])
    strict = place(hub, "strict")
    until(hub, ".status.numberOfSelectedClusters", "4", strict)

    hub.annotate(C2, {UNHEALTHY: "etcd is slow"})

    tainted(hub, C2, UNAVAILABLE)
    until(hub, ".status.numberOfSelectedClusters", "3", strict)
    until(hub, ".status.numberOfSelectedClusters", "4", patient)
    conditions = hub.get(C2)["status"]["conditions"]
    (reported,) = [item for item in conditions if item["type"] == AVAILABLE]
    assert reported["message"] == "The kube-apiserver is not ok, status code: 500, etcd is slow"


def test_a_taint_removed_by_hand_returns(hub: Cluster) -> None:
    hub.annotate(C2, {UNHEALTHY: "true"})
    tainted(hub, C2, UNAVAILABLE)

    hub.patch(C2, {"spec": {"taints": [{"key": "x", "effect": "NoSelect"}]}})

    tainted(hub, C2, UNAVAILABLE)
    hub.patch(C2, {"spec": {"taints": None}})


def test_a_denied_cluster_becomes_unreachable_until_it_is_accepted_again(hub: Cluster) -> None:
    hub.patch(C0, {"spec": {"hubAcceptsClient": False}})
    hub.wait("HubAcceptedManagedCluster=False", C0)
    hub.wait(f"{AVAILABLE}=Unknown", C0)

    hub.patch(C0, {"spec": {"hubAcceptsClient": True}})

    hub.wait(f"{AVAILABLE}=True", C0)


def test_a_policy_taints_what_is_in_bad_health(hub: Cluster) -> None:
    hub.apply(
        {
            "apiVersion": "sully.dev/v1alpha1",
            "kind": "ClusterTaintPolicy",
            "metadata": {"name": "sick"},
            "spec": {
                "clusterSelector": {},
                "rules": [
                    {
                        "condition": {"type": AVAILABLE, "status": "False"},
                        "setAfterSeconds": 1,
                        "taint": {"key": "example.com/sick", "effect": "NoSelectIfNew"},
                    }
                ],
            },
        }
    )
    hub.annotate(C2, {UNHEALTHY: "true"})

    tainted(hub, C2, "example.com/sick", "NoSelectIfNew")
    text = "4 clusters selected, 1 tainted."
    until(hub, ".status.conditions[0].message", text, "clustertaintpolicy/sick")

    hub.delete("clustertaintpolicy/sick")
    hub.annotate(C2, {UNHEALTHY: None})
    until(hub, ".status.numberOfSelectedClusters", "4", place(hub, "healthy"))


def test_a_built_in_set_comes_back(hub: Cluster) -> None:
    before = hub.get("mclset", "global")["metadata"]["uid"]

    hub.delete("mclset/global")
    hub.created("mclset", "global")

    assert hub.get("mclset", "global")["metadata"]["uid"] != before


def test_after_a_restart_with_fewer_the_rest_is_removed(
    where: str, tmp_path: Path, any_kubectl: Path, home: Path
) -> None:
    with controlled(where, "--simulated-clusters", "3", data_dir=tmp_path) as up:
        hub = Cluster(any_kubectl, up.kubeconfig, home)
        hub.wait(AVAILABLE, "mcl", number=3)
    with controlled(where, "--simulated-clusters", "1", data_dir=tmp_path) as up:
        hub = Cluster(any_kubectl, up.kubeconfig, home)
        for number in (1, 2):
            hub.removed("mcl", f"member-cluster-000{number}")

        assert len(hub.get("mcl")["items"]) == 1

"""A hub that loses sight of a region: what its two flags keep from happening."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.beside import plane
from e2e.cluster import Cluster

pytestmark = pytest.mark.e2e
GROUP = "cluster.open-cluster-management.io"
AVAILABLE = "ManagedClusterConditionAvailable"
OBJECTS = (
    {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "ManagedClusterSetBinding",
        "metadata": {"name": "global", "namespace": "default"},
        "spec": {"clusterSet": "global"},
    },
    {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "Placement",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {},
    },
)
FLAGS = ("--default-cluster-toleration-seconds", "2", "--cluster-removal-budget-per-minute", "1")

HELD = '.status.conditions[?(@.type=="sully.dev/RemovalsDelayed")].message'


def selected(hub: Cluster, number: int) -> None:
    """Wait until the placement has so many clusters."""
    hub.shows(str(number), ".status.numberOfSelectedClusters", "placement", "web")


def test_a_hub_that_loses_contact_with_its_clusters_keeps_most(
    where: str, any_kubectl: Path, home: Path
) -> None:
    simulated_clusters = ("--simulated-clusters", "4", "--simulated-cluster-lease-seconds", "1")
    with plane(where, *simulated_clusters, *FLAGS) as up:
        hub = Cluster(any_kubectl, up.kubeconfig, home)
        hub.wait(AVAILABLE, "mcl")
        hub.apply(*OBJECTS)
        selected(hub, 4)

        hub.annotate("mcl", {"sully.dev/unreachable": "true"})
        hub.wait(f"{AVAILABLE}=Unknown", "mcl")

        # One may be removed in a minute; the other three wait, and are named.
        hub.becomes(lambda text: text.count("member-cluster-") == 3, HELD, "placement", "web")
        assert hub.get("placement", "web")["status"]["numberOfSelectedClusters"] == 3

        hub.annotate("mcl", {"sully.dev/unreachable": None})
        hub.wait(AVAILABLE, "mcl")
        selected(hub, 4)


def test_kubernetes_lets_all_of_them_go(where: str, any_kubectl: Path, home: Path) -> None:
    simulated_clusters = ("--simulated-clusters", "2", "--simulated-cluster-lease-seconds", "1")
    with plane(where, *simulated_clusters, *FLAGS, "--compat", "reference") as up:
        hub = Cluster(any_kubectl, up.kubeconfig, home)
        hub.wait(AVAILABLE, "mcl")
        hub.apply(*OBJECTS)
        selected(hub, 2)

        hub.annotate("mcl", {"sully.dev/unreachable": "true"})

        selected(hub, 0)
        conditions = hub.get("placement", "web")["status"]["conditions"]
        assert [condition["type"] for condition in conditions] == [
            "PlacementMisconfigured",
            "PlacementSatisfied",
        ]

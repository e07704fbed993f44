"""What people do with clusters that carry taints, on simulated clusters.

The manifests are those of the design: placements of the first version, taints with times that
people wrote. Waiting ninety seconds is shown with a clock that stands still, in
tests/controllers/placement; here it is two.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
import yaml

from e2e.beside import plane as controlled
from e2e.cluster import Cluster
from sully.cli.main import main
from sully.testing.cluster import Process

pytestmark = pytest.mark.e2e
GROUP = "cluster.open-cluster-management.io"
AVAILABLE = "ManagedClusterConditionAvailable"
UNREACHABLE, UNAVAILABLE = f"{GROUP}/unreachable", f"{GROUP}/unavailable"
C0, C1, C2 = (f"member-cluster-000{number}" for number in range(3))
ALL = [C0, C1, C2]
_NUMBERS = itertools.count()

BINDING = f"""
apiVersion: {GROUP}/v1beta2
kind: ManagedClusterSetBinding
metadata:
  name: global
spec:
  clusterSet: global
"""
MAINTAINING = """
spec:
  taints:
  - effect: NoSelect
    timeAdded: 2021-07-06T15:00:00+08:00
    key: maintaining
"""
GPU = """
spec:
  taints:
  - effect: NoSelect
    timeAdded: 2021-07-06T15:00:00+08:00
    key: gpu
    value: "true"
"""
FULL = """
spec:
  taints:
  - effect: NoSelectIfNew
    key: full
"""
CLEAN = '{"spec": {"taints": []}}'
ANYTHING = f"""
apiVersion: {GROUP}/v1alpha1
kind: Placement
metadata:
  name: anything
spec: ~
"""
SECURITY = f"""
apiVersion: {GROUP}/v1alpha1
kind: Placement
metadata:
  name: security
spec:
  tolerations:
  - key: maintaining
    operator: Exists
"""
TRAINING = f"""
apiVersion: {GROUP}/v1alpha1
kind: Placement
metadata:
  name: training
spec:
  tolerations:
  - key: gpu
    value: "true"
    operator: Equal
"""
PATIENT = f"""
apiVersion: {GROUP}/v1alpha1
kind: Placement
metadata:
  name: patient
spec:
  tolerations:
  - key: {UNREACHABLE}
    operator: Exists
    tolerationSeconds: 2
"""


@pytest.fixture(scope="module")
def plane(where: str) -> Iterator[Process]:
    """Run a hub on which a lease expires after five seconds."""
    hub = ("--simulated-clusters", "3", "--simulated-cluster-lease-seconds", "1")
    with controlled(where, *hub) as up:
        yield up


@pytest.fixture
def hub(plane: Process, any_kubectl: Path, home: Path) -> Iterator[Cluster]:
    """Have a namespace that may use all clusters; leave them healthy and without taints."""
    made = Cluster(any_kubectl, plane.kubeconfig, home, f"placing-{next(_NUMBERS)}")
    made.create_namespace()
    made.wait(AVAILABLE, "mcl", number=len(ALL))
    write(made, BINDING)
    yield made
    made.annotate("mcl", {"sully.dev/unreachable": None})
    for name in ALL:
        taint(made, name, CLEAN)
    made.wait(AVAILABLE, "mcl")
    made.delete(f"namespace/{made.namespace}")


def write(hub: Cluster, manifest: str) -> None:
    hub.apply(yaml.safe_load(manifest))


def taint(hub: Cluster, name: str, part: str) -> None:
    """Change a cluster by a part of its manifest."""
    # Times stay as they are written.
    hub.patch(f"mcl/{name}", yaml.load(part, yaml.BaseLoader))


def until(hub: Cluster, name: str, *clusters: str) -> None:
    """Wait until the decision of a placement names these clusters, in their order."""
    path = ".status.decisions[*].clusterName"
    hub.shows(",".join(clusters), path, "placementdecision", f"{name}-decision-1")


def decided(hub: Cluster, name: str) -> list[str]:
    items = hub.get("placementdecision", labelSelector=f"{GROUP}/placement={name}")["items"]
    return [one["clusterName"] for item in items for one in item["status"]["decisions"]]


def test_decisions_lose_a_cluster_under_maintenance_immediately(hub: Cluster) -> None:
    write(hub, ANYTHING)
    write(hub, SECURITY)
    until(hub, "anything", *ALL)
    until(hub, "security", *ALL)

    taint(hub, C1, MAINTAINING)

    until(hub, "anything", C0, C2)
    # Security settings must be everywhere, also where nobody works now.
    assert decided(hub, "security") == ALL
    (stamped,) = hub.get("mcl", C1)["spec"]["taints"]
    assert datetime.fromisoformat(stamped["timeAdded"]).year > 2021
    hub.event("Decision anything-decision-1 is updated with placement anything")

    taint(hub, C1, CLEAN)
    until(hub, "anything", *ALL)


def test_certain_clusters_are_only_for_those_who_ask(hub: Cluster) -> None:
    taint(hub, C2, GPU)

    write(hub, TRAINING)
    write(hub, ANYTHING)

    until(hub, "training", *ALL)
    until(hub, "anything", C0, C1)


def test_decisions_lose_an_unreachable_cluster_immediately_or_after_a_while(hub: Cluster) -> None:
    write(hub, ANYTHING)
    write(hub, PATIENT)
    until(hub, "anything", *ALL)
    until(hub, "patient", *ALL)

    hub.annotate(f"mcl/{C0}", {"sully.dev/unreachable": "true"})

    until(hub, "anything", C1, C2)
    until(hub, "patient", C1, C2)
    (lost,) = hub.get("mcl", C0)["spec"]["taints"]
    assert (lost["key"], lost["effect"]) == (UNREACHABLE, "NoSelect")
    left = {name: emptied(hub, name) for name in ("anything", "patient")}
    since = datetime.fromisoformat(lost["timeAdded"])
    assert (left["patient"] - since).total_seconds() >= 2
    assert left["anything"] < left["patient"]

    hub.annotate(f"mcl/{C0}", {"sully.dev/unreachable": None})
    until(hub, "anything", *ALL)
    until(hub, "patient", *ALL)


def emptied(hub: Cluster, name: str) -> datetime:
    """Return when the decision of a placement was last written."""
    result = hub.get("placementdecision", f"{name}-decision-1")
    return max(
        datetime.fromisoformat(entry["time"]) for entry in result["metadata"]["managedFields"]
    )


def test_an_agent_cannot_call_its_cluster_healthy(hub: Cluster) -> None:
    hub.annotate(f"mcl/{C0}", {"sully.dev/unhealthy": "disk"})
    hub.wait(f"{AVAILABLE}=False", f"mcl/{C0}")
    hub.shows(UNAVAILABLE, ".spec.taints[*].key", "mcl", C0)
    agent = Cluster(hub.kubectl, as_agent(hub, C0), hub.home, hub.namespace)
    result = agent.get("mcl", C0)
    taints = result["spec"]["taints"]

    result["spec"]["taints"] = []
    refused = agent.refused(result)
    assert f"cannot change the taints {UNAVAILABLE} and {UNREACHABLE}" in refused
    result["spec"]["taints"] = [*taints, {"key": "busy", "effect": "NoSelectIfNew"}]
    agent.replace(result)

    assert hub.get("mcl", C0)["spec"]["taints"][0] == taints[0]
    hub.annotate(f"mcl/{C0}", {"sully.dev/unhealthy": None})


def as_agent(hub: Cluster, name: str) -> Path:
    """Return a kubeconfig of the agent of a cluster."""
    made = hub.home / "agent.kubeconfig"
    who = f"system:open-cluster-management:{name}"
    arguments = ("kubeconfig", "--user", f"{who}:agent", "--group", who, "-o", str(made))
    assert main([*arguments, "--data-dir", str(hub.kubeconfig.parent)]) == 0
    return made


def test_those_who_run_there_stay_and_nobody_new_comes(hub: Cluster) -> None:
    write(hub, ANYTHING)
    until(hub, "anything", *ALL)

    taint(hub, C1, FULL)
    write(hub, SECURITY)

    until(hub, "security", C0, C2)
    assert decided(hub, "anything") == ALL


def test_decisions_are_read_back(hub: Cluster) -> None:
    write(hub, ANYTHING)
    until(hub, "anything", *ALL)

    assert hub.run("get", "placement").split() == [
        *("NAME", "SUCCEEDED", "REASON", "SELECTEDCLUSTERS"),
        *("anything", "True", "AllDecisionsScheduled", "3"),
    ]
    assert hub.run("get", "placementdecision", "-o", "name").split() == [
        f"placementdecision.{GROUP}/anything-decision-1"
    ]
    hub.delete("placementdecision/anything-decision-1")
    until(hub, "anything", *ALL)
    hub.delete("placement/anything")
    hub.removed("placementdecision", "anything-decision-1")


def test_why_and_what_if(hub: Cluster) -> None:
    write(hub, ANYTHING)
    until(hub, "anything", *ALL)
    page = f"/debug/placements/{hub.namespace}/anything"

    taint(hub, C1, MAINTAINING)
    until(hub, "anything", C0, C2)
    answer = hub.request("GET", page)
    results = {verdict["cluster"]: verdict["message"] for verdict in answer["verdicts"]}
    assert results[C1] == "taint maintaining:NoSelect is not tolerated"

    changes = {"changes": [{"delete": {"cluster": C0}}]}
    reported = hub.request("POST", page, changes)
    mine = [
        placement for placement in reported["placements"] if placement["namespace"] == hub.namespace
    ]
    assert [(item["removed"], item["after"]) for item in mine] == [([C0], [C2])]
    assert decided(hub, "anything") == [C0, C2]

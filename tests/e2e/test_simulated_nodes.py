"""`sully up` with simulated nodes, and with the demo."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.beside import SHORT
from e2e.beside import plane as controlled
from e2e.cluster import DRIVER, Cluster, deployment, devices, rule, template
from e2e.watching import left
from sully.testing.patience import PATIENCE

pytestmark = pytest.mark.e2e
QUICK = ("--simulated-start-seconds", "0", "--simulated-stop-seconds", "0.2")
UNHURRIED = {"spec": {"taint": {"timeAdded": "2100-01-01T00:00:00Z"}}}
"""Tolerations of a taint begin then."""


@pytest.fixture(scope="module")
def teams(
    where: str, any_kubectl: Path, home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Run the demo that the tests only look at."""
    data = tmp_path_factory.mktemp("demo")
    with controlled(where, "--demo", *QUICK, data_dir=data, crew=SHORT) as up:
        result = complete(Cluster(any_kubectl, up.kubeconfig, home))
        # Pods that do not tolerate it are evicted now. The five minutes that others
        # tolerate it may be over before a busy machine has looked.
        result.listed(left("worker-0003"), "pods", "team-chat", labelSelector="app=chat")
        result.patch("devicetaintrule/worker-0003-maintenance", UNHURRIED)
        yield result


def complete(result: Cluster) -> Cluster:
    """Wait until a demo is complete."""
    result.wait("Ready", "nodes")
    result.created("devicetaintrules", "worker-0003-maintenance")
    return result


def test_the_demo_has_a_fleet_in_use(teams: Cluster) -> None:
    nodes = teams.get("nodes")["items"]
    classes = {item["metadata"]["name"] for item in teams.get("deviceclasses")["items"]}
    running = teams.get("pods", namespace="*", fieldSelector="status.phase=Running")["items"]

    assert len(nodes) == 12
    assert {node["metadata"]["labels"]["gpu.sully.dev/model"] for node in nodes} == {
        "a100",
        "h100",
        "l4",
    }
    assert {"gpu.sully.dev", "gpu-a100", "gpu-h100", "gpu-l4"} <= classes
    assert {item["metadata"]["namespace"] for item in running} == {
        "team-chat",
        "team-speech",
        "team-vision",
    }


def test_the_demo_has_failures(teams: Cluster) -> None:
    slices = teams.get("resourceslices")["items"]
    sick = [d for slice_ in slices for d in slice_["spec"]["devices"] if d.get("taints")]
    patches = teams.get("resourceslicepatches")["items"]
    (budget,) = teams.get("pdb", namespace="*")["items"]

    assert [item["taints"][0]["key"] for item in sick] == ["gpu.sully.dev/ecc-errors"] * 2
    assert {patch["metadata"]["name"] for patch in patches} == {"burn-in", "rack-r7"}
    assert budget["spec"]["minAvailable"] == 4
    teams.wait("EvictionInProgress=false", "devicetaintrule/a100-firmware")
    status, reason, message = teams.condition("a100-firmware")
    assert (status, reason) == ("False", "NoEffect")
    assert "32 published devices selected" in message


def test_the_demo_has_a_pod_that_waits_and_reports_why(teams: Cluster) -> None:
    teams.wait("PodScheduled=false", "pods", namespace="team-lab")
    (waiting,) = teams.get("pods", namespace="team-lab")["items"]
    (reported,) = [c for c in waiting["status"]["conditions"] if c["type"] == "PodScheduled"]

    assert reported["reason"] == "Unschedulable"
    assert "12 cannot allocate all claims" in reported["message"]


def test_those_who_tolerate_the_maintenance_stay_for_a_while(teams: Cluster) -> None:
    for app in ("chat", "chat-training"):
        teams.rolled_out(app, "team-chat")

    teams.listed(left("worker-0003"), "pods", "team-chat", labelSelector="app=chat")
    teams.wait("EvictionInProgress=true", "devicetaintrule/worker-0003-maintenance")


def test_another_start_of_the_demo_changes_nothing(
    where: str, any_kubectl: Path, home: Path, tmp_path: Path
) -> None:
    kinds = (
        "nodes,resourceslices,deviceclasses,namespaces,resourceclaimtemplates,poddisruptionbudgets"
    )
    shown = ("get", kinds, "-A", "-o", "custom-columns=N:.metadata.name,G:.metadata.generation")
    uids = ("get", kinds, "-A", "-o", "custom-columns=U:.metadata.uid")
    # Not the demo of the other tests: this one is stopped.
    with controlled(where, "--demo", *QUICK, data_dir=tmp_path, crew=SHORT) as up:
        first = complete(Cluster(any_kubectl, up.kubeconfig, home))
        before = first.run(*shown), first.run(*uids)
        first.delete("devicetaintrule/worker-0003-closed")
        assert up.stop() == 0

    with controlled(where, "--demo", *QUICK, data_dir=tmp_path, crew=SHORT) as up:
        again = Cluster(any_kubectl, up.kubeconfig, home)
        # What was deleted by hand comes back; the rest is as it was.
        again.created("devicetaintrules", "worker-0003-closed")
        assert (again.run(*shown), again.run(*uids)) == before


def test_pods_evicted_from_a_node_are_rescheduled_to_others(
    where: str, any_kubectl: Path, home: Path
) -> None:
    with controlled(where, "--simulated-nodes", "2", "--devices-per-node", "4", *QUICK) as up:
        cluster = Cluster(any_kubectl, up.kubeconfig, home)
        cluster.apply(template("app", devices(1)), deployment("app", 4))
        cluster.rolled_out("app")
        pool = cluster.devices(*cluster.names("app"))[0][0]
        terminating = [name for name in cluster.names("app") if cluster.devices(name)[0][0] == pool]

        cluster.apply(rule("node", "NoExecute", driver=DRIVER, pool=pool))

        cluster.gone(*terminating)
        cluster.rolled_out("app")
        now = cluster.pods("app")

    assert len(now) == 4
    assert {item["spec"]["nodeName"] for item in now}.isdisjoint({pool})


def test_a_smaller_fleet_takes_what_belongs_to_a_node_along(
    where: str, any_kubectl: Path, home: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    two = ("--simulated-nodes", "2", "--devices-per-node", "2")
    with controlled(where, *two, data_dir=data) as up:
        whole = Cluster(any_kubectl, up.kubeconfig, home)
        whole.listed(lambda slices: len(slices) == 2, "resourceslices")
    fewer = ("--simulated-nodes", "1", "--devices-per-node", "2")
    with controlled(where, *fewer, data_dir=data) as up:
        cluster = Cluster(any_kubectl, up.kubeconfig, home)
        cluster.removed("node", "worker-0001")
        cluster.removed("resourceslice", f"worker-0001-{DRIVER}-0")
        cluster.removed("lease", "worker-0001", "kube-node-lease")
        assert len(cluster.get("nodes")["items"]) == 1


def test_without_the_flag_nodes_stay_as_they_are(
    where: str, any_kubectl: Path, home: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    with controlled(where, "--simulated-nodes", "2", data_dir=data) as up:
        Cluster(any_kubectl, up.kubeconfig, home).wait("Ready", "nodes", number=2)
    with controlled(where, data_dir=data) as up:
        nodes = Cluster(any_kubectl, up.kubeconfig, home).get("nodes")["items"]

    assert len(nodes) == 2


WRONG_USAGE = {
    "no number": (
        ("--simulated-nodes", "many"),
        'invalid number "many" (a whole number, 0 to 10000)',
    ),
    "too many": (("--simulated-nodes", "10001"), "a whole number, 0 to 10000"),
    "too many devices": (("--simulated-nodes", "1", "--devices-per-node", "513"), "0 to 512"),
    "no time": (
        ("--simulated-nodes", "1", "--simulated-stop-seconds", "-1"),
        "invalid number of seconds",
    ),
    "devices of no node": (("--devices-per-node", "1"), "requires --simulated-nodes"),
    "demo in compatibility mode": (
        ("--demo", "--compat", "reference"),
        "--demo cannot be used with --compat reference",
    ),
}


@pytest.mark.parametrize("case", WRONG_USAGE)
def test_wrong_usage(case: str, tmp_path: Path) -> None:
    flags, reported = WRONG_USAGE[case]
    command = [sys.executable, "-m", "sully.cli.main", "up", "--data-dir", str(tmp_path / "d")]

    done = subprocess.run([*command, *flags], capture_output=True, text=True, timeout=PATIENCE)

    assert (done.returncode, done.stdout) == (2, "")
    assert reported in done.stderr
    assert not (tmp_path / "d").exists()

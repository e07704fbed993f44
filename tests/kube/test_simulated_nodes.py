"""`sully simulate-nodes` on servers that are not ours."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

import manifests
from e2e.raw import Raw
from e2e.watching import Named, until
from kube.emptied import emptied, make, named
from kube.process import Foreign
from sully.testing.remote import simulated_nodes

Obj = dict[str, Any]
NODES, SLICES = "/api/v1/nodes", "/apis/resource.k8s.io/v1/resourceslices"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
SPACE = "simulated"
PODS = f"/api/v1/namespaces/{SPACE}/pods"
TEMPLATES = f"/apis/resource.k8s.io/v1/namespaces/{SPACE}/resourceclaimtemplates"
DRIVER = "gpu.example.com"
QUICK = ("--start-seconds", "0", "--stop-seconds", "0.1", "--driver", DRIVER)


@pytest.fixture
def admin(there: Foreign) -> Iterator[Raw]:
    """Return the admin's access, with a namespace and nothing in it."""
    with emptied(there, SPACE, PODS, TEMPLATES) as admin:
        yield admin


def pod(name: str, *, devices: int = 0, exits: str = "", **spec: Any) -> Obj:
    annotations = {"sully.dev/simulated-exit": exits} if exits else {}
    template = f"gpus-{devices}" if devices else ""
    return manifests.pod(
        name, manifests.pod_spec(template=template, **spec), annotations=annotations
    )


def template(devices: int) -> Obj:
    return manifests.claim_template(f"gpus-{devices}", manifests.claim_spec(DRIVER, count=devices))


def is_ready(pod: Obj) -> bool:
    conditions = {
        condition["type"]: condition["status"]
        for condition in pod["status"].get("conditions") or ()
    }
    return pod["status"]["phase"] == "Running" and conditions.get("Ready") == "True"


def phase(pods: Named, name: str) -> str:
    return str(pods[name]["status"]["phase"])


def test_pods_run_on_simulated_nodes_and_terminate(there: Foreign, admin: Raw) -> None:
    make(admin, TEMPLATES, template(2))
    with simulated_nodes(there.kubeconfig, "--nodes", "2", "--devices", "3", *QUICK):
        make(admin, PODS, pod("plain"))
        make(admin, PODS, pod("gpus", devices=2))
        make(admin, PODS, pod("done", exits="0@10ms", restartPolicy="Never"))
        until(admin, PODS, lambda pods: is_ready(pods["plain"]) and is_ready(pods["gpus"]))
        pods = until(admin, PODS, lambda pods: phase(pods, "done") == "Succeeded")
        nodes = named(admin, NODES)

        assert set(nodes) == {"simulated-0000", "simulated-0001"}
        assert {pod["spec"]["nodeName"] for pod in pods.values()} <= set(nodes)
        admin.request("DELETE", f"{PODS}/gpus")
        until(admin, PODS, lambda pods: "gpus" not in pods)


def test_ctrl_c_deletes_what_was_created_and_nothing_else(there: Foreign, admin: Raw) -> None:
    foreign_class = {"metadata": {"name": "other.example.com"}, "spec": {"selectors": []}}
    admin.request("POST", CLASSES, foreign_class)
    with simulated_nodes(there.kubeconfig, "--nodes", "1", "--label", "rack=r7", *QUICK) as crew:
        make(admin, PODS, pod("placed", nodeSelector={"rack": "r7"}))
        make(admin, PODS, pod("waiting", nodeSelector={"rack": "r8"}))
        until(admin, PODS, lambda pods: is_ready(pods["placed"]))
        assert "simulated-0000" in named(admin, LEASES)
        assert crew.stop(signal.SIGINT) == 0

    assert named(admin, NODES) == named(admin, SLICES) == {}
    assert "simulated-0000" not in named(admin, LEASES)
    assert set(named(admin, PODS)) == {"waiting"}
    assert "other.example.com" in named(admin, CLASSES)
    assert DRIVER not in named(admin, CLASSES)
    admin.request("DELETE", f"{CLASSES}/other.example.com")


def test_kept_nodes_are_taken_over_and_deleted_later(there: Foreign, admin: Raw) -> None:
    with simulated_nodes(there.kubeconfig, "--nodes", "2", "--keep", *QUICK) as crew:
        assert crew.stop(signal.SIGTERM) == 0
    before = {name: entry["metadata"]["uid"] for name, entry in named(admin, NODES).items()}
    assert len(before) == 2

    with simulated_nodes(there.kubeconfig, "--nodes", "1", "--keep", *QUICK):
        until(admin, NODES, lambda nodes: len(nodes) == 1)
        make(admin, PODS, pod("late"))
        until(admin, PODS, lambda pods: is_ready(pods["late"]))
    after = {name: entry["metadata"]["uid"] for name, entry in named(admin, NODES).items()}
    assert after.items() <= before.items()

    done = there.sully("simulate-nodes", "--delete", "--driver", DRIVER)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("1 simulated node deleted\n")
    assert named(admin, NODES) == named(admin, SLICES) == {}


def test_processes_with_different_prefixes_do_not_disturb_each_other(
    there: Foreign, admin: Raw
) -> None:
    with simulated_nodes(there.kubeconfig, "--nodes", "1", "--name-prefix", "left", *QUICK):
        with simulated_nodes(there.kubeconfig, "--nodes", "1", "--name-prefix", "right", *QUICK):
            make(admin, PODS, pod("right", nodeSelector={"kubernetes.io/hostname": "right-0000"}))
            make(admin, PODS, pod("left", nodeSelector={"kubernetes.io/hostname": "left-0000"}))
            until(admin, PODS, lambda pods: all(map(is_ready, pods.values())) and len(pods) == 2)

        assert set(named(admin, NODES)) == {"left-0000"}
        assert [item["spec"]["nodeName"] for item in named(admin, SLICES).values()] == ["left-0000"]
        assert DRIVER in named(admin, CLASSES)
        assert is_ready(named(admin, PODS)["left"])
    assert named(admin, NODES) == named(admin, SLICES) == {}
    assert DRIVER not in named(admin, CLASSES)


@pytest.fixture
def machine(admin: Raw) -> Iterator[str]:
    """Make a node that is not simulated."""
    make(admin, NODES, {"metadata": {"name": "machine"}})
    yield "machine"
    admin.request("DELETE", f"{NODES}/machine")


def test_a_cluster_with_other_nodes_is_refused(there: Foreign, admin: Raw, machine: str) -> None:
    make(admin, PODS, pod("other", nodeName=machine))
    refused = there.sully("simulate-nodes", "--nodes", "1", "--driver", DRIVER)

    assert refused.returncode == 1
    assert "the cluster has 1 node that is not simulated: machine\n" in refused.stderr
    assert set(named(admin, NODES)) == {machine}
    with simulated_nodes(there.kubeconfig, "--nodes", "1", "--yes", *QUICK):
        node = named(admin, NODES)["simulated-0000"]
        taints = [taint["key"] for taint in node["spec"]["taints"]]
        assert "sully.dev/simulated" in taints
        make(admin, PODS, pod("tolerant", tolerations=[{"operator": "Exists"}]))
        until(admin, PODS, lambda pods: is_ready(pods["tolerant"]))
        # What is on other nodes is left to others.
        assert phase(named(admin, PODS), "other") == "Pending"
    assert set(named(admin, NODES)) == {machine}
    assert phase(named(admin, PODS), "other") == "Pending"


def test_a_name_of_another_node_is_refused(there: Foreign, admin: Raw, machine: str) -> None:
    make(admin, NODES, {"metadata": {"name": "gpu-0000"}})
    refused = there.sully("simulate-nodes", "--yes", "--name-prefix", "gpu")
    admin.request("DELETE", f"{NODES}/gpu-0000")

    assert refused.returncode == 1
    assert 'error: node "gpu-0000" exists and is not simulated\n' in refused.stderr


@pytest.mark.parametrize(
    ("flags", "reported"),
    [
        (["--driver", "No Driver"], "No Driver"),
        (["--label", "a b=c"], "a b"),
    ],
    ids=["driver", "label"],
)
def test_what_the_server_rejects_is_reported_before_anything_is_created(
    there: Foreign, admin: Raw, flags: list[str], reported: str
) -> None:
    refused = there.sully("simulate-nodes", *flags)

    assert refused.returncode == 1
    assert refused.stderr.startswith("error: ")
    assert reported in refused.stderr
    assert named(admin, NODES) == named(admin, SLICES) == {}

"""`sully cordon`, `drain` and `uncordon` on every kind of server: ours, a stand-in, Kubernetes."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

import manifests
from cli.terminals import terminal
from e2e.raw import Raw
from e2e.watching import Named, until
from kube.conftest import SERVERS
from kube.process import Foreign
from sully.domain.drain.rules import decode_state
from sully.runtime.clock import SystemClock
from sully.testing.cluster import process
from sully.testing.remote import running, simulated_nodes

Obj = dict[str, Any]
OURS = "sully"
SPACE, DRIVER = "drain", "drain.example.com"
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{SPACE}/resourceclaims"
TEMPLATES = f"/apis/resource.k8s.io/v1/namespaces/{SPACE}/resourceclaimtemplates"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{SPACE}/deployments"
BUDGETS = f"/apis/policy/v1/namespaces/{SPACE}/poddisruptionbudgets"
PODS = f"/api/v1/namespaces/{SPACE}/pods"
NODES = ("--nodes", "3", "--devices", "2", "--driver", DRIVER, "--name-prefix", "drain")
FAST = ("--start-seconds", "0", "--stop-seconds", "0.1")
MODEL = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].index == 1'


@dataclass(frozen=True)
class Cluster:
    """A server with simulated nodes, and a Deployment on some of their devices."""

    server: Foreign
    admin: Raw

    def sully(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.server.sully(*words)

    def make(self, path: str, body: Obj) -> None:
        answer = self.admin.request("POST", path, body)
        assert answer.code == 201, answer.body

    def budget(self, **spec: Any) -> None:
        """Create a budget for the Deployment, and wait until it was counted."""
        self.make(
            BUDGETS,
            {
                "metadata": {"name": "web"},
                "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
            },
        )
        until(
            self.admin,
            BUDGETS,
            lambda result: result["web"].get("status", {}).get("currentHealthy") == 2,
        )

    def devices(self) -> list[str]:
        """Return the devices of the Deployment as arguments of a command."""
        return sorted(devices_of(until(self.admin, CLAIMS, lambda claims: len(claims) == 2)))

    def without(self, devices: list[str]) -> None:
        """Wait until no claim has these devices: a claim is deleted some time after its pod."""
        until(self.admin, CLAIMS, lambda claims: not devices_of(claims) & set(devices))

    def uids(self) -> set[str]:
        """Return the pods that run."""
        return {pod["metadata"]["uid"] for pod in self.admin.request("GET", PODS).json()["items"]}

    def rules(self) -> list[Obj]:
        return list(self.admin.request("GET", self.server.rules()).json()["items"])

    def published(self, *flags: str) -> dict[str, Obj]:
        """Return devices as `sully devices` lists them, by name."""
        done = self.sully("devices", f"{DRIVER}/*/*", *flags, "-o", "json")
        assert done.returncode == 0, done.stderr
        listed = json.loads(done.stdout)["devices"]
        return {f"{x['driver']}/{x['pool']}/{x['device']}": x for x in listed}


def devices_of(claims: Named) -> set[str]:
    """Return the devices that are allocated to claims."""
    statuses = [claim.get("status", {}) for claim in claims.values()]
    return {
        f"{x['driver']}/{x['pool']}/{x['device']}"
        for status in statuses
        if "allocation" in status
        for x in status["allocation"]["devices"]["results"]
    }


@pytest.fixture(scope="module", params=[pytest.param(OURS, marks=pytest.mark.e2e), *SERVERS])
def server(request: pytest.FixtureRequest) -> Iterator[Foreign]:
    if request.param == OURS:
        with process() as up:
            yield Foreign(up.data_dir, up.url)
        return
    name = "kubernetes" if request.param == "kubernetes" else "stand_in"
    yield request.getfixturevalue(name)


@pytest.fixture(scope="module")
def nodes(server: Foreign) -> Iterator[Foreign]:
    """Add nodes and a template to a server."""
    admin = server.admin()
    admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": SPACE}})
    until(admin, f"/api/v1/namespaces/{SPACE}/serviceaccounts", lambda result: "default" in result)
    template = manifests.claim_template("gpu", manifests.claim_spec(DRIVER, "gpu"))
    admin.request("POST", TEMPLATES, template)
    with simulated_nodes(server.kubeconfig, *NODES, *FAST, "--yes"):
        yield server


@pytest.fixture
def cluster(nodes: Foreign) -> Iterator[Cluster]:
    """Run a Deployment with two pods, and delete everything afterwards."""
    admin = nodes.admin()
    spec = manifests.pod_spec(
        template="gpu", terminationGracePeriodSeconds=1, tolerations=[{"operator": "Exists"}]
    )
    pods = manifests.pod_template({"app": "web"}, spec)
    ready = Cluster(nodes, admin)
    ready.make(DEPLOYMENTS, manifests.workload("Deployment", "web", pods, replicas=2))
    until(admin, PODS, lambda result: sum(map(_is_ready, result.values())) == 2)
    yield ready
    admin.request("DELETE", f"{DEPLOYMENTS}/web")
    admin.request("DELETE", f"{BUDGETS}/web")
    admin.request("DELETE", nodes.rules())
    admin.request("DELETE", PODS, {"gracePeriodSeconds": 0})
    for path in (PODS, CLAIMS, nodes.rules()):
        until(admin, path, lambda result: not result)


def _is_ready(pod: Obj) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return "deletionTimestamp" not in pod["metadata"] and any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )


def test_cordon_and_uncordon_by_every_criterion(cluster: Cluster) -> None:
    published = cluster.published()
    names = sorted(published)
    uuid = published[f"{DRIVER}/drain-0001/gpu-1"]["attributes"]["uuid"]["value"]
    own = [name for name in names if "/drain-0001/" in name]
    selections = {
        ("node", "drain-0001"): own,
        ("class", DRIVER): names,
        ("device", "drain-0001/gpu-1"): own[1:],
        ("device", "--cel", MODEL): [name for name in names if name.endswith("gpu-1")],
        ("device", "--uuid", uuid): own[1:],
    }
    for words, devices in selections.items():
        done = cluster.sully("cordon", *words, "--yes")
        assert done.returncode == 0, done.stderr
        assert sorted(cluster.published("--tainted")) == devices, words
        taints = [rule["spec"]["taint"] for rule in cluster.rules()]
        assert {(x["key"], x["effect"]) for x in taints} == {
            ("sully.dev/unschedulable", "NoSchedule")
        }
        done = cluster.sully("uncordon", *words)
        assert done.returncode == 0, done.stderr
        assert cluster.rules() == [], words


def test_a_large_cordon_has_to_be_confirmed(cluster: Cluster) -> None:
    done = cluster.sully("cordon", "device", "*")

    assert done.returncode == 2
    assert "of 6 devices, and there is no terminal to ask for confirmation" in done.stderr
    assert cluster.rules() == []


def test_a_device_stays_cordoned_when_its_node_is_given_back(cluster: Cluster) -> None:
    for words in (("device", "drain-0001/gpu-1"), ("node", "drain-0001")):
        assert cluster.sully("cordon", *words, "--yes").returncode == 0

    done = cluster.sully("uncordon", "node", "drain-0001")

    assert done.returncode == 0
    assert "1 device uncordoned." in done.stdout
    assert "other taints still prevent scheduling" in done.stderr
    assert sorted(cluster.published("--tainted")) == [f"{DRIVER}/drain-0001/gpu-1"]

    # Also if the command is repeated, as a script may do.
    again = cluster.sully("uncordon", "node", "drain-0001")
    assert again.returncode == 2
    assert "other commands cordoned devices of this selection" in again.stderr
    assert sorted(cluster.published("--tainted")) == [f"{DRIVER}/drain-0001/gpu-1"]
    assert cluster.sully("uncordon", "node", "drain-0001", "--yes").returncode == 0
    assert cluster.rules() == []


def test_one_device_of_a_cordoned_node_is_given_back(cluster: Cluster) -> None:
    assert cluster.sully("cordon", "node", "drain-0001", "--yes").returncode == 0
    others = set(cluster.published("--tainted")) - {f"{DRIVER}/drain-0001/gpu-1"}
    words = ("uncordon", "device", "drain-0001/gpu-1")

    refused = cluster.sully(*words)
    assert (refused.returncode, len(cluster.rules())) == (2, 1)
    assert "there is no terminal to ask for confirmation" in refused.stderr

    done = cluster.sully(*words, "--yes")
    assert done.returncode == 0, done.stderr
    assert others
    assert set(cluster.published("--tainted")) == others

    undone = cluster.sully("uncordon", "node", "drain-0001")
    assert (undone.returncode, cluster.rules()) == (0, [])


def test_drain_honors_a_budget_and_waits_for_replacements(cluster: Cluster) -> None:
    cluster.budget(maxUnavailable=1)
    devices, before = cluster.devices(), cluster.uids()

    done = cluster.sully("drain", "device", *devices, "--rate", "0", "--yes")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 pods evicted, 2 running again." in done.stdout
    cluster.without(devices)
    assert not cluster.uids() & before
    undone = cluster.sully("uncordon", "device", *devices)
    assert undone.returncode == 0, undone.stderr
    assert cluster.rules() == []


def test_a_budget_that_blocks_ends_in_a_timeout_or_in_no_execute(cluster: Cluster) -> None:
    cluster.budget(maxUnavailable=0)
    devices, before = cluster.devices(), cluster.uids()
    words = ("drain", "device", *devices, "--rate", "0", "--yes")
    with running(*words, kubeconfig=cluster.server.kubeconfig) as drain:
        drain.wait_for("disruption budget web")
        assert drain.stop(signal.SIGINT) == 130

    # On a busy machine no eviction may be answered by then.
    done = cluster.sully(*words, "--timeout", "1s")

    assert done.returncode == 1, done.stdout + done.stderr
    assert "Timed out; pods remain on the devices" in done.stdout
    assert cluster.uids() == before
    done = cluster.sully(*words, "--timeout", "1s", "--then", "NoExecute")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not cluster.uids() & before


SCRATCH = {"spec": {"template": {"spec": {"volumes": [{"name": "scratch", "emptyDir": {}}]}}}}


def test_data_in_empty_dirs_is_deleted_only_if_the_user_agrees(cluster: Cluster) -> None:
    old = cluster.uids()
    path, type_ = f"{DEPLOYMENTS}/web", "application/strategic-merge-patch+json"
    assert cluster.admin.request("PATCH", path, SCRATCH, type_).code == 200
    until(
        cluster.admin,
        PODS,
        lambda pods: sum(map(_is_ready, pods.values())) == 2 and not cluster.uids() & old,
    )
    devices, before = cluster.devices(), cluster.uids()
    words = ("drain", "device", *devices, "--rate", "0")

    for flags in ((), ("--yes",)):
        done = cluster.sully(*words, *flags)
        assert done.returncode == 1, done.stdout + done.stderr
        assert f"would lose the data in them: {SPACE}/web-" in done.stderr
        assert "use --delete-emptydir-data to evict them" in done.stderr
    shown = cluster.sully(*words, "--dry-run")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert f"2 pods lose the data in emptyDir volumes: {SPACE}/web-" in shown.stderr
    env = {"KUBECONFIG": str(cluster.server.kubeconfig)}
    with terminal(*words, env=env) as screen:
        screen.wait_for(f"2 pods lose the data in emptyDir volumes: {SPACE}/web-")
        screen.wait_for("Type the number of pods to evict (2) to continue: ")
        screen.type("\n")
        screen.wait_for("The answer was not 2: nothing changed.")
        assert screen.end() == 1
    assert cluster.rules() == []
    assert cluster.uids() == before
    done = cluster.sully(*words, "--yes", "--delete-emptydir-data")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not cluster.uids() & before


def test_idle_devices_are_waited_for(cluster: Cluster) -> None:
    before = cluster.uids()
    words = ("drain", "device", *cluster.devices(), "--when-idle", "--timeout", "1s", "--yes")

    done = cluster.sully(*words)

    assert done.returncode == 1, done.stdout + done.stderr
    assert "pods of Deployment/web do not finish by themselves" in done.stderr
    assert "2 pods have not finished." in done.stdout
    assert cluster.uids() == before


def test_rules_name_who_created_them(cluster: Cluster) -> None:
    words = ("node", "drain-0001", "--reason", "firmware", "--yes")
    assert cluster.sully("cordon", *words).returncode == 0

    listed = json.loads(cluster.sully("rules", "-o", "json").stdout)["sources"]

    assert [(x["createdBy"], x["description"]) for x in listed] == [
        ("kubernetes-admin", "firmware")
    ]


def test_a_drain_that_is_interrupted_is_resumed_at_its_rate(cluster: Cluster) -> None:
    devices, before = cluster.devices(), cluster.uids()
    words = ("drain", "device", *devices, "--rate", "1/1h", "--yes")

    with running(*words, kubeconfig=cluster.server.kubeconfig) as drain:
        drain.wait_for("1/2 pods evicted")
        assert drain.stop(signal.SIGINT) == 130
        drain.wait_for("to resume:")
        drain.wait_for("to undo:")

    # The rate counts across runs.
    done = cluster.sully(*words, "--timeout", "1s")
    assert done.returncode == 1, done.stdout + done.stderr
    assert len(cluster.uids() & before) == 1
    done = cluster.sully("drain", "device", *devices, "--rate", "0", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not cluster.uids() & before


def test_rate_and_burst_take_their_time(cluster: Cluster) -> None:
    clock, words = SystemClock(), ("device", *cluster.devices(), "--yes", "--wait-ready", "0s")
    start = clock.monotonic()

    done = cluster.sully("drain", *words, "--rate", "1/3s")

    assert done.returncode == 0, done.stdout + done.stderr
    assert clock.monotonic() - start >= 3


def test_a_burst_is_spent_and_recorded(cluster: Cluster) -> None:
    clock, words = SystemClock(), ("device", *cluster.devices(), "--yes", "--wait-ready", "0s")
    start = clock.now()

    # Without the burst the second pod would have to wait for an hour.
    done = cluster.sully("drain", *words, "--rate", "1/1h", "--burst", "2")

    assert done.returncode == 0, done.stdout + done.stderr
    state = decode_state([rule["metadata"]["annotations"] for rule in cluster.rules()])
    assert state.evicted == 2
    assert state.full_at is not None
    assert start <= state.full_at - timedelta(hours=2) <= clock.now()


def test_a_dry_run_changes_nothing(cluster: Cluster) -> None:
    before = cluster.uids()

    done = cluster.sully("drain", "device", *cluster.devices(), "--dry-run")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 pods would be evicted" in done.stdout
    assert cluster.rules() == []
    assert cluster.uids() == before

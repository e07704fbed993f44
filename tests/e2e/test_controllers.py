"""Controllers in processes of their own: they work, hand over, and outlast their server."""

from __future__ import annotations

import re
import signal
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from e2e.raw import Raw
from e2e.watching import until
from manifests import claim_spec, gpus, node, pod_spec, rule, slice_
from sully.testing.cluster import Process, process
from sully.testing.remote import controllers

pytestmark = pytest.mark.e2e

NAMESPACES = "/api/v1/namespaces"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/sully-controllers"
QUICK = ("--lease-duration", "5s", "--renew-deadline", "4s", "--retry-period", "200ms")


@contextmanager
def served(data: Path, *flags: str) -> Iterator[Process]:
    """Run the API alone."""
    with process("--disable-controllers", *flags, data_dir=data) as up:
        yield up


def create_namespace(admin: Raw, name: str) -> None:
    """Make a namespace, and wait until the controllers have furnished it."""
    made = admin.request("POST", NAMESPACES, {"metadata": {"name": name}})
    assert made.code == 201
    until(admin, f"{NAMESPACES}/{name}/serviceaccounts", lambda result: "default" in result)


def delete_namespace(admin: Raw, name: str) -> None:
    """Remove a namespace, and wait until the controllers have emptied it."""
    assert admin.request("DELETE", f"{NAMESPACES}/{name}").code == 200
    until(admin, NAMESPACES, lambda result: name not in result)


def holder(admin: Raw) -> Any:
    return admin.request("GET", LEASE).json()["spec"]["holderIdentity"]


def test_an_api_alone_does_nothing_by_itself(tmp_path: Path) -> None:
    with served(tmp_path / "data", "--store", "memory") as up:
        admin = Raw.admin(up.kubeconfig, tmp_path)
        accounts = admin.request("GET", "/api/v1/serviceaccounts").json()["items"]
        roles = admin.request("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/admin").code

    assert (accounts, roles) == ([], 200)


def test_they_work_and_hand_over(tmp_path: Path) -> None:
    with served(tmp_path / "data", "--store", "memory") as up:
        admin = Raw.admin(up.kubeconfig, tmp_path)
        with controllers(up.kubeconfig) as first:
            first.wait_for("leading since")
            with controllers(up.kubeconfig) as second:
                second.wait_for("standing by")
                create_namespace(admin, "one")
                before = holder(admin)
                code = first.stop(signal.SIGTERM)
                reported = second.wait_for("leading since")
                create_namespace(admin, "two")
                after = holder(admin)
                delete_namespace(admin, "one")

    assert code == 0
    assert before != after
    assert after in reported


def test_a_killed_leader_is_followed(tmp_path: Path) -> None:
    with served(tmp_path / "data", "--store", "memory") as up:
        admin = Raw.admin(up.kubeconfig, tmp_path)
        with controllers(up.kubeconfig, *QUICK) as first:
            first.wait_for("leading since")
            with controllers(up.kubeconfig, *QUICK) as second:
                second.wait_for("standing by")
                first.stop(signal.SIGKILL)
                second.wait_for("leading since")
                create_namespace(admin, "one")
                transitions = admin.request("GET", LEASE).json()["spec"]["leaseTransitions"]

    assert transitions == 1


def test_they_go_on_when_their_server_comes_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ExitStack() as stack:
        with served(data) as up:
            port = up.url.rpartition(":")[2]
            admin = Raw.admin(up.kubeconfig, tmp_path)
            crew = stack.enter_context(controllers(up.kubeconfig))
            crew.wait_for("leading since")
            create_namespace(admin, "one")
            before = holder(admin)
            up.stop(signal.SIGKILL)
        with served(data, "--listen", f"127.0.0.1:{port}"):
            create_namespace(admin, "two")
            delete_namespace(admin, "one")
            after = holder(admin)
            code = crew.stop()

    assert (after, code) == (before, 0)


DEVICES = "/apis/resource.k8s.io/v1"
RULES = f"{DEVICES}/devicetaintrules"
CLAIMS = f"{DEVICES}/namespaces/default/resourceclaims"
TEAM = f"{NAMESPACES}/default"
TAINT = {"key": "example.com/broken", "effect": "NoExecute"}


def make(admin: Raw, path: str, name: str, **body: Any) -> None:
    made = admin.request("POST", path, {"metadata": {"name": name}, **body})
    assert made.code == 201, made.json()


def furnish(admin: Raw) -> None:
    """Make a node with two devices."""
    make(admin, "/api/v1/nodes", "n", **node("n"))
    make(admin, f"{DEVICES}/resourceslices", "s", **slice_("s", "n", *gpus(2), driver="d.example"))
    make(admin, f"{DEVICES}/deviceclasses", "gpu", spec={})
    until(admin, f"{TEAM}/serviceaccounts", lambda result: "default" in result)


def start(admin: Raw, name: str, seconds: int) -> str:
    """Start a pod that tolerates a taint for some seconds; return which device it got."""
    toleration = {**TAINT, "operator": "Exists", "tolerationSeconds": seconds}
    make(admin, CLAIMS, name, spec=claim_spec(tolerations=[toleration]))
    make(admin, f"{TEAM}/pods", name, spec=pod_spec(name))
    until(admin, f"{TEAM}/pods", lambda result: "nodeName" in result[name]["spec"])
    status = admin.request("GET", f"{CLAIMS}/{name}").json()["status"]
    return str(status["allocation"]["devices"]["results"][0]["device"])


def taint(admin: Raw, devices: dict[str, str]) -> None:
    """Make a rule for each device, and wait until the controllers have seen whom they are for."""
    for name, device in devices.items():
        selector = {"driver": "d.example", "device": device}
        make(admin, RULES, name, spec=rule(name, selector=selector, taint=TAINT)["spec"])
    until(admin, RULES, lambda result: all(map(_judged, result.values())))


def _judged(rule: dict[str, Any]) -> bool:
    return bool(rule.get("status", {}).get("conditions"))


def test_an_outage_delays_evictions_and_one_that_was_taken_back_does_not_happen(
    tmp_path: Path,
) -> None:
    # On a busy machine it may take longer until the server is gone than pods tolerate the taint.
    assert any(_outage_came_in_time(tmp_path / str(seconds), seconds) for seconds in (8, 64))


def _outage_came_in_time(folder: Path, seconds: int) -> bool:
    """Report whether the server was gone before a pod was to be evicted; check what follows."""
    folder.mkdir()
    data = folder / "data"
    with ExitStack() as stack:
        with served(data) as up:
            port = up.url.rpartition(":")[2]
            admin = Raw.admin(up.kubeconfig, folder)
            crew = stack.enter_context(controllers(up.kubeconfig, "--leader-elect=false"))
            crew.wait_for("working since")
            furnish(admin)
            devices = {name: start(admin, name, seconds) for name in ("spared", "due")}
            taint(admin, devices)
            up.stop(signal.SIGKILL)
        # Elsewhere a user takes one of the rules back; the controllers cannot know.
        with served(data) as up:
            other = Raw.admin(up.kubeconfig, folder)
            if _is_terminating(until(other, f"{TEAM}/pods", bool), "spared"):
                return False
            assert other.request("DELETE", f"{RULES}/spared").code == 200
        with served(data, "--listen", f"127.0.0.1:{port}"):
            # This one was tainted last, so the time of both is over when it is evicted.
            pods = until(admin, f"{TEAM}/pods", lambda result: _is_terminating(result, "due"))
            crew.wait_for("server is reachable again")
            crew.stop()
        with pytest.raises(RuntimeError):
            crew.wait_for("no such line in the output")

    assert not _is_terminating(pods, "spared"), (pods["spared"], crew.output)
    loud = [line for line in crew.output if "[warning" in line or "[error" in line]
    assert len(loud) == 1, "".join(crew.output)
    assert sum("server is reachable again" in line for line in crew.output) == 1, "".join(
        crew.output
    )
    return True


def _is_terminating(pods: dict[str, Any], name: str) -> bool:
    return name not in pods or "deletionTimestamp" in pods[name]["metadata"]


def test_only_those_that_were_chosen_run(tmp_path: Path) -> None:
    with served(tmp_path / "data", "--store", "memory") as up:
        admin = Raw.admin(up.kubeconfig, tmp_path)
        flags = ("--only", "serviceaccounts", "--leader-elect=false")
        with controllers(up.kubeconfig, *flags) as crew:
            reported = crew.wait_for("working since")
            create_namespace(admin, "one")
            maps = admin.request("GET", f"{NAMESPACES}/one/configmaps").json()["items"]
            lease = admin.request("GET", LEASE).code

    assert (maps, lease) == ([], 404)
    assert "1 controllers, no lease" in reported


def test_numbers_and_health_are_to_be_had(tmp_path: Path) -> None:
    with (
        served(tmp_path / "data", "--store", "memory") as up,
        controllers(up.kubeconfig, "--metrics-listen", "127.0.0.1:0") as crew,
    ):
        match = re.search(r"http://\S+", crew.wait_for("metrics:"))
        assert match is not None
        crew.wait_for("leading since")
        pages = {
            name: urllib.request.urlopen(match[0].replace("metrics", name)).read().decode()
            for name in ("metrics", "healthz", "readyz")
        }

    assert 'workqueue_adds_total{name="namespace-controller"}' in pages["metrics"]
    assert pages["healthz"] == "ok"
    assert pages["readyz"].startswith("leading since")


def test_metrics_on_the_network_need_a_token(tmp_path: Path) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1"
    with (
        served(tmp_path / "data", "--store", "memory") as up,
        controllers(up.kubeconfig, "--metrics-listen", "0.0.0.0:0") as crew,
    ):
        match = re.search(r"https://0.0.0.0:(\d+)/metrics", crew.wait_for("metrics:"))
        assert match is not None
        crew.wait_for("leading since")
        admin = Raw.admin(up.kubeconfig, tmp_path)
        create_namespace(admin, "monitoring")
        token = _token(admin, "monitoring", "default")

        def get(path: str, token: str = "") -> tuple[int, str]:
            url = f"https://127.0.0.1:{match[1]}{path}"
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            return _read(urllib.request.Request(url, headers=headers))

        assert get("/healthz") == (200, "ok")
        assert get("/readyz")[0] == 200
        assert get("/metrics") == (401, "Unauthorized")
        assert get("/metrics", "made.up.token") == (401, "Unauthorized")
        assert get("/metrics", token) == (403, "Forbidden")

        body = {
            "metadata": {"name": "reader"},
            "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
        }
        assert admin.request("POST", f"{roles}/clusterroles", body).code == 201
        binding = {
            "metadata": {"name": "reader"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "reader",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "monitoring"}],
        }
        assert admin.request("POST", f"{roles}/clusterrolebindings", binding).code == 201
        # Verdicts are cached by the token: this one is new.
        code, text = get("/metrics", _token(admin, "monitoring", "default"))

    assert code == 200
    assert "workqueue_adds_total" in text


def _token(admin: Raw, namespace: str, name: str) -> str:
    path = f"{NAMESPACES}/{namespace}/serviceaccounts/{name}/token"
    made = admin.request("POST", path, {"spec": {}})
    assert made.code == 201
    token: str = made.json()["status"]["token"]
    return token


def _read(request: urllib.request.Request) -> tuple[int, str]:
    context = ssl.create_default_context()
    # Its certificate is its own; here only who may read is the question.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()

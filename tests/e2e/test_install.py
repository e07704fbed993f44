"""`sully install`, and controllers that run with exactly the rights it brought."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

import manifests
from e2e.beside import APPLY, installed, sully
from e2e.raw import Raw
from e2e.watching import until
from manifests import claim, deployment, gpus, node, pod_spec, slice_
from sully.controller_setup import CONTROLLERS
from sully.install.workload import DEFAULT
from sully.testing.cluster import process
from sully.testing.remote import CommandProcess

pytestmark = pytest.mark.e2e

RESOURCE = "/apis/resource.k8s.io/v1"
PODS = "/api/v1/namespaces/team/pods"
RECORDS = "/apis/sully.dev/v1alpha1"
DRIVER = "gpu.example.com"
APPS = "/apis/apps/v1"
DEPLOYMENT = deployment("x", 2)
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


def made(admin: Raw, path: str, body: dict[str, Any]) -> None:
    answer = admin.request("POST", path, body)
    assert answer.code == 201, answer.body


@contextmanager
def running(tmp_path: Path, *flags: str) -> Iterator[tuple[Raw, CommandProcess]]:
    """Run the API alone, install, and run what was installed as the installed account."""
    with process("--disable-controllers", "--store", "memory") as up:
        only = "" if "--only" in flags else ",".join(DEFAULT)
        with installed(up, tmp_path, *flags, only=only) as crew:
            yield Raw.admin(up.kubeconfig, tmp_path), crew


def furnish(admin: Raw) -> None:
    """Make a node with two devices, and a namespace in which pods may be."""
    made(admin, "/api/v1/nodes", node("n1"))
    made(admin, f"{RESOURCE}/resourceslices", slice_("s", "n1", *gpus(2), driver=DRIVER))
    made(admin, f"{RESOURCE}/deviceclasses", manifests.device_class())
    made(admin, "/api/v1/namespaces", {"metadata": {"name": "team"}})
    account = {"metadata": {"name": "default"}}
    made(admin, "/api/v1/namespaces/team/serviceaccounts", account)


def start(admin: Raw, name: str) -> None:
    made(admin, f"{RESOURCE}/namespaces/team/resourceclaims", claim(name))
    spec = pod_spec(name, schedulerName="sully")
    made(admin, PODS, manifests.pod(name, spec))
    until(admin, PODS, lambda pods: bool(pods[name]["spec"].get("nodeName")))


def test_with_exactly_these_rights_pods_are_scheduled_and_evicted(tmp_path: Path) -> None:
    with running(tmp_path) as (admin, crew):
        furnish(admin)
        start(admin, "a")
        taint = {"key": "example.com/broken", "effect": "NoExecute"}
        rule = {"deviceSelector": {"driver": DRIVER}, "taint": taint}
        meta = {"name": "out", "annotations": {"sully.dev/expires-at": "2100-01-01T00:00:00Z"}}
        made(admin, f"{RESOURCE}/devicetaintrules", {"metadata": meta, "spec": rule})
        until(admin, PODS, lambda pods: "a" not in pods or _is_terminating(pods["a"]))
        records = f"{RECORDS}/evictionrecords"
        until(admin, records, lambda result: len(result) == 1)
        until(admin, f"{RECORDS}/taintrecords", lambda result: len(result) == 1)
        status = f"{RESOURCE}/devicetaintrules"
        until(
            admin, status, lambda rules: bool((rules["out"].get("status") or {}).get("conditions"))
        )

        past = {"metadata": {"annotations": {"sully.dev/expires-at": "2020-01-01T00:00:00Z"}}}
        kind = "application/merge-patch+json"
        assert admin.request("PATCH", f"{status}/out", past, kind).code == 200
        until(admin, status, lambda rules: "out" not in rules)
        assert crew.stop() == 0

    assert "forbidden" not in "".join(crew.output).lower()


def _is_terminating(pod: dict[str, Any]) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def test_patches_are_reported_on_and_end(tmp_path: Path) -> None:
    patches = "/apis/resource.k8s.io/v1alpha3/resourceslicepatches"
    with running(tmp_path) as (admin, crew):
        furnish(admin)
        taint = {"key": "example.com/hot", "effect": "NoSchedule"}
        spec = {"devices": {"filter": {"driver": DRIVER}, "taints": [taint]}}
        made(admin, patches, {"metadata": {"name": "p"}, "spec": spec})
        until(admin, patches, lambda result: bool(result["p"].get("status")))
        assert crew.stop() == 0

    assert "forbidden" not in "".join(crew.output).lower()


def test_without_the_right_to_evict_nobody_is_evicted(tmp_path: Path) -> None:
    with running(tmp_path, "--evictor", "server", "--only", "scheduling") as (admin, _):
        furnish(admin)
        start(admin, "a")
        roles = {item["metadata"]["name"] for item in admin.request("GET", ROLES).json()["items"]}

    ours = {name for name in roles if name.startswith("sully:")}
    assert ours == {
        "sully:capabilities",
        "sully:metrics-auth",
        "sully:metrics-reader",
        "sully:scheduling",
    }


def test_all_controllers_run_with_no_more_than_their_rights(tmp_path: Path) -> None:
    everything = ",".join(CONTROLLERS)
    namespaces = "/api/v1/namespaces"
    with running(tmp_path, "--evictor", "sully", "--only", everything) as (admin, crew):
        made(admin, namespaces, {"metadata": {"name": "team"}})
        until(admin, f"{namespaces}/team/serviceaccounts", lambda result: "default" in result)
        until(admin, f"{namespaces}/team/configmaps", lambda result: "kube-root-ca.crt" in result)
        made(admin, f"{APPS}/namespaces/team/deployments", DEPLOYMENT)
        until(admin, f"{namespaces}/team/pods", lambda pods: len(pods) == 2)
        assert admin.request("DELETE", f"{namespaces}/team").code == 200
        until(admin, namespaces, lambda result: "team" not in result)
        assert crew.stop() == 0

    assert "forbidden" not in "".join(crew.output).lower()


def test_the_account_has_no_other_rights(tmp_path: Path) -> None:
    """Else what runs with exactly these rights would prove nothing."""
    groups = {
        "system:authenticated",
        "system:serviceaccounts",
        "system:serviceaccounts:sully-system",
    }
    environ = set()
    with running(tmp_path, "--only", "expiry") as (admin, _):
        for kind in ("clusterrolebindings", "rolebindings"):
            document = admin.request("GET", f"/apis/rbac.authorization.k8s.io/v1/{kind}").json()
            environ |= {
                (kind, item["roleRef"]["name"])
                for item in document["items"]
                for subject in item.get("subjects", ())
                if (subject["kind"] == "Group" and subject["name"] in groups)
                or (subject["kind"], subject["name"]) == ("ServiceAccount", "sully-controllers")
            }

    everybody = {"system:basic-user", "system:discovery", "system:public-info-viewer"}
    issuer = "system:service-account-issuer-discovery"
    assert environ == {
        *(("clusterrolebindings", name) for name in (*everybody, issuer)),
        ("clusterrolebindings", "sully:capabilities"),
        ("clusterrolebindings", "sully:expiry"),
        ("clusterrolebindings", "sully:metrics-auth"),
        ("rolebindings", "sully-controllers"),
    }


def test_a_feature_brings_its_right_along(tmp_path: Path) -> None:
    gate = ("--feature-gates", "SullyNoExecuteWithPodDisruptionBudget=true")
    flags = ("--evictor", "sully", *gate)
    with (
        process("--disable-controllers", "--store", "memory", *gate) as up,
        installed(up, tmp_path, *flags, only=",".join(DEFAULT), crew=gate),
    ):
        admin = Raw.admin(up.kubeconfig, tmp_path)
        furnish(admin)
        start(admin, "a")
        taint = {"key": "example.com/old", "effect": "NoExecuteWithPodDisruptionBudget"}
        rule = {"deviceSelector": {"driver": DRIVER}, "taint": taint}
        made(admin, f"{RESOURCE}/devicetaintrules", {"metadata": {"name": "out"}, "spec": rule})
        until(admin, PODS, lambda pods: "a" not in pods or _is_terminating(pods["a"]))


def test_it_shows_what_it_did_and_can_be_done_again(tmp_path: Path) -> None:
    with process("--disable-controllers", "--store", "memory") as up:
        done = [sully(up.kubeconfig, *APPLY) for _ in range(2)]
        asked = sully(up.kubeconfig, "install", "--dry-run")

    assert [item.returncode for item in done] == [0, 0]
    assert "deployment.apps/sully-controllers serverside-applied" in done[0].stdout
    assert "servicemonitor.monitoring.coreos.com/sully-controllers skipped" in (done[0].stdout)
    assert done[0].stdout == done[1].stdout
    kinds = [document["kind"] for document in yaml.safe_load_all(asked.stdout)]
    assert {"CustomResourceDefinition", "Deployment", "PodDisruptionBudget"} <= set(kinds)

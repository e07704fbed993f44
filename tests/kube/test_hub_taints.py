"""Taints of clusters on a hub that has only the definitions of Open Cluster Management."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from e2e.raw import Raw
from e2e.watching import until
from kube.control_plane import poll
from kube.hub import definition
from kube.process import Foreign
from sully.api import build_scheme
from sully.domain.capabilities.offers import HUB
from sully.testing.remote import controllers

Obj = dict[str, Any]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLUSTERS = f"/apis/{HUB}/v1/managedclusters"
UNREACHABLE = "cluster.open-cluster-management.io/unreachable"
MERGE = "application/merge-patch+json"


@pytest.fixture
def admin(there: Foreign) -> Iterator[Raw]:
    """Return the admin's access, with the definitions of a hub."""
    admin, scheme = there.admin(), build_scheme()
    for resource in scheme.resources():
        if resource.group == HUB:
            answer = admin.request("POST", DEFINITIONS, definition(scheme, resource))
            assert answer.code == 201, answer.body
    poll(lambda: admin.request("GET", CLUSTERS).code == 200)
    yield admin
    for item in admin.request("GET", CLUSTERS).json()["items"]:
        # Who would remove them has stopped.
        path = f"{CLUSTERS}/{item['metadata']['name']}"
        admin.request("PATCH", path, {"metadata": {"finalizers": None}}, kind=MERGE)
    for name in until(admin, DEFINITIONS, bool):
        if name.endswith(HUB):
            admin.request("DELETE", f"{DEFINITIONS}/{name}")
    until(admin, DEFINITIONS, lambda result: not any(name.endswith(HUB) for name in result))


def times(cluster: Obj) -> dict[str, str]:
    return {taint["key"]: taint.get("timeAdded", "") for taint in cluster["spec"].get("taints", ())}


def test_taints_get_their_time_and_keep_it(there: Foreign, admin: Raw) -> None:
    mine = [{"key": "maintenance", "effect": "NoSelect"}]
    cluster = {
        "apiVersion": f"{HUB}/v1",
        "kind": "ManagedCluster",
        "metadata": {"name": "c1"},
        "spec": {"hubAcceptsClient": True, "taints": mine},
    }
    with controllers(there.kubeconfig, "--only", "clusters") as hub:
        hub.wait_for("leading since")
        answer = admin.request("POST", CLUSTERS, cluster)
        assert answer.code == 201, answer.body
        first = until(admin, CLUSTERS, lambda result: len(_timed(result["c1"])) == 2)["c1"]
        # As `kubectl apply` of the same manifest does it.
        again = admin.request("PATCH", f"{CLUSTERS}/c1", {"spec": {"taints": mine}}, kind=MERGE)
        assert again.code == 200, again.body
        second = until(admin, CLUSTERS, lambda result: len(_timed(result["c1"])) == 2)["c1"]

    assert times(first).keys() == {"maintenance", UNREACHABLE}
    assert times(second) == times(first)


def test_the_command_records_who_why_and_until_when(there: Foreign, admin: Raw) -> None:
    for name in ("c1", "c2"):
        cluster = {
            "apiVersion": f"{HUB}/v1",
            "kind": "ManagedCluster",
            "metadata": {"name": name},
            "spec": {"hubAcceptsClient": True},
        }
        assert admin.request("POST", CLUSTERS, cluster).code == 201
    work = ("maintenance=net:NoSelect", "--reason", "network work", "--for", "2h", "--yes")
    tainted = there.sully("taint", "cluster", "c1", *work)
    overwritten = there.sully(
        "taint", "cluster", "c1", "maintenance=power:NoSelect", "--overwrite", "--yes"
    )
    explained = there.sully("explain", "cluster", "c1")
    there.sully("taint", "cluster", "c2", "brief:NoSelect", "--for", "1s", "--yes")
    with controllers(there.kubeconfig, "--only", "clusters,expiry") as hub:
        hub.wait_for("leading since")
        until(admin, CLUSTERS, lambda result: "brief" not in times(result["c2"]))
    untainted = there.sully("untaint", "cluster", "c1", "maintenance", "--yes")
    history = there.sully("history", "cluster", "c1", "-o", "wide", "--no-headers")
    expired = there.sully("history", "cluster", "c2", "--no-headers")
    everything = there.sully("history", "--no-headers")

    assert (tainted.returncode, overwritten.returncode) == (0, 0), tainted.stderr
    assert untainted.returncode == 0, untainted.stderr
    assert 'by kubernetes-admin, reason "network work", until ' in explained.stdout
    assert [_without_times(line) for line in history.stdout.splitlines()] == [
        "tainted cluster/c1 maintenance=net:NoSelect, until - kubernetes-admin network work",
        "untainted cluster/c1 maintenance=net:NoSelect - kubernetes-admin -",
        "tainted cluster/c1 maintenance=power:NoSelect, until - kubernetes-admin network work",
        "untainted cluster/c1 maintenance=power:NoSelect - kubernetes-admin -",
    ]
    assert [_without_times(line) for line in expired.stdout.splitlines()] == [
        "tainted cluster/c2 brief:NoSelect, by kubernetes-admin, until",
        "untainted cluster/c2 brief:NoSelect, by expiry",
    ]
    assert len(everything.stdout.splitlines()) == 6, everything.stderr


def _without_times(line: str) -> str:
    return " ".join(word for word in line.split() if not word.startswith("20"))


def _timed(cluster: Obj) -> list[str]:
    return [time for time in times(cluster).values() if time]

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
    for name in until(admin, DEFINITIONS, bool):
        if name.endswith(HUB):
            admin.request("DELETE", f"{DEFINITIONS}/{name}")


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
        first = until(admin, CLUSTERS, lambda found: len(_timed(found["c1"])) == 2)["c1"]
        # As `kubectl apply` of the same manifest does it.
        again = admin.request("PATCH", f"{CLUSTERS}/c1", {"spec": {"taints": mine}}, kind=MERGE)
        assert again.code == 200, again.body
        second = until(admin, CLUSTERS, lambda found: len(_timed(found["c1"])) == 2)["c1"]
        admin.request("PATCH", f"{CLUSTERS}/c1", {"metadata": {"finalizers": None}}, kind=MERGE)

    assert times(first).keys() == {"maintenance", UNREACHABLE}
    assert times(second) == times(first)


def _timed(cluster: Obj) -> list[str]:
    return [time for time in times(cluster).values() if time]

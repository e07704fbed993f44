"""Guides about failing devices, typed as they stand, on servers that are not ours.

tests/docs runs every guide on Sully's server. Here are only the nodes, and the controller of
policies as the account that `sully install` created: pods are scheduled and evicted by Kubernetes,
because of native rules.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from architecture.project import ROOT
from docs.console import run_all
from docs.pages import flags
from e2e.watching import until
from kube.conftest import SERVERS
from kube.crews import Crew
from kube.maintenance_story import FAST
from kube.policy_cluster import POLICIES
from kube.process import Foreign
from sully.testing.remote import simulated_nodes

DEVICES = "/apis/resource.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = f"{DEVICES}/namespaces/default/resourceclaims"
SERVING = (
    "/apis/apps/v1/namespaces/default/deployments/serving",
    f"{DEVICES}/namespaces/default/resourceclaimtemplates/serving",
)
"""What examples/guides/serving.yaml creates."""


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Foreign]:
    """Run each server, with the controller beside it."""
    name = "kubernetes" if request.param == "kubernetes" else "stand_in"
    there: Foreign = request.getfixturevalue(name)
    with Crew(there, tmp_path_factory.mktemp("account"), "devicetaintpolicies").at_work():
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        until(there.admin(), accounts, lambda result: "default" in result)
        yield there


@pytest.mark.parametrize("guide", ["health-monitor", "degraded-device"])
def test_the_story_of_a_guide(
    guide: str, server: Foreign, any_kubectl: Path, tmp_path: Path
) -> None:
    page = (ROOT / f"docs/guides/{guide}.md").read_text()
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with simulated_nodes(server.kubeconfig, *_nodes(page), *FAST, "--yes"):
        try:
            run_all(
                page,
                kubeconfig=server.kubeconfig,
                kubectl=any_kubectl,
                other_server=True,
                where=tmp_path,
                scratch=tmp_path,
            )
        finally:
            _delete_all(server)


def _nodes(page: str) -> list[str]:
    """Return the nodes that a page starts its server with, as flags of `sully simulate-nodes`."""
    arguments = flags(page)
    return [
        *("--name-prefix", "worker"),
        *("--nodes", arguments[arguments.index("--simulated-nodes") + 1]),
        *("--devices", arguments[arguments.index("--devices-per-node") + 1]),
    ]


def _delete_all(server: Foreign) -> None:
    admin, rules = server.admin(), server.rules()
    for path in (POLICIES, *SERVING, rules):
        admin.request("DELETE", path)
    admin.request("DELETE", PODS, {"gracePeriodSeconds": 0})
    for path in (PODS, CLAIMS, rules):
        until(admin, path, lambda result: not result)

"""Policies and maintenances on Kubernetes 1.36, which has rules only as a beta, if enabled.

One server for both, with the controllers that `sully install` runs there.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kube.crews import Crew
from kube.maintenance_story import nodes_on, update_firmware
from kube.policy_cluster import cluster_on, from_a_fault_to_a_taint_and_back
from kube.process import Foreign, foreign

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
VERSION = "v1beta2"
FLAGS = ("--minor", "36", "--devices", "v1,v1beta2,v1beta1", "--rules", f"{VERSION},v1alpha3")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Foreign]:
    controllers = "devicetaintpolicies,devicemaintenances"
    with (
        foreign(*FLAGS) as there,
        Crew(there, tmp_path_factory.mktemp("account"), controllers).at_work(),
    ):
        yield there


def test_it_has_rules_only_as_a_beta(server: Foreign) -> None:
    group = server.admin().request("GET", "/apis/resource.k8s.io/v1").json()
    assert "devicetaintrules" not in {one["name"] for one in group["resources"]}
    assert "v1beta2 by driver, pool, device" in server.sully("capabilities").stdout


def test_a_policy(server: Foreign) -> None:
    with cluster_on(server, VERSION) as cluster:
        from_a_fault_to_a_taint_and_back(cluster)


def test_a_maintenance(server: Foreign) -> None:
    with nodes_on(server) as nodes:
        update_firmware(nodes, VERSION)

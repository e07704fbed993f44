"""Policies and maintenances on Kubernetes 1.36, which has rules only as a beta, if enabled.

One server for both, with the controllers that `sully install` runs there: a stand-in, and a real
API server of 1.37 that emulates 1.36, with its kinds, versions and feature gates. The scheduler and
the evictor of 1.37 read rules only as v1, so nobody acts on rules beside that one. Where
KUBEBUILDER_ASSETS has the programs of 1.36, test_policies.py, test_maintenances.py, test_guides.py
and test_proof_jobs.py show the rest.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from kube.conftest import REAL, SERVERS
from kube.control_plane import (
    CONTROLLERS,
    RULES_OF_1_36,
    VARIABLE,
    control_plane,
    missing,
)
from kube.crews import Crew
from kube.maintenance_story import nodes_on, update_firmware
from kube.policy_cluster import NODE, cluster_on, from_a_fault_to_a_taint_and_back
from kube.process import Foreign, foreign

pytestmark = pytest.mark.slow
FLAGS = ("--minor", "36", "--devices", "v1,v1beta2,v1beta1", "--rules", "v1beta2,v1alpha3")
EMULATED = "--emulated-version=1.36"


def _emulated() -> AbstractContextManager[Foreign]:
    if reason := missing():
        pytest.skip(reason)
    served = (EMULATED, *RULES_OF_1_36["kube-apiserver"])
    flags = {"kube-apiserver": served, **dict.fromkeys(CONTROLLERS, (EMULATED,))}
    return control_plane(Path(os.environ[VARIABLE]), flags=flags)


@pytest.fixture(scope="module", params=SERVERS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Foreign]:
    controllers = "devicetaintpolicies,devicemaintenances"
    with (
        _emulated() if request.param == REAL else foreign(*FLAGS) as there,
        Crew(there, tmp_path_factory.mktemp("account"), controllers).at_work(),
    ):
        yield there


def test_it_has_rules_only_as_a_beta(server: Foreign) -> None:
    group = server.admin().request("GET", "/apis/resource.k8s.io/v1").json()
    assert "devicetaintrules" not in {one["name"] for one in group["resources"]}
    assert "v1beta2 by driver, pool, device" in server.sully("capabilities").stdout


def test_a_policy(server: Foreign) -> None:
    with cluster_on(server) as cluster:
        from_a_fault_to_a_taint_and_back(cluster)


def test_a_rule_is_printed_as_the_server_accepts_it(server: Foreign) -> None:
    with cluster_on(server) as cluster:
        arguments = ("taint", "device", f"{NODE}/gpu-0", "example.com/hot:NoSchedule", "-o", "json")
        rule = json.loads(cluster.sully(*arguments, "--dry-run=client"))
        answer = cluster.admin.request("POST", cluster.rules, rule)

    assert (rule["apiVersion"], answer.code) == ("resource.k8s.io/v1beta2", 201)


@pytest.mark.parametrize("server", SERVERS[:1], indirect=True)
def test_a_maintenance(server: Foreign) -> None:
    with nodes_on(server) as nodes:
        update_firmware(nodes)

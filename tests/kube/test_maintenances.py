"""DeviceMaintenances on every kind of server: ours, a stand-in, Kubernetes.

The controller runs as the account that `sully install` created, with exactly its permissions. On
other servers it has only rules and the Eviction API. The stories are those of the guides.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from e2e.watching import until
from kube.conftest import SERVERS
from kube.crews import Crew
from kube.maintenance_story import (
    DRIVER,
    MAINTENANCES,
    PODS,
    is_ready,
    node_of,
    nodes_on,
    update_firmware,
    waits,
)
from kube.process import Foreign
from kube.scenes import MERGE
from sully.testing.cluster import process

OURS = "sully"


@pytest.fixture(scope="module", params=[pytest.param(OURS, marks=pytest.mark.e2e), *SERVERS])
def server(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Foreign]:
    """Run each server, with the controller beside it."""
    if request.param == OURS:
        with process() as up:
            yield Foreign(up.data_dir, up.url)
        return
    name = "kubernetes" if request.param == "kubernetes" else "stand_in"
    there: Foreign = request.getfixturevalue(name)
    with Crew(there, tmp_path_factory.mktemp("account"), "devicemaintenances").at_work():
        yield there


@pytest.fixture(scope="module")
def nodes(server: Foreign) -> Iterator[Foreign]:
    with nodes_on(server) as ready:
        yield ready


@pytest.fixture
def cluster(nodes: Foreign) -> Iterator[Foreign]:
    admin = nodes.admin()
    until(admin, PODS, lambda result: any(map(is_ready, result.values())))
    yield nodes
    admin.request("DELETE", MAINTENANCES)
    for path in (MAINTENANCES, nodes.rules()):
        until(admin, path, lambda result: not result)


def test_firmware_update(cluster: Foreign) -> None:
    update_firmware(cluster)


def test_decommission(cluster: Foreign) -> None:
    admin, node = cluster.admin(), node_of(cluster)
    spec = {
        "selector": {"driver": DRIVER, "pool": node},
        "start": "2031-01-01T00:00:00Z",
        "closeBefore": "8760h",
        "rolling": {"by": "Node"},
        "hook": {"type": "Approval"},
    }
    body = {
        "apiVersion": "sully.dev/v1alpha1",
        "kind": "DeviceMaintenance",
        "metadata": {"name": "retire"},
        "spec": spec,
    }
    assert admin.request("POST", MAINTENANCES, body).code == 201
    change = {"spec": {"closeBefore": "0s", "start": "2026-01-01T00:00:00Z"}}
    answer = admin.request("PATCH", f"{MAINTENANCES}/retire", change, kind=MERGE)
    assert answer.code == 200, answer.body
    until(admin, MAINTENANCES, partial(waits, "retire", node))
    assert node_of(cluster) != node
    assert cluster.sully("maintenance", "cancel", "retire").returncode == 0
    too_late = cluster.sully("maintenance", "pause", "retire")
    assert (too_late.returncode, too_late.stdout) == (1, "")
    assert 'devicemaintenance "retire" is Cancelled: it cannot be paused' in too_late.stderr
    until(admin, cluster.rules(), lambda result: not result)
    again = {"spec": {"cancelled": False}}
    assert admin.request("PATCH", f"{MAINTENANCES}/retire", again, kind=MERGE).code == 422


def test_a_typo_selects_nothing(cluster: Foreign) -> None:
    done = cluster.sully(
        "maintenance", "create", "typo", "--driver", "x.example.com", "--start", "1s"
    )
    assert done.returncode == 1
    assert "the selector matches no device; nothing changed" in done.stderr
    careless = {
        "apiVersion": "sully.dev/v1alpha1",
        "kind": "DeviceMaintenance",
        "metadata": {"name": "all"},
        "spec": {"selector": {}, "start": "2031-01-01T00:00:00Z"},
    }
    answer = cluster.admin().request("POST", MAINTENANCES, careless)
    assert answer.code == 422
    assert "set matchAll to true" in answer.body.decode()

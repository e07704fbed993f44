"""The warning about a new rule, wherever the eviction controller runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

import manifests
from controllers.test_elected_plane import elected, held_by_another
from serving import Http, Obj, connected
from sully.app import Config, running
from sully.client.direct import DirectTransport
from sully.client.leases import LEASES
from sully.machinery.compat import Compat
from sully.testing.patience import PATIENCE

pytestmark = pytest.mark.slow
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
PODS = "/api/v1/namespaces/default/pods"
WANT = '299 - "selects 2 devices; 1 pod in 1 namespace will be evicted"'
NOWHERE: frozenset[str] = frozenset()


async def _use_a_device(http: Http) -> None:
    """Publish two devices, one of which a pod uses."""
    slices = "/apis/resource.k8s.io/v1/resourceslices"
    (await http.post("/api/v1/nodes", manifests.node("node-1"))).ok()
    (await http.post(slices, manifests.slice_("s", "node-1", *manifests.gpus(2)))).ok()
    (await http.post(CLAIMS, manifests.claim("c"))).ok()
    account = {"metadata": {"name": "default"}}
    await http.post("/api/v1/namespaces/default/serviceaccounts", account)
    body = manifests.pod("p") | {"spec": manifests.pod_spec("c", nodeName="node-1")}
    pod = (await http.post(PODS, body)).ok()
    await _allocate(http, pod)


async def _allocate(http: Http, pod: Obj) -> None:
    result = {"request": "r", "driver": manifests.DRIVER, "pool": "node-1", "device": "gpu-0"}
    consumer = {"resource": "pods", "name": "p", "uid": pod["metadata"]["uid"]}
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]}
    (await http.patch(f"{CLAIMS}/c/status", {"status": status})).ok()


async def _warnings(http: Http) -> list[str]:
    answer = await http.post(manifests.RULES, manifests.rule("r", "NoExecute"), dryRun="All")
    answer.ok()
    return answer.warnings


async def _wait_for_warning(http: Http) -> None:
    """Ask again until the caches of the server have everything."""
    while await _warnings(http) != [WANT]:
        pass


@pytest.mark.parametrize("controllers", [None, NOWHERE], ids=["inside", "elsewhere"])
async def test_devices_and_pods_are_counted(
    tmp_path: Path, controllers: frozenset[str] | None
) -> None:
    config = Config(data_dir=tmp_path, port=0, store="memory", controllers=controllers)
    async with running(config) as plane, connected(plane) as http:
        await _use_a_device(http)

        await asyncio.wait_for(_wait_for_warning(http), PATIENCE)


async def test_they_are_counted_while_another_replica_leads(tmp_path: Path) -> None:
    alone = Config(data_dir=tmp_path, port=0, controllers=NOWHERE)
    async with running(alone) as plane, connected(plane) as http:
        await DirectTransport(plane.direct()).create(LEASES, held_by_another())
        await _use_a_device(http)

    async with running(elected(tmp_path)) as plane, connected(plane) as http:
        await asyncio.wait_for(_wait_for_warning(http), PATIENCE)


async def test_the_mode_for_comparisons_has_no_warning(tmp_path: Path) -> None:
    config = Config(data_dir=tmp_path, port=0, store="memory", controllers=NOWHERE)
    reference = replace(config, compat=Compat.KUBERNETES)
    async with running(reference) as plane, connected(plane) as http:
        await _use_a_device(http)

        assert await _warnings(http) == []

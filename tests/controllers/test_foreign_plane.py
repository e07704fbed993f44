"""Controllers on a server that is not ours: what its own controllers do is left to them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import manifests
from manifests import DRIVER, claim_spec, gpus, node, pod_spec, rule, slice_
from sully.app import Config, running
from sully.client.direct import DirectTransport
from sully.client.kubeconfig.kubeconfig import load_kubeconfig
from sully.client.transport import Key, Kind
from sully.domain.capabilities.duties import DutyError, Evictor
from sully.machinery.compat import Compat
from sully.remote import DISCOVERY_SECONDS, Remote, RemoteConfig, remote
from sully.runtime.clock import Clock
from sully.server.http.http_request import Receive, Send
from sully.testing.clock import FakeClock
from sully.testing.patience import PATIENCE

Obj = dict[str, Any]


def kind(group: str, plural: str, name: str, *, namespaced: bool = False) -> Kind[Obj]:
    return Kind(group, "v1", plural, name, dict, namespaced)


PODS = kind("", "pods", "Pod", namespaced=True)
NODES = kind("", "nodes", "Node")
NAMESPACES = kind("", "namespaces", "Namespace")
ACCOUNTS = kind("", "serviceaccounts", "ServiceAccount", namespaced=True)
SLICES = kind("resource.k8s.io", "resourceslices", "ResourceSlice")
CLASSES = kind("resource.k8s.io", "deviceclasses", "DeviceClass")
CLAIMS = kind("resource.k8s.io", "resourceclaims", "ResourceClaim", namespaced=True)
RULES = kind("resource.k8s.io", "devicetaintrules", "DeviceTaintRule")


class VersionPage:
    """Serves `/version`: that of Kubernetes."""

    def __init__(self) -> None:
        self.minor = 37

    async def __call__(self, scope: Obj, receive: Receive, send: Send) -> None:
        version = {"major": "1", "minor": str(self.minor), "gitVersion": f"v1.{self.minor}.0"}
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(version).encode()})


@asynccontextmanager
async def beside(
    folder: Path,
    *,
    evictor: Evictor = "auto",
    only: frozenset[str] | None = None,
    clock: Clock | None = None,
    version: VersionPage | None = None,
) -> AsyncIterator[tuple[DirectTransport, Remote]]:
    """Run an API that passes for one of Kubernetes 1.37, and controllers beside it."""
    alone = Config(
        data_dir=folder, port=0, store="memory", compat=Compat.KUBERNETES, controllers=frozenset()
    )
    async with running(alone) as plane:
        with plane.mounted("/version", version or VersionPage()):
            access = load_kubeconfig([plane.kubeconfig], required=True).access()
            config = RemoteConfig(
                access=access, leader_elect=False, evictor=evictor, controllers=only
            )
            async with remote(config, clock) as result:
                yield DirectTransport(plane.direct()), result


async def furnish(api: DirectTransport) -> None:
    await api.create(NODES, node("n1"))
    await api.create(SLICES, slice_("s", "n1", *gpus(2)))
    await api.create(CLASSES, manifests.device_class())
    await api.create(NAMESPACES, {"metadata": {"name": "team"}})
    await api.create(ACCOUNTS, {"metadata": {"namespace": "team", "name": "default"}})


async def start(api: DirectTransport, name: str, scheduler: str) -> None:
    claim = manifests.body("ResourceClaim", name, claim_spec(), namespace="team")
    await api.create(CLAIMS, claim)
    spec = pod_spec(name, schedulerName=scheduler)
    await api.create(PODS, manifests.pod(name, spec, namespace="team"))


async def placed(api: DirectTransport, name: str) -> None:
    """Wait until a pod has a node."""
    async with asyncio.timeout(PATIENCE):
        async for event in api.watch(PODS, "team"):
            pod = event.object or {}
            if pod.get("metadata", {}).get("name") == name and pod["spec"].get("nodeName"):
                return


async def taint(api: DirectTransport, device: str) -> None:
    selector = {"driver": DRIVER, "device": device}
    await api.create(RULES, rule("out", "NoExecute", key="example.com/broken", selector=selector))


@asynccontextmanager
async def working(remote: Remote) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(remote.manager.run())
        await remote.manager.settled()
        try:
            yield
        finally:
            remote.manager.stop()


async def test_others_schedule_and_evict_what_is_theirs(tmp_path: Path) -> None:
    async with beside(tmp_path) as (api, result), working(result):
        await furnish(api)
        await start(api, "theirs", "default-scheduler")
        # Until its scheduler has reported on it, it may be about to allocate a device.
        reported = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        status = {"status": {"conditions": [reported]}}
        await api.patch(PODS, Key("team", "theirs"), status, subresource="status")
        await start(api, "a", "sully")
        await placed(api, "a")
        results = (await api.get(CLAIMS, Key("team", "a")))["status"]["allocation"]["devices"]
        await taint(api, results["results"][0]["device"])
        # The taint was seen before this pod: it gets the other device.
        await start(api, "b", "sully")
        await placed(api, "b")
        pods = {pod["metadata"]["name"]: pod for pod in (await api.list(PODS)).items}
        standing = result.status()

    assert "deletionTimestamp" not in pods["a"]["metadata"]
    assert "nodeName" not in pods["theirs"]["spec"]
    assert "4 controllers" in standing


async def test_it_evicts_where_it_is_configured_to(tmp_path: Path) -> None:
    async with beside(tmp_path, evictor="sully") as (api, result), working(result):
        await furnish(api)
        await start(api, "a", "sully")
        await placed(api, "a")
        await taint(api, "gpu-0")
        async with asyncio.timeout(PATIENCE):
            async for event in api.watch(PODS, "team"):
                if event.type == "DELETED" or "deletionTimestamp" in (event.object or {}).get(
                    "metadata", {}
                ):
                    break


async def test_a_second_evictor_is_refused_by_name(tmp_path: Path) -> None:
    only = frozenset(("eviction",))
    async with beside(tmp_path, only=only) as (_, result):
        with pytest.raises(DutyError, match="eviction must not run here: Kubernetes evicts"):
            await result.discover()
        # Also where the server was not there for the first look.
        await result.manager.run()

    assert result.problem.startswith("eviction must not run here")


async def test_it_ends_when_the_server_has_become_another(tmp_path: Path) -> None:
    clock, version = FakeClock(), VersionPage()
    async with (
        beside(tmp_path, clock=clock, version=version) as (_, result),
        asyncio.timeout(PATIENCE),
        asyncio.TaskGroup() as tasks,
    ):
        ran = tasks.create_task(result.manager.run())
        await result.manager.settled()
        version.minor = 38
        while not ran.done():
            clock.advance(DISCOVERY_SECONDS)
            await asyncio.wait([ran], timeout=0.05)

    assert result.problem == "the server has changed: restart"

"""Devices that pods use, and the controller of maintenances; one that dies between two writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import manifests
from controllers.world import ACCOUNTS, PODS, Make, Obj, World
from manifests import DRIVER, claim_spec, node, pod_spec, slice_
from sully.client.direct import DirectTransport
from sully.client.informers.informer import Informer
from sully.client.transport import Key, Kind, UnreachableError
from sully.controllers.devicemaintenances.controller import NAME, DeviceMaintenanceController
from sully.controllers.eviction.wiring import eviction_caches
from sully.controllers.framework.controller import Controller, ControllerEnv
from sully.controllers.framework.manager import Manager
from sully.controllers.proofjobs import PROOF_JOBS, SELECTOR, ProofJobs
from sully.evictor.settings import MAX_STALENESS
from sully.machinery.formats.timestamps import format_time
from sully.server.inprocess import InProcess
from sully.server.requests import User
from sully.views import kinds
from sully.views.devices.inventory import Inventory
from sully.views.devices.usage import Usage
from sully.views.maintenance.pods import UnitPods
from sully.views.snapshot.kinds import PODS as TYPED_PODS

SLICES: Kind[Obj] = kinds.SLICES.read_as(dict)
RULES: Kind[Obj] = kinds.RULES.read_as(dict)
MAINTENANCES: Kind[Obj] = kinds.MAINTENANCES.read_as(dict)
CLAIMS: Kind[Obj] = kinds.CLAIMS.read_as(dict)
NODES: Kind[Obj] = kinds.POLICY_NODES.read_as(dict)
NAMESPACE, FIRMWARE = "default", Key("", "firmware")
READY: list[Obj] = [{"type": "Ready", "status": "True"}]


class MortalTransport(DirectTransport):
    """Executes some writes of a controller, and then nothing any more."""

    def __init__(self, world: World, writes: int | None) -> None:
        super().__init__(InProcess(world.api, User(NAME, ("system:masters",)), agent=NAME))
        self._world = world
        self._left = writes
        self.dead = False
        self.evicted: list[tuple[str, datetime]] = []
        self.deleted: list[str] = []
        """The resources of what was deleted, in order."""
        self.most_rules = 0
        self.after_eviction: Callable[[], Awaitable[None]] | None = None

    async def _write(self, written: Any) -> Any:
        """Execute a write, if there is one left, and look at the result."""
        if self._left == 0:
            self.dead = True
        if self.dead:
            written.close()
            raise UnreachableError("the controller was killed")
        result = await written
        if self._left is not None:
            self._left -= 1
        rules = (await self._world.admin.list(RULES)).items
        self.most_rules = max(self.most_rules, len(rules))
        return result

    async def create(
        self, kind: Any, obj: Any, subresource: str = "", *more: Any, **by: Any
    ) -> Any:
        """Create, and note evictions."""
        result = await self._write(super().create(kind, obj, subresource, *more, **by))
        if subresource == "eviction":
            self.evicted.append((obj["metadata"]["name"], self._world.clock.now()))
            if self.after_eviction is not None:
                await self.after_eviction()
        return result

    async def patch(self, *args: Any, **by: Any) -> Any:
        """Patch."""
        return await self._write(super().patch(*args, **by))

    async def delete(self, kind: Any, *args: Any, **by: Any) -> Any:
        """Delete, and note what."""
        result = await self._write(super().delete(kind, *args, **by))
        self.deleted.append(kind.plural)
        return result


def maker(transport: DirectTransport, *caches: Informer[Any]) -> Make:
    """Return what makes a controller with this access."""

    def make(world: World, manager: Manager) -> Controller:
        pods, claims = manager.informer(TYPED_PODS), manager.informer(kinds.CLAIMS)
        inventory = Inventory(
            slices=manager.informer(kinds.SLICES),
            classes=manager.informer(kinds.CLASSES),
            rules=manager.informer(kinds.RULES),
            patches=manager.informer(kinds.PATCHES),
        )
        usage = Usage(pods=pods, claims=claims)
        recorder = manager.env(world.transport(NAME), NAME).recorder
        return DeviceMaintenanceController(
            maintenances=manager.informer(kinds.MAINTENANCES),
            rules=manager.informer(kinds.RULES),
            inventory=inventory,
            nodes=manager.informer(kinds.POLICY_NODES),
            pods=UnitPods(pods, usage),
            usage=usage,
            env=ControllerEnv(transport, recorder, world.clock),
            jobs=ProofJobs(
                jobs=manager.informer(PROOF_JOBS, SELECTOR),
                claims=claims,
                transport=transport,
                field_manager=NAME,
            ),
            caches=(*eviction_caches(manager, inventory), *caches),
            max_staleness=MAX_STALENESS,
        )

    return make


@asynccontextmanager
async def working(
    world: World, writes: int | None = None, *caches: Informer[Any]
) -> AsyncIterator[MortalTransport]:
    """Run the controller; it dies after so many writes. It evicts if these caches are fresh."""
    transport = MortalTransport(world, writes)
    async with world.controlled(maker(transport, *caches)):
        await world.settle()
        yield transport


async def fleet(world: World, *nodes: str, gpus: int = 1) -> None:
    """Publish devices on nodes that are Ready."""
    await world.namespace(NAMESPACE)
    await world.create(ACCOUNTS, NAMESPACE, "default")
    for name in nodes:
        body = node(name)
        await world.admin.create(NODES, body)
        await ready(world, name)
        devices = [
            {"name": f"gpu-{at}", "attributes": {"uuid": {"string": f"GPU-{name}-{at}"}}}
            for at in range(gpus)
        ]
        await world.admin.create(SLICES, slice_(f"{name}-gpus", name, *devices, nodeName=name))


async def ready(world: World, name: str, status: str = "True") -> None:
    conditions = [{"type": "Ready", "status": status}]
    patch = {"status": {"conditions": conditions}}
    await world.admin.patch(NODES, Key("", name), patch, subresource="status")


async def use(world: World, name: str, node: str, gpu: int = 0, *, owner: str = "web") -> None:
    """Run a pod on a device; without an owner nobody recreates it."""
    owners = [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": owner,
            "uid": "u",
            "controller": True,
        }
    ]
    spec = pod_spec(name, nodeName=node, terminationGracePeriodSeconds=0)
    metadata = {"ownerReferences": owners if owner else [], "labels": {"app": owner or "alone"}}
    pod = await world.create(PODS, NAMESPACE, name, spec=spec, metadata=metadata)
    status = {"phase": "Running", "conditions": READY}
    await world.admin.patch(PODS, Key(NAMESPACE, name), {"status": status}, subresource="status")
    await world.create(CLAIMS, NAMESPACE, name, spec=claim_spec())
    result = {"request": "r", "driver": DRIVER, "pool": node, "device": f"gpu-{gpu}"}
    allocated = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": name, "uid": pod["metadata"]["uid"]}],
    }
    key = Key(NAMESPACE, name)
    await world.admin.patch(CLAIMS, key, {"status": allocated}, subresource="status")


async def plan(world: World, *, lead: int = 30, **spec: Any) -> datetime:
    """Create a maintenance that starts in a minute; return its start."""
    start = world.clock.now().replace(microsecond=0) + timedelta(seconds=60)
    planned = {
        "selector": {"driver": DRIVER},
        "start": format_time(start),
        "closeBefore": f"{lead}s",
        "rolling": {"waitForReady": "0s"},
        **spec,
    }
    body = manifests.body("DeviceMaintenance", FIRMWARE.name, planned)
    await world.admin.create(MAINTENANCES, body)
    return start


async def change(world: World, **spec: Any) -> None:
    await world.admin.patch(MAINTENANCES, FIRMWARE, {"spec": spec})


async def status(world: World) -> Obj:
    result: Obj = (await world.admin.get(MAINTENANCES, FIRMWARE)).get("status", {})
    return result


async def phases(world: World) -> dict[str, str]:
    units = (await status(world)).get("units", [])
    return {unit["name"].removeprefix(f"{DRIVER}/"): unit["phase"] for unit in units}


async def effects(world: World) -> dict[str, str]:
    """Return the effect of the rule of each closed device."""
    specs = [rule["spec"] for rule in (await world.admin.list(RULES)).items]
    return {
        f"{spec['deviceSelector']['pool']}/{spec['deviceSelector']['device']}": spec["taint"][
            "effect"
        ]
        for spec in specs
    }


async def approve(world: World, *names: str) -> None:
    """Approve what units wait for, as the CLI does."""
    for unit in (await status(world)).get("units", []):
        if unit["name"] in names or unit["name"].removeprefix(f"{DRIVER}/") in names:
            annotations = {"annotations": {"sully.dev/approved": unit["approval"]}}
            for rule in (await world.admin.list(RULES)).items:
                selector = rule["spec"]["deviceSelector"]
                if (
                    "/".join(selector.values()) in unit["devices"]
                    or _named(selector) in unit["devices"]
                ):
                    key = Key("", rule["metadata"]["name"])
                    await world.admin.patch(RULES, key, {"metadata": annotations})


def _named(selector: Obj) -> str:
    return f"{selector['driver']}/{selector['pool']}/{selector['device']}"

"""Devices that were allocated twice are reported to the claims, and counted."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.world import NAMESPACES, Obj, World
from embedded import REFERENCE
from manifests import DRIVER, claim_spec, slice_
from sully.client.events import EVENTS
from sully.client.transport import Key, Kind
from sully.controllers.deviceconflicts import (
    NAME,
    ConflictIndex,
    ConflictMetrics,
    DeviceConflictController,
)
from sully.controllers.framework.controller import Controller
from sully.controllers.framework.manager import Manager
from sully.runtime.metrics import Metrics
from sully.views import kinds
from sully.views.devices.inventory import Inventory

CLAIMS: Kind[Obj] = kinds.CLAIMS.read_as(dict)
SLICES: Kind[Obj] = kinds.SLICES.read_as(dict)
GPU = f"{DRIVER}/n1/gpu-0"
REMEDY = "delete all pods that use it"


class Plain(World):
    """A server that accepts a device in two claims."""

    def __init__(self) -> None:
        super().__init__()
        self.serve(scheme=REFERENCE, strict=True)
        self.metrics = Metrics()

    def reporting(self, world: World, manager: Manager) -> Controller:
        claims = manager.informer(kinds.CLAIMS)
        inventory = Inventory(
            slices=manager.informer(kinds.SLICES), classes=manager.informer(kinds.CLASSES)
        )
        return DeviceConflictController(
            claims=claims,
            conflicts=ConflictIndex(claims, inventory),
            recorder=manager.env(world.transport(NAME), NAME).recorder,
            metrics=ConflictMetrics(self.metrics),
        )

    def count(self) -> int:
        lines = self.metrics.render().decode().splitlines()
        (line,) = (line for line in lines if line.startswith("sully_devices_in_conflict "))
        return int(float(line.rpartition(" ")[2]))

    async def allocate(self, name: str, **more: Any) -> None:
        """Create a claim with the device."""
        await self.create(CLAIMS, "a", name, spec=claim_spec("gpu"))
        result = {"request": "r", "driver": DRIVER, "pool": "n1", "device": "gpu-0"} | more
        patch = {"status": {"allocation": {"devices": {"results": [result]}}}}
        await self.admin.patch(CLAIMS, Key("a", name), patch, subresource="status")
        await self.settle()

    async def events(self) -> list[str]:
        page = await self.admin.list(EVENTS, "a")
        return sorted(
            f"{event['involvedObject']['name']}: {event['reason']}: {event['message']}"
            for event in page.items
        )


@pytest.fixture
async def world() -> Plain:
    world = Plain()
    labels = {"resource.kubernetes.io/admin-access": "true"}
    await world.admin.create(NAMESPACES, {"metadata": {"name": "a", "labels": labels}})
    return world


async def test_two_claims(world: Plain) -> None:
    async with world.controlled(world.reporting):
        await world.allocate("x")
        assert (world.count(), await world.events()) == (0, [])
        await world.allocate("y")

        assert world.count() == 1
        assert await world.events() == [
            f"x: DeviceConflict: device {GPU} is also allocated to a/y: {REMEDY}",
            f"y: DeviceConflict: device {GPU} is also allocated to a/x: {REMEDY}",
        ]
        await world.admin.delete(CLAIMS, Key("a", "x"))
        await world.settle()
        assert world.count() == 0
        assert len(await world.events()) == 2


async def test_found_at_the_start(world: Plain) -> None:
    await world.allocate("x")
    await world.allocate("y")
    async with world.controlled(world.reporting):
        await world.settle()

        assert world.count() == 1
        assert len(await world.events()) == 2


async def test_admin_access_is_not_a_conflict(world: Plain) -> None:
    async with world.controlled(world.reporting):
        await world.allocate("x")
        await world.allocate("y", adminAccess=True)

        assert (world.count(), await world.events()) == (0, [])


async def test_shares_and_a_capacity_that_shrinks(world: Plain) -> None:
    def publish(memory: str, generation: int) -> Obj:
        device = {
            "name": "gpu-0",
            "allowMultipleAllocations": True,
            "capacity": {"memory": {"value": memory}},
        }
        body = slice_("s", "n1", device)
        body["spec"]["pool"]["generation"] = generation
        return body

    made = await world.admin.create(SLICES, publish("10Gi", 1))
    async with world.controlled(world.reporting):
        for name, uid in {"x": "1", "y": "2"}.items():
            share = f"00000000-0000-4000-8000-00000000000{uid}"
            await world.allocate(name, shareID=share, consumedCapacity={"memory": "5Gi"})
        assert (world.count(), await world.events()) == (0, [])
        await world.admin.update(SLICES, publish("8Gi", 2) | {"metadata": made["metadata"]})
        await world.settle()

        assert world.count() == 1
        assert (await world.events())[0] == (
            f"x: DeviceConflict: more memory of device {GPU} is allocated than it has (shared with"
            " a/y)"
        )

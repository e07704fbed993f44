"""Metrics of devices, policies, pending pods and evictions, on a server in this process."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.world import ACCOUNTS, NAMESPACES, PODS, Obj, World, running
from manifests import DRIVER, claim_spec, device_class, gpus, pod_spec, rule, slice_
from sully.client.options import DeleteOptions
from sully.client.transport import Key, Kind
from sully.controllers.devicemetrics.wiring import Counted, add_device_metrics
from sully.controllers.framework.manager import Manager
from sully.runtime.metrics import Metrics
from sully.views import kinds
from sully.views.devices.inventory import Inventory

CLAIMS: Kind[Obj] = kinds.CLAIMS.read_as(dict)
CLASSES: Kind[Obj] = kinds.CLASSES.read_as(dict)
MAINTENANCES: Kind[Obj] = kinds.MAINTENANCES.read_as(dict)
POLICIES: Kind[Obj] = kinds.DEVICE_POLICIES.read_as(dict)
RULES: Kind[Obj] = kinds.RULES.read_as(dict)
SLICES: Kind[Obj] = kinds.SLICES.read_as(dict)
EVICTED = "DeletionByDeviceTaintManager"


class Measured(World):
    """A server, and the metrics of what is on it."""

    def __init__(self) -> None:
        super().__init__()
        self.metrics = Metrics()

    def manager(self) -> Manager:
        manager = Manager(self.transport("informers"), clock=self.clock)
        add_device_metrics(
            manager,
            inventory=Inventory(
                slices=manager.informer(kinds.SLICES),
                classes=manager.informer(kinds.CLASSES),
                rules=manager.informer(kinds.RULES),
            ),
            counted=Counted(
                manager.informer(kinds.DEVICE_POLICIES),
                manager.informer(kinds.MAINTENANCES),
                manager.informer(kinds.RULES),
            ),
            metrics=self.metrics,
            clock=self.clock,
        )
        return manager

    def values(self, name: str) -> dict[str, float]:
        lines = self.metrics.render().decode().splitlines()
        results = (
            line.rpartition(" ") for line in lines if line.startswith((f"{name}{{", f"{name} "))
        )
        return {series.removeprefix(name): float(value) for series, _, value in results}

    async def allocate(self, name: str, device: str, **more: Any) -> None:
        await self.create(CLAIMS, "a", name, spec=claim_spec("gpu"))
        result = {"request": "r", "driver": DRIVER, "pool": "n1", "device": device} | more
        patch = {"status": {"allocation": {"devices": {"results": [result]}}}}
        await self.admin.patch(CLAIMS, Key("a", name), patch, subresource="status")
        await self.settle()


@pytest.fixture
async def world() -> Measured:
    world = Measured()
    labels = {"resource.kubernetes.io/admin-access": "true"}
    await world.admin.create(NAMESPACES, {"metadata": {"name": "a", "labels": labels}})
    await world.create(ACCOUNTS, "a", "default")
    await world.admin.create(CLASSES, device_class())
    await world.admin.create(SLICES, slice_("s", "n1", *gpus(3)))
    return world


def pool(effect: str, allocated: str) -> str:
    return f'{{allocated="{allocated}",driver="{DRIVER}",pool="n1",taint_effect="{effect}"}}'


async def test_devices_by_state(world: Measured) -> None:
    name = "sully_resourcepool_devices"
    selector = {"driver": DRIVER, "device": "gpu-0"}
    async with running(world.manager()):
        await world.settle()
        assert world.values(name) == {pool("", "false"): 3}
        await world.allocate("x", "gpu-0")
        await world.allocate("admin", "gpu-1", adminAccess=True)
        assert world.values(name) == {pool("", "false"): 2, pool("", "true"): 1}
        await world.admin.create(RULES, rule("bad", "NoExecute", selector=selector))
        await world.settle()
        assert world.values(name) == {pool("", "false"): 2, pool("NoExecute", "true"): 1}
        assert world.values("sully_devicetaintrules") == {'{policy="",taint_effect="NoExecute"}': 1}
        world.clock.advance(600)
        await world.admin.delete(RULES, Key("", "bad"))
        await world.admin.delete(CLAIMS, Key("a", "x"))
        await world.settle()
        assert world.values(name) == {pool("", "false"): 3}
        assert world.values("sully_devicetaintrules") == {}
        assert world.values("sully_device_repair_duration_seconds_sum") == {
            f'{{driver="{DRIVER}"}}': 600
        }
        await world.admin.delete(SLICES, Key("", "s"))
        await world.settle()
        assert world.values(name) == {}


async def test_devices_by_class(world: Measured) -> None:
    name = "sully_deviceclass_devices"
    async with running(world.manager()):
        await world.settle()
        assert world.values(name) == {'{allocated="false",device_class="gpu",taint_effect=""}': 3}
        selectors = [{"cel": {"expression": "false"}}]
        await world.admin.patch(CLASSES, Key("", "gpu"), {"spec": {"selectors": selectors}})
        await world.settle()
        assert world.values(name) == {}


async def test_gauges_end_with_the_controllers(world: Measured) -> None:
    async with running(world.manager()):
        await world.settle()
        assert world.values("sully_resourcepool_devices")
    assert world.values("sully_resourcepool_devices") == {}
    async with running(world.manager()):
        await world.settle()
        assert world.values("sully_resourcepool_devices")


async def test_pending_pods_by_what_blocks_them(world: Measured) -> None:
    name = "sully_blocked_pods"
    taints = [{"key": "example.com/hot", "effect": "NoSchedule"}]
    devices: list[Obj] = [{"name": "gpu-0"}, {"name": "gpu-9", "taints": taints}]
    async with running(world.manager()):
        await world.admin.create(SLICES, slice_("t", "n2", *devices))
        await world.admin.create(RULES, rule("bad", selector={"driver": DRIVER, "pool": "n1"}))
        await world.create(PODS, "a", "late", spec=pod_spec("later"))
        await world.create(CLAIMS, "a", "x", spec=claim_spec("gpu"))
        await world.create(PODS, "a", "p", spec=pod_spec("x"))
        await world.create(PODS, "a", "plain", spec=pod_spec())
        await world.settle()
        driver = f'{{source_kind="ResourceSlice",source_name="{DRIVER}"}}'
        by_rule = '{source_kind="DeviceTaintRule",source_name="bad"}'
        assert world.values(name) == {by_rule: 1, driver: 1}
        await world.create(CLAIMS, "a", "later", spec=claim_spec("gpu"))
        await world.settle()
        assert world.values(name) == {by_rule: 2, driver: 2}
        await world.admin.delete(RULES, Key("", "bad"))
        await world.settle()
        assert world.values(name) == {driver: 2}
        await world.admin.delete(PODS, Key("a", "p"))
        await world.admin.delete(PODS, Key("a", "late"))
        await world.settle()
        assert world.values(name) == {}


async def test_policies(world: Measured) -> None:
    spec = {
        "selector": {"matchAll": True},
        "mode": "Enforce",
        "taint": {"key": "example.com/faulty"},
        "sources": [{"name": "d", "driverTaint": {"key": "example.com/hot"}}],
        "steps": [{"after": "0s", "effect": "NoSchedule"}],
    }
    async with running(world.manager()):
        await world.admin.create(POLICIES, {"metadata": {"name": "p"}, "spec": spec})
        status = {
            "phases": {"Tainted": 2, "HeldBack": 1},
            "stormSince": "2026-01-01T00:00:00.000000Z",
        }
        await world.settle()
        assert world.values("sully_devicetaintpolicy_storm") == {'{policy="p"}': 0}
        await world.admin.patch(POLICIES, Key("", "p"), {"status": status}, subresource="status")
        await world.settle()
        assert world.values("sully_devicetaintpolicy_devices") == {
            '{phase="HeldBack",policy="p"}': 1,
            '{phase="Tainted",policy="p"}': 2,
        }
        assert world.values("sully_devicetaintpolicy_storm") == {'{policy="p"}': 1}


async def test_maintenances(world: Measured) -> None:
    spec = {"selector": {"matchAll": True}, "start": "2030-01-01T00:00:00Z"}
    async with running(world.manager()):
        await world.admin.create(MAINTENANCES, {"metadata": {"name": "m"}, "spec": spec})
        status = {"phases": {"Failed": 1, "Done": 3}}
        await world.admin.patch(
            MAINTENANCES, Key("", "m"), {"status": status}, subresource="status"
        )
        await world.settle()
        assert world.values("sully_devicemaintenance_units") == {
            '{maintenance="m",phase="Done"}': 3,
            '{maintenance="m",phase="Failed"}': 1,
        }


async def test_evictions(world: Measured) -> None:
    def owned(node: str = "n1") -> Obj:
        return pod_spec("x", nodeName=node) if node else pod_spec("x")

    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}
    metadata = {"ownerReferences": [owner | {"controller": True}]}
    reason = f'{{reason="{EVICTED}"}}'
    async with running(world.manager()):
        await world.create(PODS, "a", "p", spec=owned(), metadata=metadata)
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": EVICTED,
            "lastTransitionTime": world.clock.now().isoformat(),
        }
        patch = {"status": {"conditions": [condition]}}
        await world.admin.patch(PODS, Key("a", "p"), patch, subresource="status")
        await world.settle()
        assert world.values("sully_pod_evictions_total") == {reason: 1}
        world.clock.advance(7)
        await world.create(PODS, "a", "q", spec=owned(""), metadata=metadata)
        failed = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        patch = {"status": {"conditions": [failed]}}
        await world.admin.patch(PODS, Key("a", "q"), patch, subresource="status")
        await world.settle()
        assert world.values("sully_unschedulable_replacements_total") == {"": 1}
        options = DeleteOptions(grace_period_seconds=0)
        await world.admin.delete(PODS, Key("a", "p"), options)
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "q", "namespace": "a"},
            "target": {"name": "n1"},
        }
        await world.admin.create(PODS, binding, "binding")
        await world.settle()
        assert world.values("sully_pod_eviction_duration_seconds_sum") == {reason: 7}
        assert world.values("sully_pod_replacement_duration_seconds_sum") == {"": 7}

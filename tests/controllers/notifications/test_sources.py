"""Which changes people are notified of."""

from __future__ import annotations

import yaml

from architecture.project import ROOT
from controllers.world import ACCOUNTS, PODS, Obj, World, running
from manifests import DRIVER, gpus, pod_spec, rule, slice_
from sully.client.transport import Key, Kind
from sully.controllers.framework.manager import Manager
from sully.controllers.notifications.metrics import NotificationMetrics
from sully.controllers.notifications.sender import Notifier
from sully.controllers.notifications.sources import NotificationSources
from sully.runtime.metrics import Metrics
from sully.views import kinds
from sully.views.snapshot.kinds import PODS as TYPED_PODS

POLICIES: Kind[Obj] = kinds.DEVICE_POLICIES.read_as(dict)
MAINTENANCES: Kind[Obj] = kinds.MAINTENANCES.read_as(dict)
RULES: Kind[Obj] = kinds.RULES.read_as(dict)
SLICES: Kind[Obj] = kinds.SLICES.read_as(dict)
HOT = {"key": "example.com/hot", "effect": "NoExecute"}


class Listening(Notifier):
    """Keeps what is published."""

    def __init__(self, world: World) -> None:
        super().__init__((), NotificationMetrics(Metrics()), world.clock)
        self.seen: list[tuple[str, str, str]] = []

    def publish(self, kind: str, about: str, message: str) -> None:
        super().publish(kind, about, message)
        self.seen.append((kind, about, message))


def followed(world: World) -> tuple[Manager, Listening]:
    manager, notifier = Manager(world.transport("informers"), clock=world.clock), Listening(world)
    sources = NotificationSources(notifier, world.clock)
    sources.follow_rules(manager.informer(kinds.RULES))
    sources.follow_slices(manager.informer(kinds.SLICES))
    sources.follow_policies(manager.informer(kinds.DEVICE_POLICIES))
    sources.follow_maintenances(manager.informer(kinds.MAINTENANCES))
    sources.follow_pods(manager.informer(TYPED_PODS))
    return manager, notifier


async def test_taints_of_rules_and_drivers_but_not_old_ones() -> None:
    world = World()
    await world.admin.create(RULES, rule("old", "NoExecute"))
    await world.admin.create(SLICES, slice_("s", "n1", *gpus(2, HOT)))
    manager, notifier = followed(world)
    async with running(manager):
        await world.settle()
        assert notifier.seen == []
        await world.admin.create(RULES, rule("look", "None"))
        selector = {"driver": DRIVER, "device": "gpu-0"}
        await world.admin.create(RULES, rule("bad", selector=selector))
        await world.admin.patch(RULES, Key("", "bad"), {"metadata": {"labels": {"a": "b"}}})
        patch = {"spec": {"taint": {"key": "example.com/bad", "effect": "NoExecute"}}}
        await world.admin.patch(RULES, Key("", "bad"), patch)
        await world.admin.create(SLICES, slice_("t", "n2", *gpus(1, HOT)))
        await world.admin.delete(RULES, Key("", "bad"))
        await world.settle()
    name = f"{DRIVER}/*/gpu-0"
    assert sorted(notifier.seen) == [
        (
            "TaintSet",
            f"Device/{DRIVER}/n2/gpu-0",
            "tainted example.com/hot:NoExecute by its driver",
        ),
        ("TaintSet", "DeviceTaintRule/bad", f"{name} tainted example.com/bad:NoExecute"),
        ("TaintSet", "DeviceTaintRule/bad", f"{name} tainted example.com/bad:NoSchedule"),
    ]


async def test_storms() -> None:
    world = World()
    manager, notifier = followed(world)
    spec = {
        "selector": {"matchAll": True},
        "mode": "Enforce",
        "taint": {"key": "example.com/faulty"},
        "sources": [{"name": "d", "driverTaint": {"key": "example.com/hot"}}],
        "steps": [{"after": "0s", "effect": "NoSchedule"}],
    }
    async with running(manager):
        await world.settle()
        await world.admin.create(POLICIES, {"metadata": {"name": "p"}, "spec": spec})
        status = {"stormSince": "2026-01-01T00:00:00.000000Z"}
        for faulty in (1, 2):
            patch = {"status": {**status, "faulty": faulty}}
            await world.admin.patch(POLICIES, Key("", "p"), patch, subresource="status")
        await world.settle()
    assert [(kind, about) for kind, about, _ in notifier.seen] == [
        ("PolicyStorm", "DeviceTaintPolicy/p")
    ]


async def test_evictions_and_replacements() -> None:
    world = World()
    await world.namespace("a")
    await world.create(ACCOUNTS, "a", "default")
    manager, notifier = followed(world)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}
    metadata = {"ownerReferences": [owner | {"controller": True}]}
    marked = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    failed = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    async with running(manager):
        await world.settle()
        await world.create(PODS, "a", "p", spec=pod_spec("x", nodeName="n1"), metadata=metadata)
        patch = {"status": {"conditions": [marked]}}
        await world.admin.patch(PODS, Key("a", "p"), patch, subresource="status")
        await world.create(PODS, "a", "q", spec=pod_spec("x"), metadata=metadata)
        patch = {"status": {"conditions": [failed | {"message": "0/1 nodes"}]}}
        await world.admin.patch(PODS, Key("a", "q"), patch, subresource="status")
        await world.settle()
    assert notifier.seen == [
        ("EvictionBegun", "Pod/a/p", "evicted from node n1 (EvictionByEvictionAPI)"),
        ("ReplacementUnschedulable", "Pod/a/q", "replaces p and is unschedulable: 0/1 nodes"),
    ]


async def test_maintenances() -> None:
    world = World()
    manager, notifier = followed(world)
    (example,) = yaml.safe_load_all((ROOT / "examples/devicemaintenance.yaml").read_text())
    example["metadata"]["name"] = "firmware"
    phases = ("Scheduled", "Running", "Paused", "Running", "Completed", "Completed")
    async with running(manager):
        await world.settle()
        await world.admin.create(MAINTENANCES, example)
        for number, phase in enumerate(phases):
            status = {"phase": phase, "selected": 8, "total": 4, "done": number}
            key = Key("", "firmware")
            await world.admin.patch(MAINTENANCES, key, {"status": status}, subresource="status")
        await world.settle()
    assert notifier.seen == [
        ("MaintenanceBegun", "DeviceMaintenance/firmware", "8 devices"),
        ("MaintenanceEnded", "DeviceMaintenance/firmware", "Completed: 4 of 4 done"),
    ]

"""A world with nodes, devices and pods that want them, and the scheduler in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import manifests
from controllers.recording_transport import RecordingTransport
from controllers.world import ACCOUNTS, NAMESPACES, PODS, Obj, World, running
from manifests import claim_spec, gpus, slice_
from sully.client.events import EVENTS
from sully.client.transport import Key, Kind
from sully.controllers.framework.manager import Manager
from sully.controllers.scheduling.wiring import USER_AGENT, add_scheduler
from sully.runtime.ids import Ids
from sully.runtime.metrics import Metrics
from sully.scheduler.options import SchedulerOptions
from sully.scheduler.queue import Rank, SchedulingQueue
from sully.views import kinds
from sully.views.devices.inventory import Inventory
from sully.views.snapshot import kinds as snapshots

NODES: Kind[Obj] = snapshots.NODES.read_as(dict)
SLICES: Kind[Obj] = kinds.SLICES.read_as(dict)
CLASSES: Kind[Obj] = kinds.CLASSES.read_as(dict)
CLAIMS: Kind[Obj] = kinds.CLAIMS.read_as(dict)
RULES: Kind[Obj] = kinds.RULES.read_as(dict)
REFUSED = (
    "0/1 nodes are available: 1 cannot allocate all claims. preemption: 0/1 nodes are available:"
    " 1 Preemption is not helpful for scheduling."
)


class _Watched(SchedulingQueue):
    """A queue that notes which pods are taken from it."""

    def __init__(
        self, monotonic: Callable[[], float], taken: list[str], *, newest_first: bool
    ) -> None:
        super().__init__(monotonic)
        self._taken = taken
        if newest_first:
            self._order = count(0, -1)

    def pop(self, until: Rank | None = None) -> Key | None:
        key = super().pop(until)
        if key is not None:
            self._taken.append(key.name)
        return key


@dataclass
class Scheduling:
    """How the scheduler is made, and what it did."""

    options: SchedulerOptions = field(
        default_factory=lambda: SchedulerOptions(binding_conditions=False)
    )
    transport: RecordingTransport | None = None
    metrics: Metrics = field(default_factory=Metrics)
    looked_at: list[str] = field(default_factory=list)
    """The pods that were looked at, in order."""
    alone: bool = True
    protects: bool = True
    newest_first: bool = False
    """Two who take pods in the same order are never after the same device for different pods."""

    @asynccontextmanager
    async def running(self, world: World) -> AsyncIterator[RecordingTransport]:
        """Run the scheduler as long as the block lasts."""
        manager = Manager(world.transport("informers"), clock=world.clock)
        inventory = Inventory(
            slices=manager.informer(kinds.SLICES),
            classes=manager.informer(kinds.CLASSES),
            rules=manager.informer(kinds.RULES),
        )
        self.transport = self.transport or RecordingTransport(
            world, "system:kube-scheduler", USER_AGENT
        )
        add_scheduler(
            manager,
            transport=self.transport,
            inventory=inventory,
            clock=world.clock,
            ids=Ids(),
            settings=self.options,
            metrics=self.metrics,
            queue=_Watched(world.clock.monotonic, self.looked_at, newest_first=self.newest_first),
            alone=self.alone,
            protects=self.protects,
        )
        async with running(manager):
            await world.settle()
            yield self.transport


async def prepare(world: World, *nodes: str, devices: int = 1) -> None:
    """Make a namespace, a class, and nodes with so many devices each."""
    await world.admin.create(NAMESPACES, {"metadata": {"name": "a"}})
    await world.create(ACCOUNTS, "a", "default")
    await world.admin.create(CLASSES, manifests.device_class())
    for name in nodes or ("node-1",):
        await node(world, name)
        if devices:
            await publish(world, name, devices)


async def node(world: World, name: str = "node-1", cpu: str = "8", **spec: Any) -> Obj:
    labels = {"on": name}
    body = manifests.node(name, cpu=cpu, memory="32Gi", pods="110", spec=spec, labels=labels)
    return await world.admin.create(NODES, body)


async def publish(world: World, node: str, devices: int = 1, *taints: Obj) -> Obj:
    return await world.admin.create(SLICES, slice_(f"s-{node}", node, *gpus(devices, *taints)))


async def claim(world: World, name: str, *, class_name: str = "gpu", **request: Any) -> Obj:
    return await world.create(CLAIMS, "a", name, spec=claim_spec(class_name, **request))


async def pod(
    world: World,
    name: str,
    *claims: str,
    cpu: str = "",
    limits: dict[str, str] | None = None,
    **spec: Any,
) -> Obj:
    resources: Obj = {"requests": {"cpu": cpu}} if cpu else {}
    resources |= {"limits": limits} if limits else {}
    references = manifests.claim_references(*claims)
    body = manifests.pod_spec(resources=resources, resourceClaims=references, **spec)
    return await world.create(PODS, "a", name, spec=body)


async def wanting(world: World, name: str, **request: Any) -> None:
    """Make a pod with a claim of the same name."""
    await claim(world, name, **request)
    await pod(world, name, name)


async def rule(world: World, effect: str = "NoSchedule", name: str = "rule") -> Obj:
    return await world.admin.create(RULES, manifests.rule(name, effect, key="example.com/broken"))


async def join_late(world: World, scheduling: Scheduling) -> None:
    """Have a pod `q` come to the claim of another, once a taint evicts from its device."""
    await prepare(world)
    await claim(world, "shared")
    await pod(world, "p", "shared")
    async with scheduling.running(world):
        await world.settle()
        await rule(world, "NoExecute")
        await pod(world, "q", "shared")
        await world.settle()


async def where(world: World, name: str) -> str:
    """Return a pod's node, or why it has none."""
    pod = await world.admin.get(PODS, Key("a", name))
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    conditions = {condition["type"]: condition for condition in pod["status"].get("conditions", ())}
    return str(conditions.get("PodScheduled", {}).get("message", ""))


async def condition(world: World, name: str, type_: str) -> Obj | None:
    pod = await world.admin.get(PODS, Key("a", name))
    known = {condition["type"]: condition for condition in pod["status"].get("conditions", ())}
    return known.get(type_)


async def held(world: World, name: str) -> list[str]:
    """Return the devices that a claim has, as pool/device."""
    claim = await world.admin.get(CLAIMS, Key("a", name))
    allocation = claim.get("status", {}).get("allocation") or {"devices": {}}
    return [
        f"{result['pool']}/{result['device']}"
        for result in allocation["devices"].get("results", ())
    ]


async def reserved(world: World, name: str) -> list[str]:
    claim = await world.admin.get(CLAIMS, Key("a", name))
    return [item["name"] for item in claim.get("status", {}).get("reservedFor", ())]


async def event_messages(world: World, reason: str) -> list[str]:
    """Return the messages of events with a reason, by pod."""
    page = await world.admin.list(EVENTS, "a")
    return sorted(
        f"{item['involvedObject']['name']}: {item['message']}"
        for item in page.items
        if item["reason"] == reason
    )

"""A world with pods on devices, and the eviction controller in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

import manifests
from controllers.recording_transport import RecordingTransport
from controllers.world import ACCOUNTS, CALM, NAMESPACES, PODS, Make, Obj, World
from manifests import DRIVER, claim_spec, gpus, slice_
from sully.api.resource.types import DeviceTaintRule
from sully.client.calls import Call
from sully.client.events import EVENTS
from sully.client.transport import Key, Kind
from sully.controllers.eviction.controller import EvictionController
from sully.controllers.eviction.wiring import make_eviction
from sully.controllers.framework.manager import Manager
from sully.domain.eviction.records import open_record
from sully.evictor.settings import EvictionSettings, eviction_options
from sully.machinery.compat import Compat
from sully.machinery.errors import NotFound
from sully.machinery.formats.timestamps import format_time
from sully.machinery.gates import Gates, parse_gates
from sully.runtime.metrics import Metrics
from sully.views import kinds
from sully.views.devices.changes import Features
from sully.views.devices.inventory import Inventory
from sully.views.kinds import EVICTION_RECORDS, TAINT_RECORDS

SLICES: Kind[Obj] = kinds.SLICES.read_as(dict)
RULES: Kind[Obj] = kinds.RULES.read_as(dict)
PATCHES: Kind[Obj] = kinds.PATCHES.read_as(dict)
CLAIMS: Kind[Obj] = kinds.CLAIMS.read_as(dict)
RECORDS: Kind[Obj] = EVICTION_RECORDS.read_as(dict)
KEY = "example.com/broken"
NAME = EvictionController.name


class Asked(RecordingTransport):
    """The way of the controller; what it asks goes by the kind, whatever part it is about."""

    def __init__(self, world: World) -> None:
        super().__init__(world, NAME)

    def name_of(self, call: Call) -> str:
        verb = "evict" if call.ref.subresource == "eviction" else call.verb
        return f"{verb} {call.ref.plural}"


@dataclass
class Evicting:
    """How the controller is made, and what it did."""

    strict: bool = False
    transactions: bool = False
    features: Features = field(default_factory=Features)
    settings: EvictionSettings = field(default_factory=EvictionSettings)
    gates: dict[str, bool] = field(default_factory=dict)
    transport: Asked | None = None
    metrics: Metrics = field(default_factory=Metrics)
    inventory: Inventory | None = None
    describe: Callable[[DeviceTaintRule], str] | None = None
    alone: bool = True
    """Whether the server has no eviction controller of its own."""

    def make(self) -> Make:
        def made(world: World, manager: Manager) -> EvictionController:
            return self._controller(world, manager)

        return made

    def _controller(self, world: World, manager: Manager) -> EvictionController:
        inventory = self.inventory = Inventory(
            slices=manager.informer(kinds.SLICES),
            classes=manager.informer(kinds.CLASSES),
            rules=manager.informer(kinds.RULES),
            patches=manager.informer(kinds.PATCHES),
            features=self.features,
        )
        self.transport = self.transport or Asked(world)
        compat = Compat.KUBERNETES if self.strict else Compat.SULLY
        gates = parse_gates("", compat).overrides
        options = eviction_options(
            self.settings,
            Gates({**gates, **self.gates}),
            compat=compat,
            transactions=self.transactions,
        )
        options = replace(options, alone=self.alone)
        controllers = make_eviction(
            manager,
            inventory,
            options,
            env=manager.env(self.transport, NAME),
            metrics=self.metrics,
        )
        manager.add(controllers.statuses, backoff=CALM)
        self.describe = controllers.describe
        if controllers.unused_claims is not None:
            manager.add(controllers.unused_claims, backoff=CALM)
        return controllers.eviction

    @asynccontextmanager
    async def beside_a_holder(self, world: World) -> AsyncIterator[Asked]:
        """Run the controller beside a pod `p` that holds a device, at rest until a test acts.

        What it sends goes through the transport that comes back, which can be made to fail.
        """
        await prepare(world)
        await holder(world, "p")
        async with world.controlled(self.make()):
            await world.settle()
            assert self.transport is not None
            yield self.transport

    def calls(self, of: str = "pods") -> list[str]:
        """Return the verbs that were sent for a kind."""
        result = self.transport.calls if self.transport is not None else []
        return [item.split()[0] for item in result if item.endswith(of)]

    def metric(self, name: str) -> float:
        full = f"device_taint_eviction_controller_{name}"
        return self.metrics.registry.get_sample_value(full) or 0.0


async def prepare(world: World, *namespaces: str) -> None:
    for name in namespaces or ("a",):
        await world.admin.create(NAMESPACES, {"metadata": {"name": name}})
        await world.create(ACCOUNTS, name, "default")


async def bound_pod(
    world: World,
    name: str,
    *claims: str,
    namespace: str = "a",
    node: str = "node-1",
    extended: str = "",
    **metadata: Any,
) -> Obj:
    resources = {"limits": {extended: "1"}} if extended else None
    references = manifests.claim_references(*claims)
    spec = manifests.pod_spec(resources=resources, resourceClaims=references)
    if node:
        spec["nodeName"] = node
    return await world.create(PODS, namespace, name, metadata=metadata, spec=spec)


async def claim(world: World, name: str, namespace: str = "a") -> Obj:
    return await world.create(CLAIMS, namespace, name, spec=claim_spec())


async def allocate(
    world: World,
    name: str,
    devices: tuple[str, ...] = ("gpu-0",),
    *,
    pods: tuple[str, ...],
    tolerations: tuple[Obj, ...] = (),
    namespace: str = "a",
    pool: str = "pool-1",
    **more: Any,
) -> None:
    """Give devices to a claim and reserve it for pods, as the scheduler does."""
    consumers = []
    for pod in pods:
        result = await world.admin.get(PODS, Key(namespace, pod))
        uid = result["metadata"]["uid"]
        consumers.append({"resource": "pods", "name": pod, "uid": uid})
    results = [
        {
            "request": "r",
            "driver": DRIVER,
            "pool": pool,
            "device": device,
            "tolerations": list(tolerations),
            **more,
        }
        for device in devices
    ]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": consumers}
    await world.admin.patch(CLAIMS, Key(namespace, name), {"status": status}, subresource="status")


async def holder(
    world: World,
    name: str,
    device: str = "gpu-0",
    *,
    namespace: str = "a",
    tolerations: tuple[Obj, ...] = (),
    pool: str = "pool-1",
    **metadata: Any,
) -> Obj:
    """Make a pod that holds a device."""
    await claim(world, name, namespace)
    made = await bound_pod(world, name, name, namespace=namespace, **metadata)
    await allocate(
        world,
        name,
        (device,),
        pods=(name,),
        tolerations=tolerations,
        namespace=namespace,
        pool=pool,
    )
    return made


def for_seconds(seconds: int | None = None, *, effect: str = "NoExecute", key: str = KEY) -> Obj:
    result = {"key": key, "operator": "Exists", "effect": effect, "tolerationSeconds": seconds}
    return {name: value for name, value in result.items() if value not in (None, "")}


def marked(effect: str = "NoExecute", key: str = KEY, value: str = "") -> Obj:
    return {"key": key, "effect": effect} | ({"value": value} if value else {})


async def publish(
    world: World, *taints: Obj, name: str = "s", devices: int = 1, generation: int = 1
) -> Obj:
    """Publish a slice of which the first device has taints."""
    return await world.admin.create(SLICES, slice_body(taints, name, devices, generation))


def slice_body(taints: tuple[Obj, ...], name: str, devices: int, generation: int) -> Obj:
    listed = gpus(devices, *taints)
    return slice_(name, "pool-1", *listed, generation=generation, nodeName="node-1")


async def retaint(world: World, *taints: Obj, name: str = "s") -> None:
    slice_ = await world.admin.get(SLICES, Key("", name))
    slice_["spec"]["devices"][0]["taints"] = list(taints)
    await world.admin.update(SLICES, slice_)


async def rule(
    world: World,
    effect: str = "NoExecute",
    name: str = "r",
    *,
    rate: int | None = None,
    paused: str = "",
    group: str = "",
    annotations: Mapping[str, str] | None = None,
    **selector: str,
) -> Obj:
    taint = {"evictionsPerSecond": rate} if rate else {}
    marks = {**(annotations or {}), **({"sully.dev/paused": paused} if paused else {})}
    metadata: Obj = {"annotations": marks} if marks else {}
    metadata |= {"labels": {"sully.dev/taint": group}} if group else {}
    chosen = selector or None
    body = manifests.rule(name, effect, key=KEY, selector=chosen, taint=taint, **metadata)
    return await world.admin.create(RULES, body)


async def pause(world: World, value: str | None, name: str = "r") -> None:
    change = {"metadata": {"annotations": {"sully.dev/paused": value}}}
    await world.admin.patch(RULES, Key("", name), change)


async def holders(world: World, number: int, first: int = 0, **more: Any) -> None:
    """Make pods `p-0`, `p-1` and so on, each with a device of the same number."""
    for index in range(first, first + number):
        await holder(world, f"p-{index}", f"gpu-{index}", **more)


async def left(world: World, namespace: str = "a") -> list[str]:
    """Return the pods that were evicted."""
    page = await world.admin.list(PODS, namespace)
    terminating = [item["metadata"] for item in page.items]
    return [item["name"] for item in terminating if "deletionTimestamp" in item]


async def records(world: World, namespace: str = "a") -> list[Obj]:
    """Return what was written down about evictions."""
    return list((await world.admin.list(RECORDS, namespace)).items)


async def taint_record(world: World, rule_: Obj, *, evicted: int) -> None:
    """Write the record of a rule that has evicted so many pods, as `controllers/history` does."""
    typed = msgspec.convert(rule_, DeviceTaintRule)
    opened = open_record(typed, now=world.clock.now())
    made = await world.admin.create(TAINT_RECORDS, opened)
    status = msgspec.structs.replace(opened.status, evicted=evicted)
    changed = msgspec.structs.replace(made, status=status)
    await world.admin.update(TAINT_RECORDS, changed, "status")


async def conditions(world: World, name: str = "r") -> dict[str, Obj]:
    """Return the conditions of a rule by type."""
    rule = await world.admin.get(RULES, Key("", name))
    return {condition["type"]: condition for condition in rule["status"].get("conditions", [])}


async def set_effect(world: World, effect: str, name: str = "r") -> None:
    await world.admin.patch(RULES, Key("", name), {"spec": {"taint": {"effect": effect}}})


async def unrule(world: World, name: str = "r") -> None:
    await world.admin.delete(RULES.read_as(dict), Key("", name))


async def status(world: World, name: str = "r") -> tuple[str, str, str]:
    """Return the condition of a rule: status, reason and message."""
    result = await condition(world, name)
    return result["status"], result["reason"], result["message"]


async def condition(world: World, name: str = "r") -> Obj:
    rule_ = await world.admin.get(RULES, Key("", name))
    conditions: list[Obj] = rule_["status"]["conditions"]
    (only,) = [item for item in conditions if item["type"] == "EvictionInProgress"]
    return only


async def fate(world: World, name: str, namespace: str = "a") -> str:
    """Return what became of a pod: stays, evicted or gone."""
    try:
        pod = await world.admin.get(PODS, Key(namespace, name))
    except NotFound:
        return "gone"
    return "evicted" if "deletionTimestamp" in pod["metadata"] else "stays"


async def event_messages(world: World, namespace: str = "a") -> list[str]:
    """Return the events about pods, as `pod: message`, in order."""
    page = await world.admin.list(EVENTS, namespace)
    items = sorted(page.items, key=lambda item: int(item["metadata"]["resourceVersion"]))
    return [f"{item['involvedObject']['name']}: {item['message']}" for item in items]


def now(world: World) -> str:
    return format_time(world.clock.now())

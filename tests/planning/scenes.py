"""Small clusters of every kind, filled by the real controllers, and what a user does to them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import manifests
from controllers.world import NAMESPACES, PODS, SCHEME, Obj, World, running
from sully.api.resource.annotations import EXPIRES_AT, PAUSED
from sully.client.discovery.resources import of_scheme
from sully.client.objects import from_body
from sully.client.options import WriteOptions
from sully.client.transport import Key, Kind
from sully.controller_context import ControllerConfig
from sully.controller_setup import build_manager
from sully.controllers.simulatednodes.wiring import SimulatedNodeSettings
from sully.controllers.workloads.kinds import REPLICA_SETS
from sully.domain.simulated.fleet import Fleet, PodDelays, name_of
from sully.evictor.settings import EvictionSettings
from sully.machinery.formats.timestamps import format_micro_time
from sully.machinery.gates import Gates
from sully.planning.dryrun.changes import Change, Put, Remove
from sully.runtime.ids import Ids
from sully.runtime.metrics import Metrics
from sully.views import kinds
from sully.views.snapshot.kinds import BUDGETS, NODES, TEMPLATES

DRIVER, KEY, OTHER = "gpu.example.com", "example.com/broken", "example.com/hot"
BUDGETED = "NoExecuteWithPodDisruptionBudget"
STOP = 1.0
GATES = Gates({"SullyNoExecuteWithPodDisruptionBudget": True})
CHOSEN = ("serviceaccounts", "replicasets", "disruption", "claims", "eviction", "expiry")
MODEL = f'device.attributes["{DRIVER}"].model'

OURS = f'device.driver == "{DRIVER}"'

SETS: Kind[Obj] = REPLICA_SETS.read_as(dict)
WHOLE_BUDGETS: Kind[Obj] = BUDGETS.read_as(dict)
CLAIM_TEMPLATES: Kind[Obj] = TEMPLATES.read_as(dict)
WHOLE_NODES: Kind[Obj] = NODES.read_as(dict)
CLAIMS: Kind[Obj] = kinds.CLAIMS.read_as(dict)
CLASSES: Kind[Obj] = kinds.CLASSES.read_as(dict)


@dataclass(frozen=True)
class Device:
    """A device, which may be one for many, or a part of a card of which two parts fit."""

    form: str = "plain"
    model: str = "a"
    taint: str = ""
    """The effect of a taint that its driver puts on it."""


@dataclass(frozen=True)
class Machine:
    """A node with its devices."""

    devices: tuple[Device, ...]
    cordoned: bool = False


@dataclass(frozen=True)
class Workload:
    """Equal pods: what they ask for, what they tolerate for how long, and how much they matter."""

    replicas: int
    ask: str = "one"
    tolerations: tuple[tuple[str, str, int | None], ...] = ()
    """Key, effect and seconds."""
    cpu: str = "1"
    priority: str = ""
    grace: int | None = None
    bare: bool = False


@dataclass(frozen=True)
class Marking:
    """A rule or a patch."""

    number: int
    patch: bool = False
    key: str = KEY
    effect: str = "NoExecute"
    machine: int | None = None
    device: int | None = None
    cel: str = ""
    """The model of the devices it is for."""
    of_class: str = ""
    model: str = ""
    """What a patch makes of the model."""
    rate: int | None = None
    lasts: float | None = None
    paused: bool = False


@dataclass(frozen=True)
class Act:
    """Something that a user does."""

    verb: str
    marking: Marking = field(default_factory=lambda: Marking(0))
    machine: Machine = field(default_factory=lambda: Machine((Device(),)))


@dataclass(frozen=True)
class Scene:
    """A cluster, and what is done to it."""

    machines: tuple[Machine, ...]
    workloads: tuple[Workload, ...]
    acts: tuple[Act, ...]
    markings: tuple[Marking, ...] = ()
    """What is there before."""
    budget: tuple[str, int] | None = None
    """What the first workload may lose."""
    most_per_minute: int | None = None
    usual_per_second: int | None = None


@asynccontextmanager
async def controlled(scene: Scene) -> AsyncIterator[World]:
    """Yield a world with all controllers at work."""
    world = World(GATES)
    config = ControllerConfig(
        transport=world.transport,
        served=of_scheme(SCHEME),
        gates=GATES,
        ids=Ids(random.Random(2)),
        simulated_nodes=SimulatedNodeSettings(
            Fleet(len(scene.machines), 0), PodDelays(start=0, stop=STOP)
        ),
        chosen=frozenset((*CHOSEN, "scheduling")),
        eviction=EvictionSettings(
            max_per_minute=scene.most_per_minute, default_per_second=scene.usual_per_second
        ),
    )
    manager = build_manager(config, world.clock, Metrics())
    async with running(manager):
        await world.settle()
        yield world


# -- filling --------------------------------------------------------------------------------------


async def fill(world: World, scene: Scene) -> None:
    """Make all that is there before."""
    await world.admin.create(NAMESPACES, {"metadata": {"name": "a"}})
    await world.settle()
    gpu = manifests.device_class("gpu", OURS, extendedResourceName="example.com/gpu")
    await world.admin.create(CLASSES, gpu)
    await world.admin.create(CLASSES, class_of("a"))
    for number, machine in enumerate(scene.machines):
        for body in slices(number, machine):
            await world.admin.create(WHOLE_SLICES, body)
        if machine.cordoned:
            cordon = {"spec": {"unschedulable": True}}
            await world.admin.patch(WHOLE_NODES, Key("", name_of(number)), cordon)
    if scene.budget is not None:
        what, number = scene.budget
        spec: Obj = {"selector": {"matchLabels": {"app": "w0"}}, what: number}
        await world.create(WHOLE_BUDGETS, "a", "budget", spec=spec)
    for number, workload in enumerate(scene.workloads):
        # One after the other, so that who came first is not random.
        await make(world, f"w{number}", workload)
        await world.pass_time(1, step=1)
    for marking in scene.markings:
        await world.admin.create(kind_of(marking), fresh(body_of(marking, world)))
    await world.pass_time(2, step=0.25)
    if scene.most_per_minute is not None:
        # A plan does not know which pods were evicted within the last minute.
        await world.pass_time(61, step=1)


def class_of(model: str) -> Obj:
    """Return the class for one model."""
    return manifests.device_class("model-a", OURS, f'{MODEL} == "{model}"')


def slices(number: int, machine: Machine, generation: int = 1) -> list[Obj]:
    """Return the slices of a machine; those of one with parts have its counters beside them."""
    parts = any(device.form == "part" for device in machine.devices)
    pool = name_of(number)
    common: Obj = {"generation": generation, "count": 1 + parts}
    devices = [_device(at, entry) for at, entry in enumerate(machine.devices)]
    bodies = [manifests.slice_(f"s{number}", pool, *devices, **common)]
    if parts:
        card = {"name": "card", "counters": {"memory": {"value": "8"}}}
        bodies.append(
            manifests.slice_(f"s{number}-counters", pool, sharedCounters=[card], **common)
        )
    return bodies


def _device(at: int, device: Device) -> Obj:
    result: Obj = {"name": f"gpu-{at}", "attributes": {"model": {"string": device.model}}}
    if device.taint:
        result["taints"] = [{"key": KEY, "effect": device.taint}]
    if device.form == "part":
        draw = {"counterSet": "card", "counters": {"memory": {"value": "4"}}}
        result["consumesCounters"] = [draw]
    if device.form == "shared":
        policy = {"default": "1", "validRange": {"min": "1", "step": "1", "max": "2"}}
        result["allowMultipleAllocations"] = True
        result["capacity"] = {"slots": {"value": "2", "requestPolicy": policy}}
    return result


async def make(world: World, name: str, workload: Workload) -> None:
    """Create a workload and what its pods ask for."""
    resources: Obj = {"requests": {"cpu": workload.cpu}}
    if workload.ask == "extended":
        resources["limits"] = {"example.com/gpu": "1"}
    spec = manifests.pod_spec(resources=resources, priorityClassName=workload.priority)
    if workload.grace is not None:
        spec["terminationGracePeriodSeconds"] = workload.grace
    if workload.ask == "together":
        await world.create(CLAIMS, "a", name, spec=expected(workload))
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
    elif workload.ask != "extended":
        await world.create(CLAIM_TEMPLATES, "a", name, spec={"spec": expected(workload)})
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": name}]
    labels = {"app": name}
    if workload.bare:
        for number in range(workload.replicas):
            await world.create(
                PODS, "a", f"{name}-{number}", metadata={"labels": labels}, spec=spec
            )
        return
    template = manifests.pod_template(labels, spec)
    body = {"replicas": workload.replicas, "selector": {"matchLabels": labels}}
    await world.create(SETS, "a", name, spec=body | {"template": template})


def expected(workload: Workload) -> Obj:
    """Return the spec of a claim."""
    request: Obj = {"deviceClassName": "gpu", "count": 2 if workload.ask == "two" else 1}
    if workload.ask == "model":
        request["deviceClassName"] = "model-a"
    if workload.ask == "cel":
        request["selectors"] = [{"cel": {"expression": f'{MODEL} == "b"'}}]
    request |= {"tolerations": [_toleration(*toleration) for toleration in workload.tolerations]}
    if workload.ask == "list":
        first = request | {"name": "first", "deviceClassName": "model-a"}
        second = request | {"name": "second", "count": 2}
        return {"devices": {"requests": [{"name": "r", "firstAvailable": [first, second]}]}}
    return {"devices": {"requests": [{"name": "r", "exactly": request}]}}


def _toleration(key: str, effect: str, seconds: int | None) -> Obj:
    result: Obj = {"key": key, "operator": "Exists", "effect": effect}
    return result if seconds is None else result | {"tolerationSeconds": seconds}


# -- acting ---------------------------------------------------------------------------------------

WHOLE_RULES: Kind[Obj] = kinds.RULES.read_as(dict)
WHOLE_PATCHES: Kind[Obj] = kinds.PATCHES.read_as(dict)
WHOLE_SLICES: Kind[Obj] = kinds.SLICES.read_as(dict)
TYPED: dict[str, Kind[Any]] = {
    item.plural: item for item in (kinds.RULES, kinds.PATCHES, kinds.SLICES, kinds.CLASSES)
}


def kind_of(marking: Marking) -> Kind[Obj]:
    """Return what a marking is."""
    return WHOLE_PATCHES if marking.patch else WHOLE_RULES


def body_of(marking: Marking, world: World) -> Obj:
    """Return a rule or a patch."""
    names: Obj = {"driver": DRIVER}
    if marking.machine is not None:
        names["pool"] = name_of(marking.machine)
    if marking.device is not None:
        names["device"] = f"gpu-{marking.device}"
    if marking.cel:
        names["selectors"] = [{"cel": {"expression": f'{MODEL} == "{marking.cel}"'}}]
    if marking.of_class:
        names["deviceClassName"] = marking.of_class
    taint: Obj = {"key": marking.key, "effect": marking.effect}
    if marking.rate is not None:
        taint["evictionsPerSecond"] = marking.rate
    annotations: dict[str, str | None] = {EXPIRES_AT: None, PAUSED: None}
    if marking.lasts is not None:
        expires = world.clock.now() + timedelta(seconds=marking.lasts)
        annotations[EXPIRES_AT] = format_micro_time(expires)
    if marking.paused and not marking.patch:
        annotations[PAUSED] = "lunch"
    name = f"m{marking.number}"
    if not marking.patch:
        return manifests.rule(name, selector=names, taint=taint, annotations=annotations)
    devices: Obj = {"filter": names}
    if marking.model:
        devices["attributes"] = {f"{DRIVER}/model": {"string": marking.model}}
    else:
        devices["taints"] = [taint]
    return manifests.patch(name, devices, annotations=annotations)


def fresh(body: Obj) -> Obj:
    """Return an object without what a patch would take away."""
    notes = body["metadata"].get("annotations") or {}
    annotations = {name: text for name, text in notes.items() if text is not None}
    return body | {"metadata": body["metadata"] | {"annotations": annotations}}


async def act(world: World, scene: Scene, *, dry: bool) -> list[Change]:
    """Execute a scene, in earnest or dry, and return the changes."""
    changes: list[Change] = []
    there = {
        (plural, entry["metadata"]["name"]): entry
        for plural, kind in (
            (item.plural, item) for item in (WHOLE_RULES, WHOLE_PATCHES, WHOLE_SLICES, CLASSES)
        )
        for entry in (await world.admin.list(kind)).items
    }
    done: set[tuple[str, str]] = set()
    for act in scene.acts:
        for kind, body in _writes(world, scene, act):
            at = kind.plural, body["metadata"]["name"]
            # A dry run knows nothing of another before it, so each thing is changed once.
            if at in done:
                continue
            done.add(at)
            changes += await _write(world, kind, body, act.verb, dry=dry, known=at in there)
    return changes


def _writes(world: World, scene: Scene, entry: Act) -> Sequence[tuple[Kind[Obj], Obj]]:
    number = entry.marking.number % len(scene.machines)
    match entry.verb:
        case "mark" | "delete":
            return [(kind_of(entry.marking), body_of(entry.marking, world))]
        case "define" | "undefine":
            return [(CLASSES, class_of("b"))]
        case "publish":
            return [(WHOLE_SLICES, body) for body in slices(number, entry.machine, generation=2)]
        case _:
            return [(WHOLE_SLICES, body) for body in slices(number, scene.machines[number])]


async def _write(
    world: World, kind: Kind[Obj], body: Obj, verb: str, *, dry: bool, known: bool
) -> list[Change]:
    typed, key = TYPED[kind.plural], Key("", body["metadata"]["name"])
    if verb in ("delete", "withdraw", "undefine"):
        if known and not dry:
            await world.admin.delete(kind, key)
        return [Remove(typed, key)] if known else []
    options = WriteOptions(dry_run=dry)
    if known:
        made = await world.admin.patch(kind, key, body, options=options)
    else:
        made = await world.admin.create(kind, fresh(body), "", options)
    return [Put(typed, from_body(typed, made))]

"""Devices on nodes, sources that report faults, and the controller of policies."""

from __future__ import annotations

from typing import Any

import manifests
from controllers.world import Obj, World
from manifests import DRIVER, slice_
from sully.client.transport import Key, Kind
from sully.controllers.devicetaintpolicies.controller import NAME, DeviceTaintPolicyController
from sully.controllers.devicetaintpolicies.queries import PrometheusQueries
from sully.controllers.framework.controller import Controller
from sully.controllers.framework.manager import Manager
from sully.controllers.proofjobs import PROOF_JOBS, SELECTOR, ProofJobs
from sully.domain.devices.device_rules import rule_name
from sully.machinery.formats.timestamps import format_micro_time
from sully.views import kinds
from sully.views.devicepolicies.facts import FactsView
from sully.views.devices.changes import Features
from sully.views.devices.inventory import Inventory

SLICES: Kind[Obj] = kinds.SLICES.read_as(dict)
RULES: Kind[Obj] = kinds.RULES.read_as(dict)
POLICIES: Kind[Obj] = kinds.DEVICE_POLICIES.read_as(dict)
CLASSES: Kind[Obj] = kinds.CLASSES.read_as(dict)
CLAIMS: Kind[Obj] = kinds.CLAIMS.read_as(dict)
NODES: Kind[Obj] = kinds.POLICY_NODES.read_as(dict)
HEALTH: Kind[Obj] = kinds.DEVICE_HEALTH.read_as(dict)
XID: Obj = {"key": "example.com/xid", "effect": "None"}
SOURCE: Obj = {"name": "xid", "driverTaint": {"key": "example.com/xid"}}
STEPS: list[Obj] = [
    {"effect": "None"},
    {"after": "2m", "effect": "NoSchedule"},
    {"after": "30m", "effect": "NoExecute"},
]
SPEC: Obj = {
    "mode": "Enforce",
    "selector": {"driver": DRIVER},
    "sources": [SOURCE],
    "taint": {"key": "example.com/faulty", "value": "xid"},
    "steps": STEPS,
}


def controller(
    world: World,
    manager: Manager,
    queries: PrometheusQueries | None = None,
    *,
    features: Features | None = None,
) -> Controller:
    """Return the controller, on caches of its own."""
    inventory = Inventory(
        slices=manager.informer(kinds.SLICES),
        classes=manager.informer(kinds.CLASSES),
        rules=manager.informer(kinds.RULES),
        patches=manager.informer(kinds.PATCHES),
        features=features,
    )
    access = world.transport(NAME)
    return DeviceTaintPolicyController(
        policies=manager.informer(kinds.DEVICE_POLICIES),
        rules=manager.informer(kinds.RULES),
        facts=FactsView(
            inventory=inventory,
            claims=manager.informer(kinds.CLAIMS),
            nodes=manager.informer(kinds.POLICY_NODES),
            health=manager.informer(kinds.DEVICE_HEALTH),
        ),
        env=manager.env(access, NAME),
        jobs=ProofJobs(
            jobs=manager.informer(PROOF_JOBS, SELECTOR),
            claims=manager.informer(kinds.CLAIMS),
            transport=access,
            field_manager=NAME,
        ),
        queries=queries,
    )


def device(number: int, *taints: Obj, uuid: str = "", **attributes: Any) -> Obj:
    named = {"uuid": {"string": uuid or f"GPU-{number}"}, **attributes}
    body: Obj = {"name": f"gpu-{number}", "attributes": named}
    return body | ({"taints": list(taints)} if taints else {})


async def publish(world: World, *devices: Obj, node: str = "node-1") -> None:
    """Publish what a driver reports about the devices of a node."""
    body = slice_(f"{node}-gpus", node, *devices, nodeName=node)
    if f"{node}-gpus" in await world.names(SLICES):
        await world.admin.patch(SLICES, Key("", f"{node}-gpus"), {"spec": body["spec"]})
    else:
        await world.admin.create(SLICES, body)


async def policy(world: World, name: str = "faulty", **spec: Any) -> None:
    body = manifests.body("DeviceTaintPolicy", name, {**SPEC, **spec})
    await world.admin.create(POLICIES, body)


async def change(world: World, **spec: Any) -> None:
    await world.admin.patch(POLICIES, Key("", "faulty"), {"spec": spec})


async def effects(world: World) -> dict[str, str]:
    """Return the effect of the rule of each device."""
    specs = [rule["spec"] for rule in (await world.admin.list(RULES)).items]
    return {
        f"{spec['deviceSelector']['pool']}/{spec['deviceSelector']['device']}": spec["taint"][
            "effect"
        ]
        for spec in specs
    }


async def annotate(world: World, number: int, **annotations: str) -> None:
    """Annotate the rule of a device, as the CLI does."""
    name = rule_name("faulty", f"{DRIVER}/node-1/gpu-{number}")
    named = {f"sully.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    await world.admin.patch(RULES, Key("", name), {"metadata": {"annotations": named}})


async def clear(world: World, number: int) -> None:
    await annotate(world, number, cleared_at=format_micro_time(world.clock.now()))


async def status(world: World) -> Obj:
    got = await world.admin.get(POLICIES, Key("", "faulty"))
    result: Obj = got.get("status", {})
    return result


async def condition(world: World, type_: str) -> tuple[str, str]:
    conditions = (await status(world)).get("conditions", [])
    result = next(one for one in conditions if one["type"] == f"sully.dev/{type_}")
    return result["status"], result["message"]


async def phases(world: World) -> dict[str, str]:
    devices = (await status(world)).get("devices", [])
    return {one["device"].removeprefix(f"{DRIVER}/"): one["phase"] for one in devices}

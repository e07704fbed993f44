"""A world with rules, pods and records, and the controllers that keep the records."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import manifests
from controllers.world import NAMESPACES, Obj, World
from sully.api.sully.types import EvictedPod
from sully.client.transport import Key, Kind
from sully.controllers.framework.controller import Controller
from sully.controllers.framework.manager import Manager
from sully.controllers.history.controller import NAME, EvictionCounts, TaintHistoryController
from sully.controllers.history.retention import (
    RetentionController,
    deletion_time,
    evicted_since,
)
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.rules import sourced
from sully.domain.eviction.judge import EvictingTaint
from sully.domain.eviction.records import record
from sully.machinery.formats.timestamps import format_time
from sully.views import kinds
from sully.views.kinds import EVICTION_RECORDS, PARTIAL_EVICTION_RECORDS, TAINT_RECORDS
from sully.views.snapshot.kinds import PODS

RULES: Kind[Obj] = kinds.RULES.read_as(dict)
RECORDS: Kind[Obj] = TAINT_RECORDS.read_as(dict)
EVICTIONS: Kind[Obj] = EVICTION_RECORDS.read_as(dict)
KEEP = timedelta(days=30)


def historian(world: World, manager: Manager) -> Controller:
    return TaintHistoryController(
        rules=manager.informer(kinds.RULES),
        records=manager.informer(TAINT_RECORDS),
        evictions=EvictionCounts(
            manager.informer(PARTIAL_EVICTION_RECORDS), manager.informer(PODS)
        ),
        transport=world.transport(NAME),
        clock=world.clock,
    )


def forgetting_evictions(world: World, manager: Manager) -> Controller:
    return RetentionController(
        manager.informer(PARTIAL_EVICTION_RECORDS),
        evicted_since,
        transport=world.transport(NAME),
        clock=world.clock,
        keep=KEEP,
    )


def forgetting_rules(world: World, manager: Manager) -> Controller:
    return RetentionController(
        manager.informer(TAINT_RECORDS),
        deletion_time,
        transport=world.transport(NAME),
        clock=world.clock,
        keep=KEEP,
    )


async def rule(world: World, name: str = "hot", effect: str = "None", **metadata: Any) -> Obj:
    more: Obj = {"selector": {"driver": "d.com"}, "taint": {"description": "it smokes"}, **metadata}
    body = manifests.rule(name, effect, key="example.com/hot", **more)
    return await world.admin.create(RULES, body)


async def set_effect(world: World, effect: str, name: str = "hot") -> None:
    await world.admin.patch(RULES, Key("", name), {"spec": {"taint": {"effect": effect}}})


async def unrule(world: World, name: str = "hot") -> None:
    await world.admin.delete(RULES, Key("", name))


async def namespace(world: World, name: str = "a") -> None:
    await world.admin.create(NAMESPACES, manifests.namespace(name))


async def evicted(world: World, pod: str, *rules: str, namespace: str = "a", uid: str = "") -> None:
    """Record that a pod was evicted because of rules, as eviction does."""
    reasons = []
    for name in rules or ("hot",):
        rule = await world.admin.get(kinds.RULES, Key("", name))
        reasons.append(EvictingTaint(DeviceId("d.com", "p", "gpu-0"), sourced(rule)))
    gone = EvictedPod(namespace=namespace, name=pod, uid=uid or f"{pod}-uid", node="node-1")
    now = world.clock.now()
    await world.admin.create(EVICTION_RECORDS, record(gone, reasons, due=now, now=now))


async def the_record(world: World) -> Obj:
    """Return the only record of a rule there is."""
    (only,) = (await world.admin.list(RECORDS)).items
    return only


async def changes(world: World) -> list[str]:
    status = (await the_record(world))["status"]
    return [change["what"] for change in status.get("changes", ())]


def in_seconds(world: World, seconds: float) -> str:
    return format_time(world.clock.now() + timedelta(seconds=seconds))

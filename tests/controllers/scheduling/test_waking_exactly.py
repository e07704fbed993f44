"""Each kind of event wakes the pods it may help, and no other: counted at the queue itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from controllers.scheduling.placing import (
    CLAIMS,
    CLASSES,
    NODES,
    RULES,
    SLICES,
    Scheduling,
    claim,
    node,
    pod,
    prepare,
    publish,
    rule,
    wanting,
    where,
)
from controllers.world import PODS, Obj, World
from manifests import device_class
from sully.client.options import DeleteOptions
from sully.client.transport import Key, Kind

NOW = DeleteOptions(grace_period_seconds=0)
FIRST, SLICE, NODE = Key("a", "first"), Key("", "s-node-1"), Key("", "node-1")
Event = Callable[[World], Awaitable[Any]]
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {},
}


async def waiting(world: World) -> None:
    """Have a pod wait for each of the things there are to wait for."""
    await wanting(world, "first")
    await pod(world, "filler", cpu="6")
    await world.settle()
    await rule(world, "NoExecute", "old")
    await pod(world, "node", nodeSelector={"on": "mars"})
    await pod(world, "cpu", cpu="4")
    await wanting(world, "device")
    await wanting(world, "class", class_name="late")
    await pod(world, "claim", "missing")
    await pod(world, "joins", "first")
    await pod(world, "extended", limits={"example.com/gpu": "1"})
    await pod(world, "field", schedulingGroup={"podGroupName": "g"})
    await pod(world, "gated", schedulingGates=[{"name": "example.com/g"}])
    await world.settle()


def patch(kind: Kind[Obj], key: Key, body: Obj, part: str = "") -> Event:
    return lambda world: world.admin.patch(kind, key, body, subresource=part)


def labelled(kind: Kind[Obj], key: Key) -> Event:
    return patch(kind, key, {"metadata": {"annotations": {"some": "note"}}})


async def another_node(world: World) -> None:
    await node(world, "node-2")


async def deleted_claim(world: World) -> None:
    await world.admin.patch(CLAIMS, FIRST, {"metadata": {"finalizers": None}})
    await world.admin.delete(CLAIMS, FIRST)


TAINTED: Obj = {
    "spec": {
        "devices": [{"name": "gpu-0", "taints": [{"key": "example.com/x", "effect": "NoSchedule"}]}]
    }
}
GIVEN_BACK: Obj = {"status": {"allocation": None, "reservedFor": None}}
CLASS = device_class("late")
ON_NODES = {"node", "cpu", "device", "extended"}
EVENTS: dict[str, tuple[Event, set[str]]] = {
    "a node comes": (another_node, ON_NODES),
    "a node gets a label": (patch(NODES, NODE, {"metadata": {"labels": {"x": "y"}}}), ON_NODES),
    "a node gets more memory": (
        patch(NODES, NODE, {"status": {"allocatable": {"memory": "64Gi"}}}, "status"),
        ON_NODES,
    ),
    "a node is closed": (patch(NODES, NODE, {"spec": {"unschedulable": True}}), set()),
    "a node reports that it is alive": (labelled(NODES, NODE), set()),
    "a slice comes": (lambda world: publish(world, "node-9"), {"device", "joins"}),
    "a slice changes": (patch(SLICES, SLICE, TAINTED), {"device", "joins"}),
    "a slice is annotated": (labelled(SLICES, SLICE), set()),
    "a rule comes": (lambda world: rule(world, name="new"), set()),
    "a rule goes": (
        lambda world: world.admin.delete(RULES, Key("", "old")),
        {"device", "joins"},
    ),
    "a rule is weakened": (
        patch(RULES, Key("", "old"), {"spec": {"taint": {"effect": "None"}}}),
        {"device", "joins"},
    ),
    "a class comes": (
        lambda world: world.admin.create(CLASSES, CLASS),
        {"class", "device", "extended"},
    ),
    "a class changes": (
        patch(CLASSES, Key("", "gpu"), {"spec": {"extendedResourceName": "example.com/x"}}),
        {"class", "device", "extended"},
    ),
    "a class is annotated": (labelled(CLASSES, Key("", "gpu")), set()),
    "a class goes": (lambda world: world.admin.delete(CLASSES, Key("", "gpu")), set()),
    "devices are given back": (
        patch(CLAIMS, FIRST, GIVEN_BACK, "status"),
        {"device", "joins"},
    ),
    # Who joins it waits for its taint to go, and now for a claim of that name to come.
    "a claim with devices is deleted": (deleted_claim, {"device"}),
    "its claim comes": (lambda world: claim(world, "missing"), {"claim"}),
    "its claim is annotated": (labelled(CLAIMS, Key("a", "device")), set()),
    "another user's claim comes": (lambda world: claim(world, "another"), set()),
    "a pod that has a node goes": (
        lambda world: world.admin.delete(PODS, Key("a", "filler"), NOW),
        {"cpu"},
    ),
    "a pod that has a node is annotated": (labelled(PODS, Key("a", "filler")), set()),
    "a pod that has a node ends": (
        patch(PODS, Key("a", "filler"), {"status": {"phase": "Succeeded"}}, "status"),
        {"cpu"},
    ),
    "a gate is taken away": (
        patch(PODS, Key("a", "gated"), {"spec": {"schedulingGates": None}}),
        {"gated"},
    ),
    "a pod that waits is annotated": (labelled(PODS, Key("a", "device")), set()),
}


@pytest.mark.parametrize(("event", "want"), EVENTS.values(), ids=EVENTS.keys())
async def test_who_is_woken(world: World, event: Event, want: set[str]) -> None:
    await prepare(world)
    scheduling = Scheduling()
    async with scheduling.running(world):
        await waiting(world)
        before = len(scheduling.looked_at)
        await event(world)
        await world.settle()
        woken = scheduling.looked_at[before:]

    assert sorted(woken) == sorted(want), "each of them once"


async def test_what_they_wait_for(world: World) -> None:
    """The table above is about something only if nobody got a node in the first place."""
    await prepare(world)
    scheduling = Scheduling()
    async with scheduling.running(world):
        await waiting(world)
        await world.pass_time(3600, step=600)

    reported = {
        "node": "node(s) didn't match",
        "cpu": "Insufficient cpu",
        "device": "cannot allocate all claims",
        "class": "device class late does not exist",
        "claim": "",
        "joins": "untolerated NoExecute taint",
        "extended": "Insufficient example.com/gpu",
        "field": "does not evaluate spec.schedulingGroup",
        "gated": "Scheduling is blocked",
    }
    for name, text in reported.items():
        assert text in await where(world, name), name
    assert len(scheduling.looked_at) == len(set(scheduling.looked_at)), "no one looked twice"

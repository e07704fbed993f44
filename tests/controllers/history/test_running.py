"""History, expiry and patches in a whole control plane, each controller with its own rights."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import manifests
from controllers.history.remembering import RECORDS, RULES
from controllers.world import ACCOUNTS, NAMESPACES, PODS, Obj
from manifests import claim_spec, node, pod_spec, slice_
from sully.client.direct import DirectTransport
from sully.client.events import EVENTS
from sully.client.transport import Key, Kind
from sully.machinery.compat import Compat
from sully.machinery.errors import NotFound
from sully.testing.cluster import in_process
from sully.testing.patience import PATIENCE
from sully.views import kinds

PATCHES: Kind[Obj] = kinds.PATCHES.read_as(dict)
SLICES: Kind[Obj] = kinds.SLICES.read_as(dict)
CLASSES: Kind[Obj] = kinds.CLASSES.read_as(dict)
CLAIMS: Kind[Obj] = kinds.CLAIMS.read_as(dict)
NODES: Kind[Obj] = Kind("", "v1", "nodes", "Node", dict, namespaced=False)
TAINT = {"key": "example.com/hot", "effect": "NoSchedule"}


async def until(
    access: DirectTransport, kind: Kind[Any], expected: Callable[[Obj], Any], where: str = ""
) -> Obj:
    """Follow a collection until an object in it is as wanted."""
    async with asyncio.timeout(PATIENCE):
        async for event in access.watch(kind, where):
            if event.object is not None and expected(event.object):
                object_: Obj = event.object
                return object_
    raise AssertionError("the watch ended")


async def test_a_rule_that_ends_is_recorded() -> None:
    async with in_process() as plane:
        access = DirectTransport(plane.direct())
        metadata = {"annotations": {"sully.dev/expires-at": "2020-01-01T00:00:00Z"}}
        # A moment earlier, so that a user sees it before it ends.
        body: Obj = {"metadata": {"name": "hot"}, "spec": {"deviceSelector": {}, "taint": TAINT}}
        await access.create(RULES, body)
        await until(access, RECORDS, lambda result: result["status"].get("taint"))

        await access.patch(RULES, Key("", "hot"), {"metadata": metadata})

        deleted = await until(access, RECORDS, lambda result: result["status"].get("deletedTime"))
        event = await until(access, EVENTS, lambda result: result["reason"] == "Expired")

    assert deleted["spec"]["createdBy"] == "kubernetes-admin"
    assert event["involvedObject"]["name"] == "hot"


async def test_a_patch_reports_whom_it_is_for() -> None:
    async with in_process() as plane:
        access = DirectTransport(plane.direct())
        await access.create(PATCHES, {"metadata": {"name": "x"}, "spec": {"devices": {}}})

        result = await until(access, PATCHES, lambda item: item["status"].get("conditions"))

    assert [condition["type"] for condition in result["status"]["conditions"]] == [
        "sully.dev/Applied"
    ]


async def _fill(access: DirectTransport) -> None:
    """Make one device, a rule without a selector, and a pod that wants the device."""
    await access.create(NAMESPACES, {"metadata": {"name": "a"}})
    await until(access, ACCOUNTS, lambda result: result["metadata"]["name"] == "default", "a")
    await access.create(NODES, node("node-1"))
    await access.create(CLASSES, manifests.device_class())
    await access.create(RULES, manifests.body("DeviceTaintRule", "none", {"taint": TAINT}))
    await access.create(SLICES, slice_("s", "p", nodeName="node-1"))
    claim = manifests.body("ResourceClaim", "p", claim_spec(), namespace="a")
    await access.create(CLAIMS, claim)
    await access.create(PODS, manifests.pod("p", pod_spec("p"), namespace="a"))


def _judged(pod: Obj) -> bool:
    conditions = {condition["type"]: condition for condition in pod["status"].get("conditions", ())}
    return "nodeName" in pod["spec"] or "PodScheduled" in conditions


async def test_a_rule_without_a_selector_is_for_no_device() -> None:
    async with in_process() as plane:
        access = DirectTransport(plane.direct())
        await _fill(access)

        pod = await until(access, PODS, _judged, "a")

    assert pod["spec"].get("nodeName") == "node-1"


async def test_for_the_scheduler_of_kubernetes_it_is_for_all() -> None:
    async with in_process(compat=Compat.KUBERNETES) as plane:
        access = DirectTransport(plane.direct())
        await _fill(access)

        pod = await until(access, PODS, _judged, "a")

    assert "nodeName" not in pod["spec"]
    assert "cannot allocate all claims" in pod["status"]["conditions"][0]["message"]


async def test_kubernetes_writes_no_records() -> None:
    async with in_process(compat=Compat.KUBERNETES) as plane:
        access = DirectTransport(plane.direct())
        with pytest.raises(NotFound):
            await access.list(RECORDS)

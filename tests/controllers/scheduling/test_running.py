"""The scheduler as it runs in a whole control plane, with its own rights."""

from __future__ import annotations

from typing import Any

from controllers.scheduling.placing import CLAIMS, CLASSES, DRIVER, NODES, RULES, SLICES
from controllers.world import ACCOUNTS, NAMESPACES, PODS, Obj
from sully.client.direct import DirectTransport
from sully.client.transport import Key, Kind
from sully.controllers.claims import lookups
from sully.testing.cluster import in_process

TEMPLATES: Kind[Obj] = lookups.TEMPLATES.read_as(dict)


async def _until(access: DirectTransport, kind: Kind[Any], where: str, wanted: Any) -> Any:
    """Follow a collection until an object in it is as wanted."""
    async for event in access.watch(kind, where):
        if event.object is not None and wanted(event.object):
            return event.object
    raise AssertionError("the watch ended")


def _told(pod: Obj) -> str:
    conditions = pod["status"].get("conditions", ())
    return next((each.get("message", "") for each in conditions if each["status"] == "False"), "")


async def test_a_pod_from_a_template_waits_for_a_rule_to_go() -> None:
    async with in_process() as plane:
        access = DirectTransport(plane.direct())
        await access.create(NAMESPACES, {"metadata": {"name": "a"}})
        await _until(access, ACCOUNTS, "a", lambda found: found["metadata"]["name"] == "default")
        room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
        status = {"capacity": room, "allocatable": room}
        await access.create(NODES, {"metadata": {"name": "node-1"}, "status": status})
        await access.create(CLASSES, {"metadata": {"name": "gpu"}, "spec": {}})
        pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": "gpu-0"}]
        slice_ = {"driver": DRIVER, "pool": pool, "nodeName": "node-1", "devices": devices}
        await access.create(SLICES, {"metadata": {"name": "s"}, "spec": slice_})
        taint = {"key": "example.com/broken", "effect": "NoSchedule"}
        rule = {"deviceSelector": {"driver": DRIVER}, "taint": taint}
        await access.create(RULES, {"metadata": {"name": "r"}, "spec": rule})
        wanted = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
        key = {"name": "t", "namespace": "a"}
        await access.create(TEMPLATES, {"metadata": key, "spec": {"spec": wanted}})
        spec = {
            "containers": [{"name": "c", "image": "x"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
        }
        await access.create(PODS, {"metadata": {"name": "p", "namespace": "a"}, "spec": spec})

        refused = await _until(access, PODS, "a", lambda found: _told(found))
        await access.delete(RULES, Key("", "r"))
        bound = await _until(access, PODS, "a", lambda found: found["spec"].get("nodeName"))
        claims = (await access.list(CLAIMS, "a")).items

    assert _told(refused).startswith("0/1 nodes are available: 1 cannot allocate all claims.")
    assert bound["spec"]["nodeName"] == "node-1"
    assert [each["name"] for each in claims[0]["status"]["reservedFor"]] == ["p"]
    managers = {each["manager"] for each in claims[0]["metadata"]["managedFields"]}
    assert "kube-scheduler" in managers

"""The controller as it runs in a whole control plane, with its own rights."""

from __future__ import annotations

from typing import Any

import manifests
from controllers.claims.using import CLAIMS, FINALIZER, RESULT, SPEC, TEMPLATES, used_by
from controllers.world import ACCOUNTS, NAMESPACES, PODS, Obj
from sully.client.direct import DirectTransport
from sully.client.events import EVENTS
from sully.client.objects import key_of
from sully.client.options import DeleteOptions, WatchOptions
from sully.client.transport import Key, Kind
from sully.testing.cluster import in_process


async def _until(access: DirectTransport, kind: Kind[Any], expected: Any) -> Any:
    """Follow a collection until an object in it is as wanted."""
    async for event in access.watch(kind, "a"):
        if event.object is not None and expected(event.object):
            return event.object
    raise AssertionError("the watch ended")


async def _gone(access: DirectTransport, key: Key) -> None:
    """Wait until a claim is gone."""
    page = await access.list(CLAIMS, key.namespace)
    if key not in map(key_of, page.items):
        return
    since = WatchOptions(resource_version=page.resource_version)
    async for event in access.watch(CLAIMS, key.namespace, since):
        if event.type == "DELETED" and key_of(event.object) == key:
            return


def _spec(template: str) -> Obj:
    references = [{"name": "g", "resourceClaimTemplateName": template}]
    return manifests.pod_spec(resourceClaims=references)


async def test_the_life_of_a_claim() -> None:
    async with in_process() as plane:
        access = DirectTransport(plane.direct())
        await access.create(NAMESPACES, {"metadata": {"name": "a"}})
        await _until(access, ACCOUNTS, lambda result: result["metadata"]["name"] == "default")
        where = {"namespace": "a"}
        await access.create(TEMPLATES, {"metadata": {"name": "t", **where}, "spec": {"spec": SPEC}})
        await access.create(PODS, {"metadata": {"name": "q", **where}, "spec": _spec("absent")})
        failed = await _until(
            access, EVENTS, lambda result: result["reason"] == "FailedResourceClaimCreation"
        )
        await access.create(PODS, {"metadata": {"name": "p", **where}, "spec": _spec("t")})
        pod = await _until(access, PODS, lambda result: "resourceClaimStatuses" in result["status"])
        key = Key("a", pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"])

        target = {"metadata": {"name": "p", **where}, "target": {"name": "node-1"}}
        await access.create(PODS, {"kind": "Binding", **target}, "binding")
        await access.patch(CLAIMS, key, {"metadata": {"finalizers": [FINALIZER]}})
        report = {name: RESULT[name] for name in ("driver", "pool", "device")}
        status = {"allocation": {"devices": {"results": [RESULT]}}, "devices": [report]}
        await access.patch(CLAIMS, key, {"status": status}, subresource="status")
        reserved = await _until(access, CLAIMS, lambda result: result["status"].get("reservedFor"))
        assert reserved["status"]["reservedFor"] == [used_by(pod)]

        await access.delete(PODS, Key("a", "p"), DeleteOptions(grace_period_seconds=0))
        await _gone(access, key)

    assert failed["source"] == {"component": "resource_claim"}

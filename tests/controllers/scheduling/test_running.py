"""The scheduler as it runs in a whole control plane, with its own rights."""

from __future__ import annotations

from typing import Any

import manifests
from controllers.scheduling.placing import CLAIMS, CLASSES, NODES, RULES, SLICES
from controllers.world import ACCOUNTS, NAMESPACES, PODS, Obj
from manifests import DRIVER, claim_spec, node, pod_spec, slice_
from sully.client.direct import DirectTransport
from sully.client.options import DeleteOptions
from sully.client.transport import Key, Kind
from sully.controllers.claims import lookups
from sully.domain.scheduling.diagnosis import DEVICE_DIAGNOSIS
from sully.testing.cluster import in_process

TEMPLATES: Kind[Obj] = lookups.TEMPLATES.read_as(dict)


async def _until(access: DirectTransport, kind: Kind[Any], where: str, expected: Any) -> Any:
    """Follow a collection until an object in it is as wanted."""
    async for event in access.watch(kind, where):
        if event.object is not None and expected(event.object):
            return event.object
    raise AssertionError("the watch ended")


def _message(pod: Obj) -> str:
    conditions = pod["status"].get("conditions", ())
    return next(
        (
            condition.get("message", "")
            for condition in conditions
            if condition["status"] == "False"
        ),
        "",
    )


async def _furnish(access: DirectTransport, **class_spec: Any) -> None:
    """Make a namespace, a node with one device, and a class for it."""
    await access.create(NAMESPACES, {"metadata": {"name": "a"}})
    await _until(access, ACCOUNTS, "a", lambda result: result["metadata"]["name"] == "default")
    await access.create(NODES, node("node-1"))
    await access.create(CLASSES, manifests.device_class(**class_spec))
    await access.create(SLICES, slice_("s", "node-1"))


async def test_a_pod_from_a_template_waits_for_a_rule_to_go() -> None:
    async with in_process() as plane:
        access = DirectTransport(plane.direct())
        await _furnish(access)
        taint = {"key": "example.com/broken", "effect": "NoSchedule"}
        rule = {"deviceSelector": {"driver": DRIVER}, "taint": taint}
        await access.create(RULES, {"metadata": {"name": "r"}, "spec": rule})
        key = {"name": "t", "namespace": "a"}
        await access.create(TEMPLATES, {"metadata": key, "spec": {"spec": claim_spec()}})
        spec = pod_spec(template="t")
        await access.create(PODS, {"metadata": {"name": "p", "namespace": "a"}, "spec": spec})

        refused = await _until(access, PODS, "a", lambda result: _message(result))
        await access.delete(RULES, Key("", "r"))
        bound = await _until(access, PODS, "a", lambda result: result["spec"].get("nodeName"))
        claims = (await access.list(CLAIMS, "a")).items

    assert _message(refused).startswith("0/1 nodes are available: 1 cannot allocate all claims.")
    assert bound["spec"]["nodeName"] == "node-1"
    assert [item["name"] for item in claims[0]["status"]["reservedFor"]] == ["p"]
    managers = {entry["manager"] for entry in claims[0]["metadata"]["managedFields"]}
    assert "kube-scheduler" in managers


async def _extended(access: DirectTransport, name: str) -> Obj:
    resources = {"limits": {"example.com/gpu": "1"}}
    spec = pod_spec(resources=resources)
    await access.create(PODS, manifests.pod(name, spec, namespace="a"))

    def bound(result: Obj) -> bool:
        return bool(result["metadata"]["name"] == name and result["spec"].get("nodeName"))

    result: Obj = await _until(access, PODS, "a", bound)
    return result


async def test_the_claim_for_extended_resources_is_deleted_with_its_pod() -> None:
    async with in_process() as plane:
        access = DirectTransport(plane.direct())
        await _furnish(access, extendedResourceName="example.com/gpu")
        first = await _extended(access, "p")
        now = DeleteOptions(grace_period_seconds=0)
        await access.delete(PODS, Key("a", "p"), now)
        # There is one device, so the second gets it only when the first has given it back.
        second = await _extended(access, "q")
        status = {"status": {"phase": "Succeeded"}}
        await access.patch(PODS, Key("a", "q"), status, subresource="status")
        third = await _extended(access, "r")

    named = [
        item["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
        for item in (first, second, third)
    ]
    assert [item.split("-")[0] for item in named] == ["p", "q", "r"]


async def test_an_account_is_created_and_deleted_with_the_rights_of_the_scheduler() -> None:
    async with in_process() as plane:
        access = DirectTransport(plane.direct())
        await _furnish(access)
        for name in ("p", "q"):
            key = {"name": name, "namespace": "a"}
            await access.create(CLAIMS, {"metadata": key, "spec": claim_spec()})
            spec = pod_spec(name)
            await access.create(PODS, {"metadata": key, "spec": spec})

        def types(result: Obj) -> set[str]:
            return {condition["type"] for condition in result["status"].get("conditions", ())}

        waiting = await _until(access, PODS, "a", lambda result: DEVICE_DIAGNOSIS in types(result))
        other = {"p": "q", "q": "p"}[waiting["metadata"]["name"]]
        await access.delete(PODS, Key("a", other), DeleteOptions(grace_period_seconds=0))
        await _until(
            access,
            PODS,
            "a",
            lambda result: result["spec"].get("nodeName") and DEVICE_DIAGNOSIS not in types(result),
        )

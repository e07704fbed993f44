"""The controller as it runs in a whole control plane, with its own rights."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.eviction.evicting import CLAIMS, DRIVER, RECORDS, RULES
from controllers.world import ACCOUNTS, NAMESPACES, PODS
from manifests import claim_spec, pod_spec
from sully.client.direct import DirectTransport
from sully.client.events import EVENTS
from sully.client.transport import Key, Kind
from sully.machinery.gates import Gates
from sully.testing.cluster import in_process

BUDGETED = "SullyNoExecuteWithPodDisruptionBudget"


async def _until(access: DirectTransport, kind: Kind[Any], where: str, expected: Any) -> Any:
    """Follow a collection until an object in it is as wanted."""
    async for event in access.watch(kind, where):
        if event.object is not None and expected(event.object):
            return event.object
    raise AssertionError("the watch ended")


EFFECTS = {"NoExecute": {}, "NoExecuteWithPodDisruptionBudget": {BUDGETED: True}}


@pytest.mark.parametrize(("effect", "gates"), EFFECTS.items())
async def test_a_pod_is_evicted_and_the_rule_reports_it(
    effect: str, gates: dict[str, bool]
) -> None:
    async with in_process(gates=Gates(gates)) as plane:
        access = DirectTransport(plane.direct())
        await access.create(NAMESPACES, {"metadata": {"name": "a"}})
        await _until(
            access, ACCOUNTS, "a", lambda results: results["metadata"]["name"] == "default"
        )
        key: dict[str, str] = {"name": "p", "namespace": "a"}
        await access.create(CLAIMS, {"metadata": key, "spec": claim_spec()})
        spec = pod_spec("p", nodeName="node-1")
        pod = await access.create(PODS, {"metadata": key, "spec": spec})
        result = {"request": "r", "driver": DRIVER, "pool": "p", "device": "d"}
        consumer = {"resource": "pods", "name": "p", "uid": pod["metadata"]["uid"]}
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]}
        await access.patch(CLAIMS, Key("a", "p"), {"status": status}, subresource="status")
        taint = {"key": "example.com/broken", "effect": effect}
        await access.create(
            RULES,
            {"metadata": {"name": "r"}, "spec": {"deviceSelector": {}, "taint": taint}},
        )

        await _until(access, PODS, "a", lambda results: "deletionTimestamp" in results["metadata"])
        event = await _until(
            access, EVENTS, "a", lambda results: results["reason"] == "DeviceTaintManagerEviction"
        )
        done = await _until(
            access,
            RULES,
            "",
            lambda results: any(
                condition["reason"] == "Completed"
                for condition in results["status"].get("conditions", ())
            ),
        )

        (record,) = (await access.list(RECORDS, "a")).items

    assert record["spec"]["causes"][0]["effect"] == effect
    assert event["message"] == "Marking for deletion"
    assert done["status"]["conditions"][0]["message"] == (
        "1 pod evicted since starting the controller."
    )

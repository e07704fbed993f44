"""Fields behind gates: dropped when new, kept when the stored object used them."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from api.resource.bodies import (
    claim_body,
    device,
    exactly,
    first_available,
    patch_body,
    result,
    rule_body,
    slice_body,
    taint,
    template_body,
)
from api.resource.writing import Writer, gates

SINCE = "2020-01-01T00:00:00Z"
MARK = taint(timeAdded=SINCE)
COUNTERS = [{"counterSet": "s", "counters": {"c": {"value": "1"}}}]


@dataclass(frozen=True)
class Case:
    gate: str
    body: dict[str, Any]  # uses the feature
    bare: dict[str, Any]  # the same without
    version: str = "v1"
    others: dict[str, bool] = field(default_factory=dict)


def shared(**more: Any) -> dict[str, Any]:
    return slice_body(device(capacity={"memory": {"value": "1"} | more.pop("policy", {})}, **more))


CASES = {
    "taints of devices": Case(
        "DRADeviceTaints", slice_body(device(taints=[MARK])), slice_body(device())
    ),
    "taints in slices of their own": Case(
        "DRADeviceTaints", slice_body(taints=[{"device": "d", "taint": MARK}]), slice_body()
    ),
    "counters": Case(
        "DRAPartitionableDevices",
        slice_body(device(consumesCounters=COUNTERS)),
        slice_body(device()),
    ),
    "nodes of devices": Case(
        "DRAPartitionableDevices",
        slice_body(device(), perDeviceNodeSelection=True),
        slice_body(device()),
    ),
    "binding conditions": Case(
        "DRADeviceBindingConditions",
        slice_body(
            device(bindsToNode=True, bindingConditions=["a"], bindingFailureConditions=["b"])
        ),
        slice_body(device()),
    ),
    "shares": Case(
        "DRAConsumableCapacity",
        shared(allowMultipleAllocations=True, policy={"requestPolicy": {"default": "1"}}),
        shared(),
    ),
    "lists": Case(
        "DRAListTypeAttributes",
        slice_body(device(attributes={"a": {"ints": [1]}})),
        slice_body(device(attributes={"a": {}})),
    ),
    "groups": Case(
        "DRADeviceCompatibilityGroups",
        slice_body(device(consumesCounters=[COUNTERS[0] | {"compatibilityGroups": ["g"]}])),
        slice_body(device(consumesCounters=COUNTERS)),
    ),
    "node resources": Case(
        "DRANodeAllocatableResources",
        slice_body(device(nodeAllocatableResources={"cpu": {"overhead": {"perPod": "1"}}})),
        slice_body(device()),
    ),
    "skipped operations": Case(
        "DRAOptionalNodeOperations", slice_body(skipNodeOperations=["*"]), slice_body()
    ),
    "partition type": Case(
        "DRAPartitionableDevicesType", slice_body(partitionTypeAttribute="a/b"), slice_body()
    ),
    "slices of taints": Case(
        "SullyTaintSlices", slice_body(taints=[{"device": "d", "taint": MARK}]), slice_body()
    ),
    "details of taints in slices": Case(
        "SullyTaintDetails",
        slice_body(
            device(taints=[MARK | {"description": "d"}]),
            taints=[{"device": "d", "taint": MARK | {"data": {}}}],
        ),
        slice_body(device(taints=[MARK]), taints=[{"device": "d", "taint": MARK}]),
    ),
    "rate in slices": Case(
        "SullyEvictionRate",
        slice_body(device(taints=[MARK | {"evictionsPerSecond": 1}])),
        slice_body(device(taints=[MARK])),
    ),
    "details of rules": Case(
        "SullyTaintDetails",
        rule_body(timeAdded=SINCE, description="d", data={}),
        rule_body(timeAdded=SINCE),
    ),
    "rate of rules": Case(
        "SullyEvictionRate",
        rule_body(timeAdded=SINCE, evictionsPerSecond=3),
        rule_body(timeAdded=SINCE),
    ),
    "tolerations": Case(
        "DRADeviceTaints",
        claim_body(exactly(tolerations=[{"key": "a"}])),
        claim_body(exactly()),
    ),
    "tolerations of alternatives in templates": Case(
        "DRADeviceTaints",
        template_body(first_available({"name": "a", "tolerations": [{"key": "a"}]})),
        template_body(first_available({"name": "a"})),
    ),
    "capacity of requests": Case(
        "DRAConsumableCapacity",
        claim_body(exactly(capacity={"requests": {"memory": "1"}})),
        claim_body(exactly()),
    ),
    "derived attributes": Case(
        "DRADerivedAttributes",
        claim_body(exactly(derivedAttributes=[{"name": "d/x", "expression": "1"}])),
        claim_body(exactly()),
    ),
    "taints of patches": Case(
        "DRADeviceTaints", patch_body(taints=[MARK]), patch_body(), version="v1alpha3"
    ),
    "attributes of patches": Case(
        "DRAAdminControlledDeviceAttributes",
        patch_body(attributes={"d/a": {"int": 1}}, capacity={"d/c": {"value": "1"}}),
        patch_body(),
        version="v1alpha3",
    ),
    "lists in patches": Case(
        "DRAListTypeAttributes",
        patch_body(attributes={"d/a": {"ints": [1]}}),
        patch_body(attributes={"d/a": {}}),
        version="v1alpha3",
    ),
    "policies in patches": Case(
        "DRAConsumableCapacity",
        patch_body(capacity={"d/c": {"value": "1", "requestPolicy": {"default": "1"}}}),
        patch_body(capacity={"d/c": {"value": "1"}}),
        version="v1alpha3",
    ),
    "details in patches": Case(
        "SullyTaintDetails",
        patch_body(taints=[MARK | {"description": "d"}]),
        patch_body(taints=[MARK]),
        version="v1alpha3",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_gate(case: Case) -> None:
    on = Writer(version=case.version, gates=gates(**{case.gate: True}))
    off = Writer(version=case.version, gates=gates(**{case.gate: False}))
    used, unused = on.read(case.body), on.read(case.bare)

    assert on.create(case.body).obj["spec"] == used["spec"]
    assert off.create(case.body).obj["spec"] == unused["spec"]
    assert off.update(case.body, unused).obj["spec"] == unused["spec"]
    assert off.update(case.body, used).obj["spec"] == used["spec"]


def test_results() -> None:
    allocated = result(
        tolerations=[{"operator": "Exists"}],
        shareID="11111111-2222-4333-8444-555555555555",
        consumedCapacity={"memory": "1"},
        bindingConditions=["a"],
        bindingFailureConditions=["b"],
    )
    allocation = {"devices": {"results": [allocated]}, "allocationTimestamp": SINCE}
    sent = claim_body(exactly()) | {"status": {"allocation": allocation}}
    old = Writer().create(claim_body(exactly())).obj
    off = Writer(
        gates=gates(
            DRADeviceTaints=False, DRAConsumableCapacity=False, DRADeviceBindingConditions=False
        )
    )

    got = off.update(sent, old, status=True).obj["status"]
    enabled = Writer().update(sent, old, status=True).obj["status"]

    # Tolerations are never dropped here: eviction reads them.
    bare = result(tolerations=[{"operator": "Exists"}])
    assert got == {"allocation": {"devices": {"results": [bare]}}}
    assert enabled == {"allocation": allocation}

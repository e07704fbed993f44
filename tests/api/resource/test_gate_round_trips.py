"""A gate that goes off and on again loses nothing that was stored.

What is dropped from new objects is in test_features.py; here an object lives through the change:
a user replaces it, as kubectl does, and another user changes another part of it.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest

from api.resource.bodies import (
    claim_body,
    device,
    exactly,
    patch_body,
    rule_body,
    slice_body,
    taint,
)
from api.resource.writing import Writer, gates
from sully.machinery.gates import DEFAULTS, LOCKED
from sully.machinery.serialization.codec import copy

SINCE = "2020-01-01T00:00:00Z"
MARK = taint(timeAdded=SINCE)
DETAILED = MARK | {"description": "d", "data": {"a": 1}}
CRITERIA = {"deviceClassName": "c", "selectors": [{"cel": {"expression": "true"}}]}
COUNTERS = [{"counterSet": "s", "counters": {"c": {"value": "1"}}}]
SHARED = {"value": "4", "requestPolicy": {"default": "1"}}
GUARDS = {"sully.dev/expires-at": "2031-01-01T00:00:00Z", "sully.dev/paused": "not now"}


@dataclass(frozen=True)
class Case:
    gate: str
    body: dict[str, Any]
    version: str = "v1"
    refused: dict[str, str] = field(default_factory=dict)  # by field, instead of dropped
    ungated: bool = False  # nothing is dropped; only those who act on it look at the gate


CASES = {
    "taints of devices": Case("DRADeviceTaints", slice_body(device(taints=[MARK]))),
    "tolerations": Case("DRADeviceTaints", claim_body(exactly(tolerations=[{"key": "a"}]))),
    "taints of patches": Case("DRADeviceTaints", patch_body(taints=[MARK]), "v1alpha3"),
    "rules": Case("DRADeviceTaintRules", rule_body({}, timeAdded=SINCE), ungated=True),
    "rules without any taints": Case(
        "DRADeviceTaints", rule_body({}, timeAdded=SINCE), ungated=True
    ),
    "attributes of patches": Case(
        "DRAAdminControlledDeviceAttributes",
        patch_body(attributes={"d/a": {"int": 1}}, capacity={"d/c": {"value": "1"}}),
        "v1alpha3",
    ),
    "taint slices": Case("SullyTaintSlices", slice_body(taints=[{"device": "d", "taint": MARK}])),
    "details in slices": Case("SullyTaintDetails", slice_body(device(taints=[DETAILED]))),
    "details in taint slices": Case(
        "SullyTaintDetails", slice_body(taints=[{"device": "d", "taint": DETAILED}])
    ),
    "details of rules": Case(
        "SullyTaintDetails", rule_body({}, timeAdded=SINCE, description="d", data={"a": 1})
    ),
    "lists of patches": Case(
        "DRAListTypeAttributes",
        patch_body(attributes={"d/a": {"ints": [1]}}),
        "v1alpha3",
        refused={"spec.devices.attributes[d/a]": "Invalid value"},
    ),
    "policies of patches": Case(
        "DRAConsumableCapacity",
        patch_body(capacity={"d/c": {"value": "1", "requestPolicy": {"default": "1"}}}),
        "v1alpha3",
    ),
    "details of patches": Case("SullyTaintDetails", patch_body(taints=[DETAILED]), "v1alpha3"),
    "criteria of rules": Case(
        "SullyRuleSelectors",
        rule_body(CRITERIA, timeAdded=SINCE),
        # A rule that lost its criteria would select every device.
        refused={
            "spec.deviceSelector.deviceClassName": "Forbidden",
            "spec.deviceSelector.selectors": "Forbidden",
        },
    ),
    "rate in slices": Case(
        "SullyEvictionRate", slice_body(device(taints=[MARK | {"evictionsPerSecond": 1}]))
    ),
    "rate of rules": Case(
        "SullyEvictionRate", rule_body({}, timeAdded=SINCE, evictionsPerSecond=1)
    ),
    "rate of patches": Case(
        "SullyEvictionRate", patch_body(taints=[MARK | {"evictionsPerSecond": 1}]), "v1alpha3"
    ),
    "guards of rules": Case(
        "SullyEvictionGuards",
        rule_body({}, timeAdded=SINCE) | {"metadata": {"name": "x", "annotations": GUARDS}},
        ungated=True,
    ),
    "rules that advise": Case(
        "SullyPreferNoSchedule",
        rule_body({}, effect="PreferNoSchedule", timeAdded=SINCE),
        refused={"spec.taint.effect": "Unsupported value"},
    ),
    "devices that are advised against": Case(
        "SullyPreferNoSchedule",
        slice_body(device(taints=[MARK | {"effect": "PreferNoSchedule"}])),
        refused={"spec.devices[0].taints[0].effect": "Unsupported value"},
    ),
    "rules that ask budgets": Case(
        "SullyNoExecuteWithPodDisruptionBudget",
        rule_body({}, effect="NoExecuteWithPodDisruptionBudget", timeAdded=SINCE),
        refused={"spec.taint.effect": "Unsupported value"},
    ),
    "devices whose pods ask budgets": Case(
        "SullyNoExecuteWithPodDisruptionBudget",
        slice_body(device(taints=[MARK | {"effect": "NoExecuteWithPodDisruptionBudget"}])),
        refused={"spec.devices[0].taints[0].effect": "Unsupported value"},
    ),
    "counters": Case("DRAPartitionableDevices", slice_body(device(consumesCounters=COUNTERS))),
    "groups": Case(
        "DRADeviceCompatibilityGroups",
        slice_body(device(consumesCounters=[COUNTERS[0] | {"compatibilityGroups": ["g"]}])),
    ),
    "partition type": Case(
        "DRAPartitionableDevicesType",
        slice_body(
            device(consumesCounters=COUNTERS, attributes={"a.dev/b": {"string": "half"}}),
            partitionTypeAttribute="a.dev/b",
        ),
    ),
    "binding conditions": Case(
        "DRADeviceBindingConditions",
        slice_body(device(bindingConditions=["a"], bindingFailureConditions=["b"])),
    ),
    "shares": Case(
        "DRAConsumableCapacity",
        slice_body(device(allowMultipleAllocations=True, capacity={"memory": SHARED})),
    ),
    "amounts": Case(
        "DRAConsumableCapacity", claim_body(exactly(capacity={"requests": {"memory": "1"}}))
    ),
    "lists": Case(
        "DRAListTypeAttributes",
        slice_body(device(attributes={"a": {"ints": [1]}})),
        # What is left of such an attribute has no value.
        refused={"spec.devices[0].attributes[a]": "Invalid value"},
    ),
    "derived attributes": Case(
        "DRADerivedAttributes",
        claim_body(
            exactly(derivedAttributes=[{"name": "d.dev/x", "expression": "1"}]),
            constraints=[{"requests": ["r"], "matchAttribute": "d.dev/x"}],
        ),
    ),
    "node resources": Case(
        "DRANodeAllocatableResources",
        slice_body(device(nodeAllocatableResources={"cpu": {"overhead": {"perPod": "1"}}})),
    ),
    "skipped operations": Case(
        "DRAOptionalNodeOperations", slice_body(device(), skipNodeOperations=["*"])
    ),
}
NOTHING_STORED = {
    "DRAFractionalCapacityRange": "how amounts are compared",
    "DRASchedulerFilterTimeout": "how long a search may last",
    "DRAResourceClaimGranularStatusAuthorization": "who may write",
    "DRAResourcePoolStatus": "whether a controller runs",
    "DRAWorkloadResourceClaims": "whom eviction looks at",
}
"""Gates that no field is behind, and what they are about."""


def _guards(obj: dict[str, Any]) -> dict[str, str]:
    result: dict[str, str] = obj["metadata"].get("annotations") or {}
    return {name: value for name, value in result.items() if name in GUARDS}


def _relabelled(body: dict[str, Any]) -> dict[str, Any]:
    return body | {"metadata": body["metadata"] | {"labels": {"seen": "yes"}}}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_is_stored_outlives_the_gate(case: Case) -> None:
    on, off = (
        Writer(version=case.version, gates=gates(**{case.gate: switch})) for switch in (True, False)
    )
    made = on.create(case.body)
    assert made.texts == []

    replaced = off.update(_relabelled(case.body), made.obj)
    again = on.update(copy(case.body), replaced.obj)

    for written in (replaced, again):
        assert written.texts == []
        assert written.obj["spec"] == made.obj["spec"]
        assert _guards(written.obj) == _guards(made.obj)
    assert replaced.obj["metadata"]["labels"] == {"seen": "yes"}
    generations = [item.obj["metadata"].get("generation") for item in (made, replaced, again)]
    assert len(set(generations)) == 1


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_is_new_without_the_gate_never_had_it(case: Case) -> None:
    off = Writer(version=case.version, gates=gates(**{case.gate: False}))
    on = Writer(version=case.version, gates=gates(**{case.gate: True}))
    whole = on.create(case.body).obj["spec"]

    made = off.create(case.body)

    assert dict(text.split(": ")[:2] for text in made.texts) == case.refused
    if not made.texts:
        assert (made.obj["spec"] == whole) is case.ungated


def test_every_gate_is_here() -> None:
    assert {case.gate for case in CASES.values()} | NOTHING_STORED.keys() | LOCKED == set(DEFAULTS)

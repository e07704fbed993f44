"""Slices: pool, nodes, devices, counters, slices of taints."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from api.resource.bodies import (
    IDENTIFIER_TEXT,
    LABEL_TEXT,
    SUBDOMAIN_TEXT,
    device,
    slice_body,
    taint,
)
from api.resource.writing import REFERENCE, Writer, gates
from manifests import resource_pool
from sully.machinery.compat import Compat

ALL_GATES = gates(
    DRAListTypeAttributes=True,
    DRADeviceCompatibilityGroups=True,
    DRANodeAllocatableResources=True,
    DRAOptionalNodeOperations=True,
    DRAPartitionableDevicesType=True,
)


@dataclass(frozen=True)
class Case:
    spec: dict[str, Any] = field(default_factory=dict)
    devices: tuple[dict[str, Any], ...] = ()
    want: tuple[str, ...] = ()


def pool(name: str = "p", generation: int = 1, count: int = 1) -> dict[str, Any]:
    return resource_pool(name, generation, count)


def with_attribute(**attribute: Any) -> tuple[dict[str, Any], ...]:
    return (device(attributes={"a": attribute}),)


CHOICES = "`int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`"
AT = "spec.devices[0].attributes[a]"
VERSION_TEXT = "must be a string compatible with semver.org spec 2.0.0"
COUNTER = {"counterSet": "s", "counters": {"memory": {"value": "1Gi"}}}
COUNTERS = {"name": "s", "counters": {"memory": {"value": "1Gi"}}}
PREPARE_TEXT = (
    "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped"
)

CASES = {
    "no device at all": Case(),
    "driver missing": Case({"driver": ""}, want=("spec.driver: Required value",)),
    "driver bad": Case(
        {"driver": "a_b"}, want=(f'spec.driver: Invalid value: "a_b": {SUBDOMAIN_TEXT}',)
    ),
    "driver in upper case": Case({"driver": "GPU.example.com"}),
    "driver too long": Case(
        {"driver": "a" * 64}, want=("spec.driver: Too long: may not be more than 63 bytes",)
    ),
    "pool missing": Case({"pool": pool("")}, want=("spec.pool.name: Required value",)),
    "pool of several parts": Case({"pool": pool("a/b.c/d")}),
    "pool with a bad part": Case(
        {"pool": pool("a/B")}, want=(f'spec.pool.name: Invalid value: "B": {SUBDOMAIN_TEXT}',)
    ),
    "pool too long": Case(
        {"pool": pool("/".join(["a" * 60] * 5))},
        want=("spec.pool.name: Too long: may not be more than 253 bytes",),
    ),
    "pool numbers": Case(
        {"pool": pool(generation=-1, count=0)},
        want=(
            "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
            "spec.pool.generation: Invalid value: -1: must be greater than or equal to zero",
        ),
    ),
    "all nodes false": Case(
        {"allNodes": False, "nodeName": "n"},
        want=("spec.allNodes: Invalid value: false: must be either unset or set to true",),
    ),
    "devices and counters": Case(
        {"sharedCounters": [COUNTERS]},
        (device(),),
        ('spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed',),
    ),
    "same device twice": Case(
        {}, (device("a"), device("a")), ('spec.devices[1]: Duplicate value: "a"',)
    ),
    "bad device name": Case(
        {}, (device("A"),), (f'spec.devices[0].name: Invalid value: "A": {LABEL_TEXT}',)
    ),
    "dotted device name": Case(
        {}, (device("a.b"),), ('spec.devices[0].name: Invalid value: "a.b": must not contain dots',)
    ),
    "too many attributes and capacities": Case(
        {},
        (
            device(
                attributes={f"a{i}": {"int": i} for i in range(20)},
                capacity={f"c{i}": {"value": "1"} for i in range(13)},
            ),
        ),
        (
            "spec.devices[0]: Invalid value: 33: the total number of attributes and capacities"
            " must not exceed 32",
        ),
    ),
    "too many attribute values": Case(
        {},
        (device(attributes={"a": {"ints": list(range(49))}}),),
        (
            "spec.devices[0]: Invalid value: 49: the total number of attribute values must not"
            " exceed 48",
        ),
    ),
    "attribute without a value": Case(
        {}, with_attribute(), (f'{AT}: Invalid value: "": must specify one of: {CHOICES}',)
    ),
    "attribute with two values": Case(
        {},
        with_attribute(int=1, string="x"),
        (f'{AT}: Invalid value: "{{int, string}}": must specify exactly one of: {CHOICES}',),
    ),
    "false and zero are values": Case({}, with_attribute(bool=False)),
    "long text": Case(
        {},
        with_attribute(string="x" * 65),
        (f"{AT}.string: Too long: may not be more than 64 bytes",),
    ),
    "version": Case({}, with_attribute(version="1.2.3-rc.1+build.5")),
    "not a version": Case(
        {}, with_attribute(version="1.2"), (f'{AT}.version: Invalid value: "1.2": {VERSION_TEXT}',)
    ),
    "list of versions": Case(
        {},
        with_attribute(versions=["1.0.0", "x"]),
        (f'{AT}.versions[1]: Invalid value: "x": {VERSION_TEXT}',),
    ),
    "names of attributes": Case(
        {},
        (
            device(
                attributes={
                    "ok": {"int": 1},
                    "dom.ain/ok": {"int": 1},
                    "a-b": {"int": 1},
                    "/x": {"int": 1},
                    "d/": {"int": 1},
                }
            ),
        ),
        (
            f'spec.devices[0].attributes: Invalid value: "a-b": {IDENTIFIER_TEXT}',
            'spec.devices[0].attributes: Invalid value: "": the domain must not be empty',
            'spec.devices[0].attributes: Invalid value: "": the name must not be empty',
        ),
    ),
    "long identifier": Case(
        {},
        (device(attributes={"a" * 33: {"int": 1}}),),
        ("spec.devices[0].attributes: Too long: may not be more than 32 bytes",),
    ),
    "counter set": Case({"sharedCounters": [COUNTERS]}),
    "counter sets, all wrong": Case(
        {"sharedCounters": [{"name": "", "counters": {}}, COUNTERS, COUNTERS]},
        want=(
            'spec.sharedCounters[2]: Duplicate value: {"name":"s","counters":{"memory":'
            '{"value":"1Gi"}}}',
            "spec.sharedCounters[0].name: Required value",
            "spec.sharedCounters[0].counters: Required value",
        ),
    ),
    "nine counter sets": Case(
        {"sharedCounters": [COUNTERS | {"name": f"s{i}"} for i in range(9)]},
        want=("spec.sharedCounters: Too many: 9: must have at most 8 items",),
    ),
    "consumed counters": Case({}, (device(consumesCounters=[COUNTER]),)),
    "three consumptions": Case(
        {},
        (device(consumesCounters=[COUNTER] * 3),),
        ("spec.devices[0].consumesCounters: Too many: 3: must have at most 2 items",),
    ),
    "33 counters": Case(
        {},
        (
            device(
                consumesCounters=[
                    {"counterSet": "s", "counters": {f"c{i}": {"value": "1"} for i in range(33)}}
                ]
            ),
        ),
        ("spec.devices[0].consumesCounters[0].counters: Too many: 33: must have at most 32 items",),
    ),
    "17 taints and 33 counters": Case(
        {},
        (
            device(
                taints=[{"key": "a", "effect": "None"}] * 17,
                consumesCounters=[
                    {"counterSet": "s", "counters": {f"c{i}": {"value": "1"} for i in range(33)}}
                ],
            ),
        ),
        (
            "spec.devices[0].taints: Too many: 17: must have at most 16 items",
            "spec.devices[0].consumesCounters[0].counters: Too many: 33: must have at most 32"
            " items",
        ),
    ),
    "three groups": Case(
        {},
        (device(consumesCounters=[COUNTER | {"compatibilityGroups": ["a", "b", "c"]}]),),
        (
            "spec.devices[0].consumesCounters[0].compatibilityGroups: Too many: 3: must have at"
            " most 2 items",
        ),
    ),
    "binding conditions": Case(
        {}, (device(bindingConditions=["a"], bindingFailureConditions=["b"]),)
    ),
    "binding conditions without failures": Case(
        {},
        (device(bindingConditions=["a"]),),
        (
            "spec.devices[0].bindingFailureConditions: Invalid value: null:"
            " bindingFailureConditions are required to use bindingConditions",
        ),
    ),
    "binding conditions that overlap": Case(
        {},
        (device(bindingConditions=["a", "a"], bindingFailureConditions=["a"]),),
        (
            'spec.devices[0].bindingConditions[1]: Duplicate value: "a"',
            'spec.devices[0].bindingFailureConditions[0]: Invalid value: "a":'
            " bindingFailureConditions must not overlap with bindingConditions",
        ),
    ),
    "five binding conditions": Case(
        {},
        (device(bindingConditions=list("abcde"), bindingFailureConditions=["x"]),),
        ("spec.devices[0].bindingConditions: Too many: 5: must have at most 4 items",),
    ),
    "skipped operations": Case({"skipNodeOperations": ["*"]}),
    "half skipped operations": Case(
        {"skipNodeOperations": ["NodePrepareResources"]},
        want=(f'spec.skipNodeOperations: Invalid value: ["NodePrepareResources"]: {PREPARE_TEXT}',),
    ),
    "unknown operation": Case(
        {"skipNodeOperations": ["Nap"]},
        want=(
            'spec.skipNodeOperations[0]: Unsupported value: "Nap": supported values: "*",'
            ' "NodePrepareResources", "NodeUnprepareResources"',
        ),
    ),
    "partition type without consumers": Case(
        {"partitionTypeAttribute": "gpu.example.com/type"},
        (device(),),
        (
            'spec.partitionTypeAttribute: Invalid value: "gpu.example.com/type": may only be set on'
            " a slice which declares devices that consume counters",
        ),
    ),
    "partition type": Case(
        {"partitionTypeAttribute": "gpu.example.com/type"},
        (
            device("a", consumesCounters=[COUNTER], attributes={"type": {"string": "x"}}),
            device("b", consumesCounters=[COUNTER], attributes={"type": {"int": 1}}),
            device("c", consumesCounters=[COUNTER]),
            device("d"),
        ),
        (
            'spec.devices[1].attributes[gpu.example.com/type]: Invalid value: {"int":1}: must be a'
            " string value because `partitionTypeAttribute` names this attribute",
            "spec.devices[2].attributes[gpu.example.com/type]: Required value: device consumes"
            " counters and `partitionTypeAttribute` names this attribute, so it must be set",
        ),
    ),
    "node resources": Case(
        {},
        (
            device(
                nodeAllocatableResources={
                    "cpu": {"mapping": {"deviceMultiplier": "2"}},
                    "example.com/x": {},
                }
            ),
        ),
        (
            "spec.devices[0].nodeAllocatableResources[example.com/x]: Invalid value:"
            ' "example.com/x": must be a node allocatable resource name',
            "spec.devices[0].nodeAllocatableResources[example.com/x]: Required value: at least one"
            " of mapping or overhead must be set",
        ),
    ),
    "mapping to a capacity that is not there": Case(
        {},
        (
            device(
                nodeAllocatableResources={"cpu": {"mapping": {"capacityKey": "cores"}}},
            ),
        ),
        (
            'spec.devices[0].nodeAllocatableResources[cpu].mapping.capacityKey: Not found: "cores"',
            "spec.devices[0].nodeAllocatableResources[cpu].mapping.capacityMultiplier: Required"
            " value: capacityMultiplier is required when capacityKey is set",
        ),
    ),
    "negative overhead": Case(
        {},
        (device(nodeAllocatableResources={"memory": {"overhead": {"perPod": "-1"}}}),),
        (
            "spec.devices[0].nodeAllocatableResources[memory].overhead.perPod: Invalid value:"
            ' "-1": must be non-negative',
        ),
    ),
    "taints of devices elsewhere": Case({"taints": [{"device": "d", "taint": taint()}]}),
    "taints beside devices": Case(
        {"taints": [{"device": "d", "taint": taint()}]},
        (device(),),
        (
            "spec.taints: Forbidden: may not be specified together with `devices` or"
            " `sharedCounters`",
        ),
    ),
    "taints beside counters": Case(
        {
            "taints": [{"device": "d", "taint": taint()}],
            "sharedCounters": [{"name": "s", "counters": {"c": {"value": "1"}}}],
        },
        want=(
            "spec.taints: Forbidden: may not be specified together with `devices` or"
            " `sharedCounters`",
        ),
    ),
    "no slice taints": Case({"taints": []}),
    "32 slice taints": Case({"taints": [{"device": f"d{i}", "taint": taint()} for i in range(32)]}),
    "33 slice taints": Case(
        {"taints": [{"device": f"d{i}", "taint": taint()} for i in range(33)]},
        want=("spec.taints: Too many: 33: must have at most 32 items",),
    ),
    "slice taint for nothing": Case(
        {"taints": [{"device": "", "taint": taint()}]},
        want=(f'spec.taints[0].device: Invalid value: "": {LABEL_TEXT}',),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_validation(case: Case) -> None:
    got = Writer(gates=ALL_GATES).create(slice_body(*case.devices, **case.spec))

    assert got.texts == list(case.want)


@pytest.mark.parametrize(
    ("extra", "limit"),
    [
        ({}, 128),
        ({"taints": [taint()]}, 64),
        ({"consumesCounters": [COUNTER]}, 64),
        ({"attributes": {"a": {"ints": [1]}}}, 64),
    ],
    ids=["plain", "a taint", "a counter", "a list"],
)
def test_number_of_devices(extra: dict[str, Any], limit: int) -> None:
    def devices(count: int) -> list[dict[str, Any]]:
        return [device(f"d{i}", **(extra if i == 5 else {})) for i in range(count)]

    writer = Writer(gates=ALL_GATES)

    assert writer.create(slice_body(*devices(limit))).texts == []
    assert writer.create(slice_body(*devices(limit + 1))).texts == [
        f"spec.devices: Too many: {limit + 1}: must have at most {limit} items"
    ]


def test_names_with_two_slashes_only_slip_through_in_kubernetes() -> None:
    body = slice_body(device(attributes={"a/b/c": {"int": 1}}))

    assert Writer().create(body).texts == [
        'spec.devices[0].attributes: Invalid value: "a/b/c": must not contain more than one slash'
    ]
    assert Writer(compat=Compat.KUBERNETES, gates=REFERENCE).create(body).texts == []


def test_long_names_are_shortened_in_paths() -> None:
    name = "d" * 70 + "/" + "n" * 40

    got = Writer().create(slice_body(device(attributes={name: {}})))

    path = got.errors[-1].field
    assert path == f"spec.devices[0].attributes[{'d' * 47}...{'d' * 5}/{'n' * 40}]"


def test_warning_about_upper_case() -> None:
    assert Writer().create(slice_body(driver="GPU.example.com")).warnings == [
        'spec.driver: driver names should be lowercase; "GPU.example.com" contains uppercase'
        " characters"
    ]


def test_paths_of_v1beta1() -> None:
    body = slice_body({"name": "d", "basic": {"taints": [{"key": "!", "effect": "x"}]}})

    kind = Writer(version="v1beta1").create(body)
    reference = Writer(version="v1beta1", compat=Compat.KUBERNETES, gates=REFERENCE).create(body)

    assert [error.field for error in kind.errors] == [
        "spec.devices[0].basic.taints[0].key",
        "spec.devices[0].basic.taints[0].effect",
    ]
    assert [error.field for error in reference.errors] == [
        "spec.devices[0].taints[0].key",
        "spec.devices[0].basic.taints[0].effect",
    ]

"""Taint rules: selectors, what a write changes, status."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from api.resource.bodies import LABEL_TEXT, SUBDOMAIN_TEXT, body, rule_body
from api.resource.writing import NOON, NOW, REFERENCE, Writer, gates
from sully.api.resource.annotations import CREATED_BY
from sully.machinery.compat import Compat

SINCE = "2020-01-01T00:00:00Z"
LATER = Writer(now=NOON + timedelta(hours=1))
LATER_TEXT = "2026-03-01T13:00:00Z"

SELECTORS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "every device": ({}, []),
    "by names": ({"driver": "d.com", "pool": "a/b", "device": "gpu-0"}, []),
    "empty names": (
        {"driver": "", "pool": "", "device": ""},
        [
            "driver: Required value",
            "pool: Required value",
            f'device: Invalid value: "": {LABEL_TEXT}',
        ],
    ),
    "bad names": (
        {"driver": "a_b", "pool": "C", "device": "D", "deviceClassName": "E"},
        [
            f'driver: Invalid value: "a_b": {SUBDOMAIN_TEXT}',
            f'pool: Invalid value: "C": {SUBDOMAIN_TEXT}',
            f'device: Invalid value: "D": {LABEL_TEXT}',
            f'deviceClassName: Invalid value: "E": {SUBDOMAIN_TEXT}',
        ],
    ),
    "class and expression": (
        {"deviceClassName": "c", "selectors": [{"cel": {"expression": "true"}}]},
        [],
    ),
    "bad expression": (
        {"selectors": [{"cel": {"expression": '"x"'}}, {}]},
        [
            'selectors[0].cel.expression: Invalid value: "\\"x\\"": must evaluate to bool or the'
            " unknown type, not string",
            "selectors[1].cel: Required value",
        ],
    ),
}


@pytest.mark.parametrize(("part", "want"), SELECTORS.values(), ids=SELECTORS.keys())
def test_selector(part: dict[str, Any], want: list[str]) -> None:
    got = Writer().create(rule_body(part))

    assert got.texts == [f"spec.deviceSelector.{text}" for text in want]


def test_absent_and_empty_selectors_stay_apart() -> None:
    assert "deviceSelector" not in Writer().create(rule_body()).spec
    assert Writer().create(rule_body({})).spec["deviceSelector"] == {}


def test_an_expression_that_is_stored_is_not_compiled_again() -> None:
    broken = {"selectors": [{"cel": {"expression": "nope("}}]}
    old = Writer().read(rule_body(broken))

    assert Writer().update(rule_body(broken, value="v"), old).texts == []


CRITERIA = {"deviceClassName": "c", "selectors": [{"cel": {"expression": "true"}}]}
REFUSED = [
    f"spec.deviceSelector.{name}: Forbidden: needs the feature gate SullyRuleSelectors; without it"
    " the rule would select more devices"
    for name in CRITERIA
]


def test_criteria_are_refused_not_dropped_when_switched_off() -> None:
    off = Writer(gates=gates(SullyRuleSelectors=False))
    old = Writer().read(rule_body(CRITERIA))

    assert off.create(rule_body(CRITERIA)).texts == REFUSED
    assert off.update(rule_body(CRITERIA), Writer().read(rule_body({}))).texts == REFUSED
    updated = off.update(rule_body(CRITERIA, value="v"), old)
    assert updated.spec["deviceSelector"] == CRITERIA


def test_create_wipes_what_is_the_servers() -> None:
    sent = rule_body(timeAdded=SINCE) | {"status": {"conditions": [condition()]}}
    sent["metadata"] |= {"generation": 42, "annotations": {CREATED_BY: "mallory", "a": "b"}}

    got = Writer(user="alice").create(sent).obj

    assert got["status"] == {}
    assert got["metadata"]["generation"] == 1
    assert got["metadata"]["annotations"] == {CREATED_BY: "alice", "a": "b"}
    assert got["spec"]["taint"]["timeAdded"] == SINCE


def test_kubernetes_notes_no_author() -> None:
    got = Writer(compat=Compat.KUBERNETES, gates=REFERENCE).create(rule_body()).obj

    assert "annotations" not in got["metadata"]


def test_the_author_stays() -> None:
    old = Writer(user="alice").create(rule_body()).obj
    sent = rule_body(value="v")
    sent["metadata"]["annotations"] = {CREATED_BY: "bob"}

    got = Writer(user="bob").update(sent, old).obj

    assert got["metadata"]["annotations"] == {CREATED_BY: "alice"}


@dataclass(frozen=True)
class Update:
    change: dict[str, Any] = field(default_factory=dict)
    selector: dict[str, Any] | None = None
    time: str = SINCE
    generation: int = 2


UPDATES = {
    "nothing": Update(generation=1),
    "effect": Update({"effect": "NoExecute"}, time=LATER_TEXT),
    "effect and time": Update(
        {"effect": "NoExecute", "timeAdded": "2030-01-01T00:00:00Z"}, time="2030-01-01T00:00:00Z"
    ),
    "effect without a time": Update({"effect": "NoExecute", "timeAdded": None}, time=LATER_TEXT),
    "key": Update({"key": "other"}),
    "value": Update({"value": "v"}),
    "time": Update({"timeAdded": "2010-01-01T00:00:00Z"}, time="2010-01-01T00:00:00Z"),
    "no time": Update({"timeAdded": None}, time=LATER_TEXT),
    "selector": Update(selector={}),
}


@pytest.mark.parametrize("case", UPDATES.values(), ids=UPDATES.keys())
def test_update(case: Update) -> None:
    old = Writer().create(rule_body(timeAdded=SINCE)).obj
    old["status"] = {"conditions": [condition()]}

    got = LATER.update(rule_body(case.selector, **({"timeAdded": SINCE} | case.change)), old)

    assert got.spec["taint"]["timeAdded"] == case.time
    assert got.obj["metadata"]["generation"] == case.generation
    assert got.obj["status"] == old["status"]


def condition(**more: Any) -> dict[str, Any]:
    usual = {"type": "One", "status": "True", "reason": "R", "message": "m"}
    return {**usual, "lastTransitionTime": SINCE, **more}


REASON_TEXT = (
    "a condition reason must start with alphabetic character, optionally followed by a string of"
    " alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'"
    " (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB',"
    " regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
)
CONDITIONS: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "none": ([], []),
    "ours and theirs": ([condition(), condition(type="sully.dev/Preview")], []),
    "empty": (
        [{}],
        [
            "[0].type: Required value: is required",
            "[0].status: Required value",
            "[0].lastTransitionTime: Required value",
            "[0].reason: Required value",
        ],
    ),
    "wrong": (
        [condition(status="Maybe", reason="1", observedGeneration=-1)],
        [
            '[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"',
            "[0].observedGeneration: Invalid value: -1: must be greater than or equal to zero",
            f'[0].reason: Invalid value: "1": {REASON_TEXT}',
        ],
    ),
    "long": (
        [condition(reason="R" * 1025, message="m" * 32769)],
        [
            "[0].reason: Too long: may not be more than 1024 bytes",
            "[0].message: Too long: may not be more than 32768 bytes",
        ],
    ),
    "same type twice": ([condition(), condition()], ['[1]: Duplicate value: "One"']),
    "nine": (
        [condition(type=f"T{i}") for i in range(9)],
        [": Too many: 9: must have at most 8 items"],
    ),
}


@pytest.mark.parametrize("kind", ["DeviceTaintRule", "ResourceSlicePatch"])
@pytest.mark.parametrize(("part", "want"), CONDITIONS.values(), ids=CONDITIONS.keys())
def test_conditions(kind: str, part: list[dict[str, Any]], want: list[str]) -> None:
    rule = kind == "DeviceTaintRule"
    sent = rule_body() if rule else body(kind, {"devices": {}})
    writer = Writer(version="v1" if rule else "v1alpha3")
    old = writer.create(sent).obj

    got = writer.update(sent | {"status": {"conditions": part}}, old, status=True)

    assert got.texts == [f"status.conditions{text}" for text in want]


def test_a_status_write_changes_nothing_else() -> None:
    sent = rule_body(timeAdded=SINCE)
    sent["metadata"] |= {"labels": {"a": "b"}, "finalizers": ["x/y"]}
    old = Writer().create(sent).obj
    other = rule_body({}, effect="NoExecute") | {"status": {"conditions": [condition()]}}
    other["metadata"] |= {"labels": {"c": "d"}, "annotations": {"e": "f"}, "generation": 9}

    got = LATER.update(other, old, status=True).obj

    assert got == old | {"status": {"conditions": [condition()]}}


def test_warning_about_a_reserved_key() -> None:
    got = Writer().create(rule_body(key="kubernetes.io/broken"))

    assert got.warnings == [
        "spec.taint.key: keys under kubernetes.io/ are reserved for Kubernetes;"
        ' "kubernetes.io/broken" may come to mean something else'
    ]


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1alpha3"])
def test_every_version_has_all_fields(version: str) -> None:
    details = {"description": "hot", "data": {"celsius": 99}, "evictionsPerSecond": 5}

    got = Writer(version=version).create(rule_body(CRITERIA, timeAdded=NOW, **details)).spec

    assert got["deviceSelector"] == CRITERIA
    assert got["taint"].items() >= details.items()

"""Patches of slices."""

from datetime import timedelta
from typing import Any

import pytest

from api.resource.bodies import IDENTIFIER_TEXT, LABEL_TEXT, patch_body, taint
from api.resource.writing import NOON, Writer, gates
from sully.api.resource.annotations import CREATED_AT, CREATED_BY

SINCE = "2020-01-01T00:00:00Z"
MEMBERS = "`int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`"
QUALIFIED_TEXT = "a fully qualified name must be a domain and a name separated by a slash"
ALPHA = Writer(version="v1alpha3")

CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing": ({}, []),
    "everything": (
        {
            "filter": {
                "deviceClassName": "c",
                "driver": "d.com",
                "pool": "p",
                "device": "d",
                "selectors": [{"cel": {"expression": "true"}}],
            },
            "priority": -5,
            "attributes": {"d.com/a": {"int": 1}, "d.com/b": {"null": {}}},
            "capacity": {"d.com/memory": {"value": "0"}},
            "taints": [taint()],
        },
        [],
    ),
    "bad filter": (
        {"filter": {"driver": "", "device": "D"}},
        ["filter.driver: Required value", f'filter.device: Invalid value: "D": {LABEL_TEXT}'],
    ),
    "names without a domain": (
        {"attributes": {"a": {"int": 1}}, "capacity": {"c": {"value": "1"}}},
        [
            f'attributes: Invalid value: "a": {QUALIFIED_TEXT}',
            f'capacity: Invalid value: "c": {QUALIFIED_TEXT}',
        ],
    ),
    "bad identifier": (
        {"attributes": {"d.com/a-b": {"int": 1}}},
        [f'attributes: Invalid value: "a-b": {IDENTIFIER_TEXT}'],
    ),
    "no value": (
        {"attributes": {"d.com/a": {}}},
        [f'attributes[d.com/a]: Invalid value: "": must specify one of: {MEMBERS}'],
    ),
    "removal and a value": (
        {"attributes": {"d.com/a": {"int": 1, "null": {}}}},
        [
            'attributes[d.com/a]: Invalid value: "{int, null}": must specify exactly one of:'
            f" {MEMBERS}, `null`"
        ],
    ),
    "33 values": (
        {
            "attributes": {f"d.com/a{i}": {"int": 1} for i in range(20)},
            "capacity": {f"d.com/c{i}": {"value": "1"} for i in range(13)},
        },
        [": Invalid value: 33: the total number of attributes and capacities must not exceed 32"],
    ),
    "17 taints": (
        {"taints": [taint(f"k{i}") for i in range(17)]},
        ["taints: Too many: 17: must have at most 16 items"],
    ),
    "bad taint": ({"taints": [{"key": "a"}]}, ["taints[0].effect: Required value"]),
}


@pytest.mark.parametrize(("fields", "want"), CASES.values(), ids=CASES.keys())
def test_validation(fields: dict[str, Any], want: list[str]) -> None:
    got = ALPHA.create(patch_body(**fields))

    at = "spec.devices"
    assert got.texts == [f"{at}{text}" if text[0] == ":" else f"{at}.{text}" for text in want]


def test_write() -> None:
    sent = patch_body(taints=[taint(timeAdded=SINCE), taint("other", timeAdded=SINCE)])
    old = ALPHA.create(sent).obj
    changed = patch_body(
        taints=[taint(effect="NoExecute", timeAdded=SINCE), taint("other", timeAdded=SINCE)]
    )

    got = Writer(version="v1alpha3", now=NOON + timedelta(hours=1)).update(changed, old)

    assert old["metadata"]["generation"] == 1
    assert old["metadata"]["annotations"] == {
        CREATED_AT: "2026-03-01T12:00:00.250000Z",
        CREATED_BY: "alice",
    }
    assert old["status"] == {}
    assert got.obj["metadata"]["annotations"] == old["metadata"]["annotations"]
    assert got.obj["metadata"]["generation"] == 2
    times = [one["timeAdded"] for one in got.spec["devices"]["taints"]]
    assert times == ["2026-03-01T13:00:00Z", SINCE]


def test_taints_are_stamped() -> None:
    got = ALPHA.create(patch_body(taints=[taint()])).spec

    assert got["devices"]["taints"][0]["timeAdded"] == "2026-03-01T12:00:00Z"


def test_taints_work_while_attributes_are_switched_off() -> None:
    sent = patch_body(attributes={"d.com/a": {"int": 1}}, taints=[taint(timeAdded=SINCE)])
    off = Writer(version="v1alpha3", gates=gates(DRAAdminControlledDeviceAttributes=False))

    assert off.create(sent).spec == {"devices": {"taints": [taint(timeAdded=SINCE)]}}
    # Switched off and on again nothing is lost.
    stored = ALPHA.create(sent).obj
    assert off.update(sent, stored).spec == sent["spec"]

"""Records of evictions and of rules: what may stand in them, and that it stays."""

from typing import Any

import pytest

from api.core.writing import RESOURCES, cells, create, update
from sully.api import build_scheme
from sully.api.sully.types import GROUP
from sully.machinery.compat import Compat

LABEL_KEY_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end"
    " with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for"
    " validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def cause(**changes: Any) -> dict[str, Any]:
    return {
        "kind": "DeviceTaintRule",
        "name": "hot",
        "uid": "u-1",
        "key": "example.com/hot",
        "value": "yes",
        "effect": "NoExecute",
        "device": "gpu.example.com/racks/1/gpu-0",
    } | changes


def eviction(**changes: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "pod": {"namespace": "ns", "name": "p", "uid": "p-uid", "node": "node-1"},
        "claims": ["c"],
        "devices": ["gpu.example.com/racks/1/gpu-0"],
        "causes": [cause()],
        "evictedTime": "2026-03-01T11:59:00.000001Z",
    }
    return {"spec": {name: value for name, value in (spec | changes).items() if value is not None}}


EVICTIONS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "complete": ({}, []),
    "with an owner": (
        {"pod": eviction()["spec"]["pod"] | {"owner": {"kind": "Job", "name": "j"}}},
        [],
    ),
    "nothing but what must be": ({"claims": None, "devices": None}, []),
    "no time": ({"evictedTime": None}, ["spec.evictedTime: Required value"]),
    "no cause": (
        {"causes": None},
        ["spec.causes: Required value: a record needs at least one cause"],
    ),
    "another namespace": (
        {"pod": {"namespace": "other", "name": "p", "uid": "u"}},
        [
            'spec.pod.namespace: Invalid value: "other": must be the namespace of the record, ns',
        ],
    ),
    "no pod": (
        {"pod": None},
        [
            'spec.pod.namespace: Invalid value: "": must be the namespace of the record, ns',
            "spec.pod.name: Required value",
            "spec.pod.uid: Required value",
        ],
    ),
    "half an owner": (
        {"pod": eviction()["spec"]["pod"] | {"owner": {"kind": "Job"}}},
        ["spec.pod.owner.name: Required value"],
    ),
    "no device": (
        {"devices": ["gpu-0", "a/b", "a//b", "a/b/c"]},
        [
            f'spec.devices[{i}]: Invalid value: "{text}": must be written driver/pool/device'
            for i, text in enumerate(("gpu-0", "a/b", "a//b"))
        ],
    ),
    "an unknown cause": (
        {"causes": [cause(kind="Weather")]},
        [
            'spec.causes[0].kind: Unsupported value: "Weather": supported values:'
            ' "DeviceTaintRule", "ResourceSlice", "ResourceSlicePatch"'
        ],
    ),
    "a bad taint": (
        {"causes": [cause(key="-", effect="", device="x", description="d" * 1025)]},
        [
            f'spec.causes[0].key: Invalid value: "-": {LABEL_KEY_TEXT}',
            "spec.causes[0].effect: Required value",
            "spec.causes[0].description: Too long: may not be more than 1024 bytes",
            'spec.causes[0].device: Invalid value: "x": must be written driver/pool/device',
        ],
    ),
    "too many claims": (
        {"claims": [f"c-{i}" for i in range(257)]},
        ["spec.claims: Too many: 257: must have at most 256 items"],
    ),
}


@pytest.mark.parametrize(("changes", "want"), EVICTIONS.values(), ids=EVICTIONS.keys())
def test_evictions(changes: dict[str, Any], want: list[str]) -> None:
    assert create("evictionrecords", eviction(**changes), group=GROUP).texts() == want


def rule_record(**changes: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "rule": {"name": "hot", "uid": "u-1"},
        "taint": {"key": "example.com/hot", "effect": "NoExecute"},
        "deviceSelector": {},
        "createdBy": "alice",
        "addedTime": "2026-03-01T11:00:00.000000Z",
    }
    return {"spec": spec | changes}


TAINTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "complete": ({}, []),
    "no rule": ({"rule": {}}, ["spec.rule.name: Required value", "spec.rule.uid: Required value"]),
    "no taint": ({"taint": {}}, ["spec.taint.key: Required value"]),
    "a novel": (
        {"description": "d" * 1025},
        ["spec.description: Too long: may not be more than 1024 bytes"],
    ),
}


@pytest.mark.parametrize(("changes", "want"), TAINTS.values(), ids=TAINTS.keys())
def test_rules(changes: dict[str, Any], want: list[str]) -> None:
    assert create("taintrecords", rule_record(**changes), group=GROUP).texts() == want


STATUSES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing": ({}, []),
    "deleted": ({"evicted": 3, "deletedTime": "2026-03-01T11:00:00.000000Z"}, []),
    "fewer than none": (
        {"evicted": -1},
        ["status.evicted: Invalid value: -1: must be greater than or equal to 0"],
    ),
    "an empty change": (
        {"changes": [{}]},
        ["status.changes[0].time: Required value", "status.changes[0].what: Required value"],
    ),
    "too many changes": (
        {"changes": [{"time": "2026-03-01T11:00:00.000000Z", "what": "x"}] * 51},
        ["status.changes: Too many: 51: must have at most 50 items"],
    ),
}


@pytest.mark.parametrize(("status", "want"), STATUSES.values(), ids=STATUSES.keys())
def test_status_of_a_rule(status: dict[str, Any], want: list[str]) -> None:
    old = create("taintrecords", rule_record(), group=GROUP).obj
    sent = rule_record(createdBy="mallory") | {"metadata": {"name": "x"}, "status": status}

    got = update("taintrecords", sent, old, group=GROUP, sub="status")

    assert got.texts() == want
    assert got.obj["spec"] == old["spec"]


BODIES = {"evictionrecords": eviction(), "taintrecords": rule_record()}


@pytest.mark.parametrize("plural", BODIES)
def test_nobody_rewrites_history(plural: str) -> None:
    old = create(plural, BODIES[plural], group=GROUP).obj
    relabelled = old | {"metadata": old["metadata"] | {"labels": {"seen": "yes"}}}
    rewritten = old | {"spec": old["spec"] | {"claims": ["x"], "createdBy": "mallory"}}

    accepted = update(plural, relabelled, old, group=GROUP)
    refused = update(plural, rewritten, old, group=GROUP)

    assert accepted.texts() == []
    assert [text.partition(":")[0] for text in refused.texts()] == ["spec"]
    assert refused.texts()[0].endswith("field is immutable")


def test_a_new_record_of_a_rule_has_no_past() -> None:
    got = create("taintrecords", rule_record() | {"status": {"evicted": 9}}, group=GROUP)

    assert got.obj["status"] == {}
    assert got.obj["metadata"]["generation"] == 1


def test_row_of_an_eviction() -> None:
    record = create("evictionrecords", eviction(causes=[cause(), cause(name="b")]), group=GROUP)

    row = cells("evictionrecords", record.obj, group=GROUP)

    assert list(row) == ["Name", "Pod", "Node", "Taint", "Effect", "Cause", "Evicted", "Age"]
    assert row["Pod"] == "p"
    assert row["Node"] == "node-1"
    assert (row["Taint"], row["Effect"]) == ("example.com/hot", "NoExecute")
    assert row["Cause"] == "hot"
    assert row["Evicted"] == "59s"


def test_row_of_a_rule() -> None:
    record = create("taintrecords", rule_record(), group=GROUP).obj
    standing = cells("taintrecords", record, group=GROUP)
    record["status"] = {
        "taint": {"key": "example.com/hot", "effect": "NoSchedule"},
        "evicted": 4,
        "deletedTime": "2026-03-01T11:30:00.000000Z",
    }
    deleted = cells("taintrecords", record, group=GROUP)

    assert [standing[name] for name in ("Rule", "Taint", "By", "Evicted", "Deleted")] == [
        "hot",
        None,
        "alice",
        None,
        None,
    ]
    assert [deleted[name] for name in ("Taint", "Effect", "Evicted", "Deleted")] == [
        "example.com/hot",
        "NoSchedule",
        4,
        "30m",
    ]


def test_names() -> None:
    evictions, taints = (RESOURCES[GROUP, plural] for plural in BODIES)

    assert (evictions.namespaced, evictions.short_names) == (True, ("evr",))
    assert (taints.namespaced, taints.short_names) == (False, ("tr",))


def test_kubernetes_has_no_such_kinds() -> None:
    assert build_scheme().has_group(GROUP)
    assert not build_scheme(Compat.KUBERNETES).has_group(GROUP)

"""Events in their older view; the newer one is under tests/api/events."""

from typing import Any

import pytest

from api.core.writing import RESOURCES, cells, create

Obj = dict[str, Any]
ABOUT = {"kind": "Pod", "name": "p", "namespace": "ns"}
MISMATCH = "does not match event.namespace"


def _event(**fields: Any) -> Obj:
    return {"involvedObject": ABOUT, "reason": "R", "type": "Normal", **fields}


CASES: dict[str, tuple[Obj, list[str]]] = {
    "as controllers write it": (_event(), []),
    "about another namespace": (
        _event(involvedObject={**ABOUT, "namespace": "other"}),
        [f'involvedObject.namespace: Invalid value: "other": {MISMATCH}'],
    ),
    "about a cluster's object, elsewhere than in default": (
        _event(involvedObject={"kind": "Node", "name": "n"}),
        [f'involvedObject.namespace: Invalid value: "": {MISMATCH}'],
    ),
    "about a cluster's object, in default": (
        _event(
            involvedObject={"kind": "Node", "name": "n"},
            metadata={"name": "e", "namespace": "default"},
        ),
        [],
    ),
    "newer one without reporter": (
        _event(eventTime="2026-03-01T12:00:00.000000Z", reportingInstance="i", action="A"),
        [
            "reportingComponent: Required value",
            'reportingComponent: Invalid value: "": name part must be non-empty',
            'reportingComponent: Invalid value: "": name part must consist of alphanumeric'
            " characters, '-', '_' or '.', and must start and end with an alphanumeric character"
            " (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
            " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ],
    ),
}


@pytest.mark.parametrize(("body", "want"), CASES.values(), ids=CASES.keys())
def test_create(body: Obj, want: list[str]) -> None:
    assert create("events", body).texts() == want


ROWS: dict[str, tuple[Obj, Obj]] = {
    "older": (
        _event(
            firstTimestamp="2026-03-01T11:58:00Z",
            lastTimestamp="2026-03-01T11:59:30Z",
            count=3,
            message=" hello\n",
            source={"component": "kubelet", "host": "n1"},
        ),
        {
            "Last Seen": "30s",
            "First Seen": "2m",
            "Count": 3,
            "Message": "hello",
            "Object": "pod/p",
            "Source": "kubelet, n1",
        },
    ),
    "newer": (
        _event(
            eventTime="2026-03-01T11:59:50.000000Z",
            reportingComponent="example.com/c",
            reportingInstance="i",
        ),
        {"Last Seen": "10s", "First Seen": "10s", "Count": 1, "Source": "example.com/c, i"},
    ),
    "series": (
        _event(
            eventTime="2026-03-01T11:59:00.000000Z",
            series={"count": 5, "lastObservedTime": "2026-03-01T11:59:58.000000Z"},
        ),
        {"Last Seen": "2s", "Count": 5},
    ),
}


@pytest.mark.parametrize(("body", "want"), ROWS.values(), ids=ROWS.keys())
def test_row(body: Obj, want: Obj) -> None:
    row = cells("events", create("events", body).obj)

    assert {name: row[name] for name in want} == want


def test_events_are_selected_by_what_they_are_about() -> None:
    obj = create("events", _event(reportingComponent="c")).obj
    read = RESOURCES["", "events"].selectable

    assert read["involvedObject.name"](obj) == "p"
    assert read["source"](obj) == "c"
    assert read["involvedObject.uid"](obj) == ""

"""The newer view of events: names, strictness, and that nothing is lost between the views."""

import copy
from typing import Any

import pytest

from api.core.writing import RESOURCES, create, served, stored_form, update

Obj = dict[str, Any]
GROUP = "events.k8s.io"
VIEW, CORE = RESOURCES[GROUP, "events"], RESOURCES["", "events"]
FULL: Obj = {
    "metadata": {"name": "e", "namespace": "ns"},
    "eventTime": "2026-03-01T12:00:00.000001Z",
    "reportingController": "example.com/c",
    "reportingInstance": "i",
    "action": "A",
    "reason": "R",
    "regarding": {"kind": "Pod", "name": "p", "namespace": "ns"},
    "related": {"kind": "Node", "name": "n"},
    "note": "text",
    "type": "Warning",
    "series": {"count": 2, "lastObservedTime": "2026-03-01T12:00:01.000000Z"},
    "deprecatedSource": {},
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
}


def test_both_views_share_their_objects() -> None:
    assert VIEW.storage_key == CORE.storage_key == "events"


def test_there_and_back() -> None:
    assert served(VIEW, stored_form(VIEW, FULL)) == FULL


def test_stored_form_is_normal_in_the_core_group() -> None:
    stored = stored_form(VIEW, {"metadata": {}, "series": {}})

    assert stored == stored_form(CORE, stored)
    assert served(VIEW, stored) == {
        "metadata": {},
        "regarding": {},
        "eventTime": None,
        "series": {"count": 0, "lastObservedTime": None},
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    }


CREATED: dict[str, tuple[Obj, list[str]]] = {
    "complete": ({}, []),
    "counted in the older way": (
        {"deprecatedCount": 3, "deprecatedSource": {"component": "x"}},
        [
            'count: Invalid value: "": needs to be unset',
            'source: Invalid value: "": needs to be unset',
        ],
    ),
    "series of one": (
        {"series": {"count": 1}},
        [
            'series.count: Invalid value: "": should be at least 2',
            "series.lastObservedTime: Required value",
        ],
    ),
}


@pytest.mark.parametrize(("change", "want"), CREATED.values(), ids=CREATED.keys())
def test_create(change: Obj, want: list[str]) -> None:
    assert create("events", {**FULL, **change}, group=GROUP).texts() == want


UPDATED: dict[str, tuple[Obj, list[str]]] = {
    "series": ({"series": {"count": 9, "lastObservedTime": "2026-03-01T12:00:09.000000Z"}}, []),
    "text": ({"note": "other"}, ['message: Invalid value: "other": field is immutable']),
    "reporter": (
        {"reportingController": "d"},
        ['reportingController: Invalid value: "d": field is immutable'],
    ),
}


@pytest.mark.parametrize(("change", "want"), UPDATED.values(), ids=UPDATED.keys())
def test_only_the_series_changes(change: Obj, want: list[str]) -> None:
    old = create("events", FULL, group=GROUP).obj
    new = copy.deepcopy(FULL) | change

    assert update("events", new, old, group=GROUP).texts() == want


def test_selected_under_its_own_names() -> None:
    obj = stored_form(VIEW, FULL)

    assert VIEW.selectable["regarding.name"](obj) == "p"
    assert VIEW.selectable["reportingController"](obj) == "example.com/c"
    assert "involvedObject.name" not in VIEW.selectable

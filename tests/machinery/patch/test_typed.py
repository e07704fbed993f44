from dataclasses import dataclass, field
from typing import Any

import pytest

from machinery.patch.widgets import WIDGET
from sully.machinery.patch.ownership.managed import empty_of
from sully.machinery.patch.ownership.typed import (
    compare,
    compare_new,
    to_field_set,
    with_named_fields,
)
from sully.machinery.patch.shapes import ElementError, shape_of

Tree = dict[str, Any]


@dataclass(frozen=True)
class Case:
    old: dict[str, Any]
    new: dict[str, Any]
    added: Tree = field(default_factory=dict)
    modified: Tree = field(default_factory=dict)
    removed: Tree = field(default_factory=dict)


PORT_80 = 'k:{"port":80,"protocol":"TCP"}'

CASES = {
    "nothing": Case({"replicas": 1}, {"replicas": 1}),
    "a scalar is new": Case({}, {"replicas": 0}, added={"f:replicas": {}}),
    "a scalar changes": Case({"replicas": 1}, {"replicas": 2}, modified={"f:replicas": {}}),
    "a scalar goes": Case({"replicas": 1}, {}, removed={"f:replicas": {}}),
    "a struct is new": Case(
        {},
        {"selector": {"driver": "x"}},
        added={"f:selector": {".": {}, "f:driver": {}}},
    ),
    "a struct that was there gets a field": Case(
        {"mode": {}}, {"mode": {"speed": 1}}, added={"f:mode": {"f:speed": {}}}
    ),
    "an empty struct is one value": Case({}, {"selector": {}}, added={"f:selector": {}}),
    "null becomes empty": Case({"selector": None}, {"selector": {}}, modified={"f:selector": {}}),
    "an atomic struct changes as a whole": Case(
        {"point": {"speed": 1}}, {"point": {"speed": 2}}, modified={"f:point": {}}
    ),
    "an atomic list changes as a whole": Case(
        {"args": ["a"]}, {"args": ["a", "b"]}, modified={"f:args": {}}
    ),
    "a map entry": Case(
        {"limits": {"cpu": "1"}},
        {"limits": {"cpu": "2", "memory": "1"}},
        added={"f:limits": {"f:memory": {}}},
        modified={"f:limits": {"f:cpu": {}}},
    ),
    "a list of items is new": Case(
        {},
        {"ports": [{"port": 80}]},
        added={"f:ports": {".": {}, PORT_80: {".": {}, "f:port": {}}}},
    ),
    "the default names the same item": Case(
        {"ports": [{"port": 80}]},
        {"ports": [{"port": 80, "protocol": "TCP"}]},
        added={"f:ports": {PORT_80: {"f:protocol": {}}}},
    ),
    "the order of items does not matter": Case(
        {"ports": [{"port": 80}, {"port": 81}]}, {"ports": [{"port": 81}, {"port": 80}]}
    ),
    "an item goes": Case(
        {"containers": [{"name": "a"}, {"name": "b"}]},
        {"containers": [{"name": "a"}]},
        removed={"f:containers": {'k:{"name":"b"}': {".": {}, "f:name": {}}}},
    ),
    "an emptied list": Case({"tags": ["a"]}, {"tags": []}, removed={"f:tags": {'v:"a"': {}}}),
    "a set": Case(
        {"tags": ["a", "b"]},
        {"tags": ["b", "c"]},
        added={"f:tags": {'v:"c"': {}}},
        removed={"f:tags": {'v:"a"': {}}},
    ),
    "an item twice is one mark": Case(
        {"containers": [{"name": "a"}]},
        {"containers": [{"name": "a"}, {"name": "a", "image": "x"}]},
        added={"f:containers": {'k:{"name":"a"}': {}}},
        removed={"f:containers": {'k:{"name":"a"}': {".": {}, "f:name": {}}}},
    ),
    "items twice on both sides": Case(
        {"tags": ["a", "a"]}, {"tags": ["a", "a", "a"]}, modified={"f:tags": {'v:"a"': {}}}
    ),
    "an item is no longer there twice": Case(
        {"tags": ["a", "a"]},
        {"tags": ["a"]},
        added={"f:tags": {'v:"a"': {}}},
        removed={"f:tags": {'v:"a"': {}}},
    ),
    "raw JSON shows true from one": Case(
        {"raw": {"a": 1}}, {"raw": {"a": True}}, modified={"f:raw": {}}
    ),
    "markup in a key": Case(
        {}, {"tags": ["<&>"]}, added={"f:tags": {".": {}, 'v:"\\u003c\\u0026\\u003e"': {}}}
    ),
}


def under_spec(tree: Tree) -> Tree:
    return {"f:spec": tree} if tree else {}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_compare_new(case: Case) -> None:
    """Objects of one template: their specs are equal, the rest is not."""
    empty = empty_of(WIDGET)
    for name in ("a", "b", "a"):
        new = {"metadata": {"labels": {name: name}}, "spec": case.new}

        assert compare_new(empty, new, WIDGET) == compare(empty, new, WIDGET)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_compare(case: Case) -> None:
    got = compare({"spec": case.old}, {"spec": case.new}, WIDGET)

    assert got.added == under_spec(case.added)
    assert got.modified == under_spec(case.modified)
    assert got.removed == under_spec(case.removed)
    assert got.is_same == (not (case.added or case.modified or case.removed))


APPLIED = {
    "leaves only": (
        {"replicas": 1, "mode": {"speed": 1}},
        {"f:replicas": {}, "f:mode": {"f:speed": {}}},
    ),
    "an empty struct counts": ({"selector": {}}, {"f:selector": {}}),
    "a null counts": ({"replicas": None}, {"f:replicas": {}}),
    "an empty list does not": ({"containers": []}, {}),
    "an empty atomic list does": ({"args": []}, {"f:args": {}}),
    "items count themselves": (
        {"containers": [{"name": "a", "image": "x"}]},
        {"f:containers": {'k:{"name":"a"}': {".": {}, "f:image": {}, "f:name": {}}}},
    ),
    "atomic items count alone": ({"tags": ["a"]}, {"f:tags": {'v:"a"': {}}}),
    "map entries": ({"limits": {"cpu": 1}}, {"f:limits": {"f:cpu": {}}}),
    "an empty map counts": ({"limits": {}}, {"f:limits": {}}),
}


@pytest.mark.parametrize(("spec", "want"), APPLIED.values(), ids=APPLIED.keys())
def test_to_field_set(spec: dict[str, Any], want: Tree) -> None:
    assert to_field_set({"spec": spec}, WIDGET).tree == under_spec(want)


UNNAMEABLE = {
    "a null item": ({"containers": [None]}, "may not have a null element"),
    "an item that is not a map": ({"containers": [1]}, "may not have non-map elements"),
    "a map in a set": ({"tags": [{}]}, "has an element that's a map type"),
    "a list in a set": ({"tags": [[]]}, "associative list with lists as elements"),
    "a null in a set": ({"tags": [None]}, "an element that's an explicit null"),
}


@pytest.mark.parametrize(("spec", "message"), UNNAMEABLE.values(), ids=UNNAMEABLE.keys())
def test_unnameable(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ElementError, match=message):
        compare({}, {"spec": spec}, WIDGET)


def test_with_named_fields() -> None:
    tree = {"f:spec": {"f:limits": {"f:cpu": {}}, "f:ports": {PORT_80: {"f:name": {}}}}}

    assert with_named_fields(tree, shape_of(WIDGET)) == {
        "f:spec": {
            ".": {},
            "f:limits": {".": {}, "f:cpu": {}},
            "f:ports": {".": {}, PORT_80: {"f:name": {}}},
        }
    }

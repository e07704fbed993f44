from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sully.machinery.patch.ownership.fieldset import FieldSet, FieldSetError, in_order, path_text

ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
PATHS = st.lists(st.lists(ELEMENTS, min_size=1, max_size=3).map(tuple), max_size=6)


def set_of(paths: list[tuple[str, ...]]) -> FieldSet:
    set_ = FieldSet()
    for path in paths:
        tree: dict[str, Any] = {}
        for element in reversed(path):
            tree = {element: tree}
        set_ = set_.union(FieldSet(tree))
    return set_


SETS = PATHS.map(set_of)


def members(fields: FieldSet) -> set[tuple[str, ...]]:
    return set(fields.paths())


@given(PATHS)
def test_holds_what_was_put_in(paths: list[tuple[str, ...]]) -> None:
    assert members(set_of(paths)) == set(paths)


@given(SETS, SETS)
def test_union(left: FieldSet, right: FieldSet) -> None:
    assert members(left.union(right)) == members(left) | members(right)
    assert left.union(right) == right.union(left)


@given(SETS, SETS)
def test_difference(left: FieldSet, right: FieldSet) -> None:
    assert members(left.difference(right)) == members(left) - members(right)


@given(SETS, SETS)
def test_intersection(left: FieldSet, right: FieldSet) -> None:
    assert members(left.intersection(right)) == members(left) & members(right)


@given(SETS, SETS)
def test_recursive_difference(left: FieldSet, right: FieldSet) -> None:
    gone = members(right)
    want = {
        path
        for path in members(left)
        if not any(path[:length] in gone for length in range(1, len(path) + 1))
    }

    assert members(left.recursive_difference(right)) == want


@given(SETS, SETS)
def test_results_are_canonical(left: FieldSet, right: FieldSet) -> None:
    for result in (
        left.union(right),
        left.difference(right),
        left.intersection(right),
        left.recursive_difference(right),
    ):
        assert result == set_of(list(result.paths()))
        assert FieldSet.parse(in_order(result.tree)) == result


@given(SETS, st.lists(ELEMENTS, min_size=1, max_size=3).map(tuple))
def test_contains(fields: FieldSet, path: tuple[str, ...]) -> None:
    assert (path in fields) == (path in members(fields))


@given(SETS)
def test_empty(fields: FieldSet) -> None:
    assert bool(fields) == bool(members(fields))
    assert not fields.difference(fields)


PARSED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "keys are sorted": ({'k:{"b":1,"a":"x"}': {}}, {'k:{"a":"x","b":1}': {}}),
    "spaces go": ({'k:{"a": "x"}': {}}, {'k:{"a":"x"}': {}}),
    "a bare mark is an empty node": ({"f:a": {".": {}}}, {"f:a": {}}),
    "the whole object is nobody's": ({".": {}, "f:a": {}}, {"f:a": {}}),
    "unknown kinds of elements go": ({"x:a": {}, "f:a": {"y:b": {}}, "f:b": {}}, {"f:b": {}}),
    "nothing": ({}, {}),
}


@pytest.mark.parametrize(("fields", "want"), PARSED.values(), ids=PARSED.keys())
def test_parse(fields: Any, want: Any) -> None:
    assert in_order(FieldSet.parse(fields).tree) == want


def nested(levels: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for _ in range(levels):
        fields = {"f:a": fields}
    return fields


UNREADABLE = {
    "a list": [],
    "a node that is not an object": {"f:a": 1},
    "no colon": {"fa": {}},
    "no JSON": {"k:{": {}},
    "keys that are not objects": {"k:1": {}},
    "no keys": {"k:{}": {}},
    "a position that is not a number": {'i:"x"': {}},
    "too deep": nested(5000),
}


@pytest.mark.parametrize("fields", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_unreadable(fields: Any) -> None:
    with pytest.raises(FieldSetError):
        FieldSet.parse(fields)


TEXTS = {
    ("f:spec", "f:taint"): ".spec.taint",
    ("f:a", 'k:{"port":80,"protocol":"TCP"}', "f:name"): '.a[port=80,protocol="TCP"].name',
    ("f:finalizers", 'v:"x\\"y"'): '.finalizers[="x\\"y"]',
    ("f:a", "i:3"): ".a[3]",
    ("f:a", "v:true"): ".a[=true]",
}


@pytest.mark.parametrize(("path", "text"), TEXTS.items())
def test_path_text(path: tuple[str, ...], text: str) -> None:
    assert path_text(path) == text


def test_paths_come_with_members_first() -> None:
    fields = FieldSet({"f:b": {}, "f:a": {"f:c": {}}})

    assert list(fields.paths()) == [("f:b",), ("f:a", "f:c")]


def test_of_names() -> None:
    assert FieldSet.of(("status",), ("metadata", "name")).tree == {
        "f:status": {},
        "f:metadata": {"f:name": {}},
    }

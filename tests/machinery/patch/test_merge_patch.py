from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sully.machinery.patch.errors import MalformedPatchError
from sully.machinery.patch.merge_patch import (
    apply_merge_patch,
    check_merge_patch,
    reverse_merge_patch,
)

# The examples of RFC 7396, appendix A.
EXAMPLES: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x", "yz"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4)
    ),
    max_leaves=12,
)
json_objects = st.dictionaries(st.sampled_from("abcd"), json_values, max_size=4)


def without_nulls(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: without_nulls(item) for name, item in value.items() if item is not None}


@pytest.mark.parametrize(("document", "patch", "want"), EXAMPLES)
def test_example(document: Any, patch: Any, want: Any) -> None:
    assert apply_merge_patch(document, patch) == want


@given(json_objects, json_objects)
def test_applying_twice_is_applying_once(document: Any, patch: Any) -> None:
    once = apply_merge_patch(document, patch)

    assert apply_merge_patch(once, patch) == once


@given(json_objects, json_objects)
def test_the_reverse_restores_the_document(document: Any, patch: Any) -> None:
    before = without_nulls(document)

    patched = apply_merge_patch(before, patch)

    assert apply_merge_patch(patched, reverse_merge_patch(before, patch)) == before


@given(json_objects, json_objects)
def test_has_everything_of_the_patch(document: Any, patch: Any) -> None:
    got = apply_merge_patch(document, patch)

    for name, value in patch.items():
        if not isinstance(value, dict):
            assert got.get(name) == value


@given(json_objects)
def test_on_nothing_leaves_the_patch_without_nulls(patch: Any) -> None:
    assert apply_merge_patch({}, patch) == without_nulls(patch)


def test_shares_what_does_not_change() -> None:
    document = {"a": {"x": 1}, "b": {"y": 1}}

    got = apply_merge_patch(document, {"b": {"y": 2}})

    assert got["a"] is document["a"]
    assert document == {"a": {"x": 1}, "b": {"y": 1}}


def test_deep_patch() -> None:
    patch: Any = 1
    for _ in range(5000):
        patch = {"a": patch}

    with pytest.raises(MalformedPatchError, match="nests deeper"):
        apply_merge_patch({}, patch)


KINDS = {"array": [1], "number": 1.5, "bool": True, "string": "x"}


@pytest.mark.parametrize(("kind", "patch"), KINDS.items())
def test_not_an_object(kind: str, patch: Any) -> None:
    with pytest.raises(MalformedPatchError) as caught:
        check_merge_patch(patch)

    assert str(caught.value) == (
        f"error decoding patch: json: cannot unmarshal {kind} into Go value of type "
        "map[string]interface {}"
    )

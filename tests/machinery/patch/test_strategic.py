from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from machinery.patch.widgets import WIDGET
from sully.machinery.patch.errors import MalformedPatchError, PatchError
from sully.machinery.patch.merge_patch import apply_merge_patch
from sully.machinery.patch.strategic import apply_strategic_merge_patch


def named(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


@dataclass(frozen=True)
class Case:
    live: dict[str, Any]
    patch: dict[str, Any]
    want: dict[str, Any]


CASES = {
    "scalars and structs merge": Case(
        {"replicas": 1, "mode": {"speed": 1}},
        {"replicas": 2, "mode": {"style": "x"}},
        {"replicas": 2, "mode": {"speed": 1, "style": "x"}},
    ),
    "null deletes": Case({"replicas": 1, "paused": True}, {"replicas": None}, {"paused": True}),
    "null deletes nothing that is not there": Case({"replicas": 1}, {"x": None}, {"replicas": 1}),
    "nulls of a new map do not stay": Case(
        {}, {"mode": {"style": None, "speed": 1}}, {"mode": {"speed": 1}}
    ),
    "atomic lists are replaced": Case({"args": ["a", "b"]}, {"args": ["c"]}, {"args": ["c"]}),
    "lists of maps without a key are replaced": Case(
        {"plain": [{"uid": "1"}]}, {"plain": [{"uid": "2"}]}, {"plain": [{"uid": "2"}]}
    ),
    "items merge by key": Case(
        {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]},
        {"containers": [{"name": "b", "image": "2"}]},
        {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]},
    ),
    "new items come before those the patch does not name": Case(
        {"containers": named("a", "b")},
        {"containers": named("c")},
        {"containers": named("c", "a", "b")},
    ),
    "lists in items merge too": Case(
        {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}]}]},
        {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}]},
        {
            "containers": [
                {"name": "a", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]}
            ]
        },
    ),
    "an item is deleted": Case(
        {"containers": named("a", "b")},
        {"containers": [{"name": "a", "$patch": "delete"}]},
        {"containers": named("b")},
    ),
    "a list is replaced": Case(
        {"containers": named("a", "b")},
        {"containers": [{"$patch": "replace"}, {"name": "c"}]},
        {"containers": named("c")},
    ),
    "a map is replaced": Case(
        {"mode": {"speed": 1, "style": "x"}},
        {"mode": {"$patch": "replace", "style": "y"}},
        {"mode": {"style": "y"}},
    ),
    "a map is emptied": Case({"mode": {"speed": 1}}, {"mode": {"$patch": "delete"}}, {"mode": {}}),
    "scalars merge": Case({"tags": ["a", "b"]}, {"tags": ["b", "c"]}, {"tags": ["a", "b", "c"]}),
    "scalars are deleted": Case(
        {"tags": ["a", "b", "c"]},
        {"$deleteFromPrimitiveList/tags": ["a", "x"]},
        {"tags": ["b", "c"]},
    ),
    "scalars are deleted and added": Case(
        {"tags": ["a", "b"]},
        {
            "$deleteFromPrimitiveList/tags": ["a"],
            "$setElementOrder/tags": ["b", "c"],
            "tags": ["c"],
        },
        {"tags": ["b", "c"]},
    ),
    "nothing to delete from": Case({}, {"$deleteFromPrimitiveList/tags": ["a"]}, {}),
    "order of maps": Case(
        {"containers": named("a", "b", "c")},
        {"$setElementOrder/containers": named("c", "a", "b")},
        {"containers": named("c", "a", "b")},
    ),
    "order with new and changed items": Case(
        {"containers": [{"name": "a", "image": "1"}, {"name": "server"}]},
        {
            "$setElementOrder/containers": named("new", "a"),
            "containers": [{"name": "new"}, {"name": "a", "image": "2"}],
        },
        {"containers": [{"name": "new"}, {"name": "a", "image": "2"}, {"name": "server"}]},
    ),
    "order around what the server alone knows": Case(
        {"containers": named("1", "2", "3", "4")},
        {"$setElementOrder/containers": named("4", "2")},
        {"containers": named("1", "3", "4", "2")},
    ),
    "order and deletion": Case(
        {"containers": named("a", "b")},
        {
            "$setElementOrder/containers": named("b"),
            "containers": [{"name": "a", "$patch": "delete"}],
        },
        {"containers": named("b")},
    ),
    "order of a list that is not there": Case({}, {"$setElementOrder/containers": named("a")}, {}),
    "order with a list that goes": Case(
        {"containers": named("a")}, {"$setElementOrder/containers": [], "containers": None}, {}
    ),
    "list that is new": Case(
        {},
        {
            "$setElementOrder/containers": named("b", "a"),
            "containers": [{"name": "b"}, {"name": "a"}, {"name": "z", "$patch": "delete"}],
        },
        {"containers": named("b", "a")},
    ),
    "other keys than those retained go": Case(
        {"strategy": {"type": "Rolling", "rolling": {"speed": 1}}},
        {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
        {"strategy": {"type": "Recreate"}},
    ),
    "what is replaced as a whole keeps nothing": Case(
        {"swap": {"labels": {"a": "b"}, "mode": "x"}},
        {"swap": {"labels": {"c": "d"}}},
        {"swap": {"labels": {"c": "d"}}},
    ),
    "what is replaced as a whole can still go": Case({"swap": {"mode": "x"}}, {"swap": None}, {}),
    "directives in something new do not stay": Case(
        {},
        {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
        {"strategy": {"type": "Recreate"}},
    ),
    "ports merge by one of their two keys": Case(
        {"ports": [{"port": 80, "protocol": "TCP", "name": "x"}]},
        {"ports": [{"port": 80, "name": "y"}]},
        {"ports": [{"port": 80, "protocol": "TCP", "name": "y"}]},
    ),
    "values inside raw JSON merge": Case(
        {"raw": {"a": {"b": 1}}}, {"raw": {"a": {"c": 2}}}, {"raw": {"a": {"b": 1, "c": 2}}}
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_merge(case: Case) -> None:
    live, patch = {"spec": case.live}, {"spec": case.patch}
    before = repr((live, patch))

    got = apply_strategic_merge_patch(live, patch, WIDGET)

    assert got["spec"] == case.want
    assert repr((live, patch)) == before


ERRORS: dict[str, tuple[dict[str, Any], int, str]] = {
    "no merge key": (
        {"containers": [{"image": "x", "env": [1, "a"]}]},
        500,
        "map: map[env:[1 a] image:x] does not contain declared merge key: name",
    ),
    "deletion without a key": (
        {"containers": [{"$patch": "delete"}]},
        500,
        "map: map[$patch:delete] does not contain declared merge key: name",
    ),
    "unknown directive": (
        {"mode": {"$patch": "jump"}},
        500,
        "unknown patch type: jump in map: map[$patch:jump]",
    ),
    "unknown directive on an item": (
        {"containers": [{"$patch": "jump", "name": "a"}]},
        500,
        "unknown patch type: jump in map: map[$patch:jump name:a]",
    ),
    "merge of lists cannot be asked for": (
        {"containers": [{"$patch": "merge", "name": "a"}]},
        500,
        "merging lists cannot yet be specified in the patch",
    ),
    "keys to retain that leave out a patched one": (
        {"strategy": {"$retainKeys": ["type"], "rolling": {}}},
        400,
        "invalid patch format of retainKeys",
    ),
    "keys to retain of a wrong type": (
        {"strategy": {"$retainKeys": "type"}},
        400,
        "invalid patch format of retainKeys",
    ),
    "deletion from no list": (
        {"$deleteFromPrimitiveList": ["a"]},
        400,
        "invalid patch format of primitive list",
    ),
    "order of no list": (
        {"$setElementOrder": ["a"]},
        400,
        "invalid patch format of setElementOrder list",
    ),
    "order of a wrong type": (
        {"$setElementOrder/tags": "a"},
        500,
        "expected a []interface {}, but received a string",
    ),
    "patch in another order than it asks for": (
        {"$setElementOrder/containers": named("b", "a"), "containers": named("a", "b")},
        500,
        "The order in patch list:\n[map[name:a] map[name:b]]\n doesn't match $setElementOrder "
        "list:\n[map[name:b] map[name:a]]\n",
    ),
    "lists of lists": (
        {"containers": [["a"]]},
        422,
        "the server rejected our request due to an error in our request",
    ),
    "a table without a key": (
        {"weird": [{"uid": "2"}]},
        500,
        "cannot merge lists without merge key for type map",
    ),
}


@pytest.mark.parametrize(("patch", "code", "message"), ERRORS.values(), ids=ERRORS.keys())
def test_error(patch: dict[str, Any], code: int, message: str) -> None:
    live = {
        "containers": named("a", "b"),
        "tags": ["a"],
        "strategy": {"type": "x"},
        "mode": {"speed": 1},
        "weird": [{"uid": "1"}],
    }

    with pytest.raises(PatchError) as caught:
        apply_strategic_merge_patch({"spec": live}, {"spec": patch}, WIDGET)

    answer = caught.value.answer()
    assert (answer.code, answer.message) == (code, message)


def test_not_an_object() -> None:
    with pytest.raises(MalformedPatchError) as caught:
        apply_strategic_merge_patch({}, [1], WIDGET)

    assert str(caught.value) == (
        "json: cannot unmarshal array into Go value of type map[string]interface {}"
    )


def test_deep_patch() -> None:
    patch: Any = 1
    for _ in range(5000):
        patch = {"spec": patch}

    with pytest.raises(MalformedPatchError, match="nests deeper"):
        apply_strategic_merge_patch({}, patch, WIDGET)


flat = st.dictionaries(
    st.sampled_from(["replicas", "paused", "mode", "selector", "raw"]),
    st.none()
    | st.integers(0, 2)
    | st.dictionaries(
        st.sampled_from(["a", "b"]), st.integers(0, 2) | st.dictionaries(st.just("c"), st.just(1))
    ),
)


@given(flat, flat)
def test_without_lists_it_is_a_merge_patch(live: dict[str, Any], patch: dict[str, Any]) -> None:
    live = {name: value for name, value in live.items() if value is not None}

    got = apply_strategic_merge_patch({"spec": live}, {"spec": patch}, WIDGET)

    assert got == apply_merge_patch({"spec": live}, {"spec": patch})


@given(st.permutations(["a", "b", "c", "d"]), st.lists(st.sampled_from("abcdef"), unique=True))
def test_asked_for_order_is_kept(live: list[str], order: list[str]) -> None:
    patch = {"$setElementOrder/containers": named(*order), "containers": named(*order)}

    got = apply_strategic_merge_patch(
        {"spec": {"containers": named(*live)}}, {"spec": patch}, WIDGET
    )

    names = [item["name"] for item in got["spec"]["containers"]]
    assert [name for name in names if name in order] == order
    assert [name for name in names if name not in order] == [n for n in live if n not in order]

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from machinery.patch.widgets import WIDGET
from sully.machinery.patch.merging import merge, remove

Spec = dict[str, Any]


def named(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


MERGES: dict[str, tuple[Spec, Spec, Spec]] = {
    "fields": ({"replicas": 1}, {"paused": True}, {"replicas": 1, "paused": True}),
    "the applied value wins": ({"replicas": 1}, {"replicas": 2}, {"replicas": 2}),
    "structs": (
        {"mode": {"speed": 1}},
        {"mode": {"style": "x"}},
        {"mode": {"speed": 1, "style": "x"}},
    ),
    "atomic structs": (
        {"point": {"speed": 1}},
        {"point": {"style": "x"}},
        {"point": {"style": "x"}},
    ),
    "atomic lists": ({"args": ["a"]}, {"args": ["b"]}, {"args": ["b"]}),
    "an empty struct reports nothing": (
        {"mode": {"speed": 1}},
        {"mode": {}},
        {"mode": {"speed": 1}},
    ),
    "null reports nothing about a struct": (
        {"mode": {"speed": 1}},
        {"mode": None},
        {"mode": {"speed": 1}},
    ),
    "null of a scalar": ({"replicas": 1}, {"replicas": None}, {"replicas": None}),
    "empty becomes null": ({"mode": {}}, {"mode": None}, {"mode": None}),
    "items": (
        {"containers": [{"name": "a", "image": "1"}]},
        {"containers": [{"name": "a", "env": named("X")}]},
        {"containers": [{"name": "a", "image": "1", "env": named("X")}]},
    ),
    "a default finds its item": (
        {"ports": [{"port": 80, "protocol": "TCP"}]},
        {"ports": [{"port": 80, "name": "x"}]},
        {"ports": [{"port": 80, "protocol": "TCP", "name": "x"}]},
    ),
    "new items come last": (
        {"containers": named("a")},
        {"containers": named("b")},
        {"containers": named("a", "b")},
    ),
    "the applied order wins": (
        {"containers": named("a", "b", "c")},
        {"containers": named("c", "a")},
        {"containers": named("b", "c", "a")},
    ),
    "new items keep their place": (
        {"containers": named("a", "c")},
        {"containers": named("a", "b", "c")},
        {"containers": named("a", "b", "c")},
    ),
    "what only the live list has stays beside its neighbour": (
        {"containers": named("a", "live", "b")},
        {"containers": named("a", "new", "b")},
        {"containers": named("a", "live", "new", "b")},
    ),
    "sets": ({"tags": ["a", "b"]}, {"tags": ["c", "b"]}, {"tags": ["a", "c", "b"]}),
    "an item twice in the live list is replaced": (
        {"containers": [{"name": "a", "image": "1"}, {"name": "a", "image": "2"}]},
        {"containers": [{"name": "a", "env": named("X")}]},
        {"containers": [{"name": "a", "env": named("X")}]},
    ),
}


@pytest.mark.parametrize(("live", "applied", "want"), MERGES.values(), ids=MERGES.keys())
def test_merge(live: Spec, applied: Spec, want: Spec) -> None:
    before = repr((live, applied))

    assert merge({"spec": live}, {"spec": applied}, WIDGET) == {"spec": want}
    assert repr((live, applied)) == before


NAMES = st.lists(st.sampled_from("abcdef"), unique=True)


@given(NAMES, NAMES)
def test_every_item_is_there_once_in_the_applied_order(live: list[str], applied: list[str]) -> None:
    got = merge(
        {"spec": {"containers": named(*live)}}, {"spec": {"containers": named(*applied)}}, WIDGET
    )

    names = [item["name"] for item in got["spec"].get("containers") or []]
    assert sorted(names) == sorted({*live, *applied})
    assert [name for name in names if name in applied] == applied
    assert [name for name in names if name not in applied] == [n for n in live if n not in applied]


KEY_A = 'k:{"name":"a"}'

REMOVALS: dict[str, tuple[Spec, dict[str, Any], Spec | None]] = {
    "a scalar": ({"replicas": 1, "paused": True}, {"f:replicas": {}}, {"paused": True}),
    "the last field leaves null": (
        {"mode": {"speed": 1}},
        {"f:mode": {"f:speed": {}}},
        {"mode": None},
    ),
    "a struct with all below": (
        {"mode": {"speed": 1}, "paused": True},
        {"f:mode": {".": {}, "f:style": {}}},
        {"paused": True},
    ),
    "an item": (
        {"containers": named("a", "b")},
        {"f:containers": {KEY_A: {}}},
        {"containers": named("b")},
    ),
    "a field of an item": (
        {"containers": [{"name": "a", "image": "x"}]},
        {"f:containers": {KEY_A: {"f:image": {}}}},
        {"containers": named("a")},
    ),
    "the last item leaves null": ({"tags": ["a"]}, {"f:tags": {'v:"a"': {}}}, {"tags": None}),
    "a part of an atomic value takes all": (
        {"point": {"speed": 1}},
        {"f:point": {"f:speed": {}}},
        {"point": None},
    ),
    "nothing": ({"replicas": 1}, {"f:paused": {}}, {"replicas": 1}),
}


@pytest.mark.parametrize(("spec", "fields", "want"), REMOVALS.values(), ids=REMOVALS.keys())
def test_remove(spec: Spec, fields: dict[str, Any], want: Spec) -> None:
    assert remove({"spec": spec}, {"f:spec": fields}, WIDGET) == {"spec": want}

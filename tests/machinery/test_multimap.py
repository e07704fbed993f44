"""A multimap behaves as a dict of sets, and takes less memory."""

from __future__ import annotations

import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from property_examples import examples
from sully.machinery.multimap import Multimap

CHANGES = st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, 3)))


@settings(max_examples=examples(200))
@given(CHANGES)
def test_is_a_dict_of_sets(changes: list[tuple[bool, int, int]]) -> None:
    model: dict[int, set[int]] = {}
    multimap: Multimap[int, int] = Multimap()
    for adds, key, value in changes:
        if adds:
            model.setdefault(key, set()).add(value)
            multimap.add(key, value)
        else:
            model.get(key, set()).discard(value)
            model = {name: values for name, values in model.items() if values}
            multimap.discard(key, value)

        assert {name: set(multimap.get(name)) for name in multimap.keys()} == model  # noqa: SIM118 - not a dict
        assert len(multimap) == len(model)
        for name in range(3):
            assert (name in multimap) == (name in model)
            assert len(multimap.get(name)) == len(model.get(name, ()))


def test_a_value_may_be_a_set() -> None:
    multimap: Multimap[str, frozenset[int]] = Multimap()
    multimap.add("a", frozenset((1, 2)))

    assert list(multimap.get("a")) == [frozenset((1, 2))]


def test_a_single_value_takes_only_its_place_in_the_dict() -> None:
    multimap: Multimap[int, int] = Multimap()
    for number in range(1000):
        multimap.add(number, number)

    held = sys.getsizeof(multimap._values)
    assert held == sys.getsizeof(dict(zip(range(1000), range(1000), strict=True)))
    assert all(multimap._values[number] is number for number in range(256))


def test_a_copy_is_independent() -> None:
    values: Multimap[str, int] = Multimap()
    for key, value in (("one", 1), ("two", 1), ("two", 2)):
        values.add(key, value)

    copied = values.copy()
    copied.discard("one", 1)
    copied.add("two", 3)

    assert {key: set(found) for key, found in values.items()} == {"one": {1}, "two": {1, 2}}
    assert {key: set(found) for key, found in copied.items()} == {"two": {1, 2, 3}}

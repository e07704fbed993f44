"""Whatever decodes is answered: with findings, with a refusal, but never with a crash.

Bodies are made up from the field tables, so that every field turns up with odd values.
"""

import copy
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.core.writing import HERE, RESOURCES, TABLES, cells, create, served, stored_form, update
from property_examples import examples
from sully.machinery.errors import ApiError
from sully.machinery.schema import ListOf, MapOf, ObjectType, Scalar, Type

WORDS = ("", "a", "a", "A_b", "x/y", "Always", "Never", "Exists", "In", "$", "../x", "default")
SCALARS: dict[str, tuple[Any, ...]] = {
    "string": WORDS,
    "int32": (-1, 0, 1, 80, 70000),
    "int64": (-1, 0, 1, 2**40),
    "number": (0, 1.5),
    "bool": (True, False),
    "bytes": ("", "aGVsbG8="),
    "Time": ("2026-03-01T12:00:00Z",),
    "MicroTime": ("2026-03-01T12:00:00.000000Z",),
    "Quantity": ("0", "1", "-1", "100u", "1500m", "1Gi"),
    "IntOrString": (0, -1, 80, "http", "10%", "200%"),
    "object": ({}, {"a": 1}),
}


def _value(kind: Type, rng: random.Random, depth: int) -> Any:
    if isinstance(kind, Scalar):
        return rng.choice(SCALARS[kind.name])
    if isinstance(kind, ListOf):
        return [_value(kind.item, rng, depth) for _ in range(rng.randint(0, 2))]
    if isinstance(kind, MapOf):
        names = rng.sample(("a", "cpu", "memory", "example.com/x", "a b", ""), 2)
        return {name: _value(kind.value, rng, depth) for name in names}
    return _object(kind, rng, depth + 1)


def _object(kind: ObjectType, rng: random.Random, depth: int = 0) -> dict[str, Any]:
    # Schemas contain schemas, so at some depth there has to be an end.
    share = 0.5 if depth < 3 else 0.25 if depth < 7 else 0
    fields = [field for field in kind.fields.values() if rng.random() < share]
    return {field.name: _value(field.type, rng, depth) for field in fields}


def _body(key: tuple[str, str], seed: int) -> dict[str, Any]:
    resource = RESOURCES[key]
    body = _object(TABLES.get(resource.storage_version.package, resource.kind), random.Random(seed))
    # The server gives every object a uid before its strategy sees it.
    return {**body, "metadata": {"name": "x", "uid": "u", "labels": {"a": "a"}}}


@pytest.mark.parametrize("key", RESOURCES, ids="/".join)
@settings(max_examples=examples(40))
@given(seeds=st.tuples(st.integers(0, 2**32), st.integers(0, 2**32)))
def test_writes_do_not_crash(key: tuple[str, str], seeds: tuple[int, int]) -> None:
    group, plural = key
    resource = RESOURCES[key]
    one, other = (_body(key, seed) for seed in seeds)
    old = stored_form(resource, one)
    for sub in ("", "status") if resource.status else ("",):
        before = copy.deepcopy(old)
        update(plural, served(resource, stored_form(resource, other)), old, group=group, sub=sub)
        assert old == before
    for read in resource.selectable.values():
        assert isinstance(read(old), str)
    cells(plural, old, group=group)
    try:
        made = create(plural, one, HERE, group).obj
    except ApiError:
        return
    # What was filled in once is not filled in again.
    again = copy.deepcopy(made)
    resource.strategy.default(again, HERE.context())
    assert again == made

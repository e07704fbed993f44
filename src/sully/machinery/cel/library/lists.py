"""Functions over lists: those of Kubernetes, the list extensions of cel-go, and sets.

`includes` is here too: it asks the same of a list and of a lone value.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cmp_to_key
from itertools import pairwise
from typing import Final

from sully.machinery.cel.declarations import Library, library
from sully.machinery.cel.errors import EvaluationError, NoSuchOverloadError
from sully.machinery.cel.library.standard import Row
from sully.machinery.cel.temporal import checked_duration
from sully.machinery.cel.values import (
    Duration,
    UInt,
    Value,
    checked_int,
    checked_size,
    checked_uint,
    comparable,
    compare,
    equals,
)

_ORDERED: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")


def _is_sorted(items: list[Value]) -> bool:
    return all(compare(left, right) <= 0 for left, right in pairwise(items))


def _sum(items: list[Value]) -> Value:
    if not items:
        return 0
    first = items[0]
    if any(type(item) is not type(first) for item in items):
        raise NoSuchOverloadError
    if isinstance(first, Duration):
        return checked_duration(sum(item.nanos for item in items))
    if isinstance(first, UInt):
        return checked_uint(sum(map(int, items)))
    if isinstance(first, float):
        return sum(items)
    if type(first) is int:
        return checked_int(sum(items))
    raise NoSuchOverloadError


def _least(items: list[Value]) -> Value:
    return _extreme(items, -1, "min")


def _most(items: list[Value]) -> Value:
    return _extreme(items, 1, "max")


def _extreme(items: list[Value], direction: int, name: str) -> Value:
    if not items:
        raise EvaluationError(f"{name} called on empty list")
    best = items[0]
    for item in items[1:]:
        if compare(item, best) == direction:
            best = item
    return best


def _index_of(items: list[Value], expected: Value) -> int:
    return next((index for index, item in enumerate(items) if equals(item, expected)), -1)


def _last_index_of(items: list[Value], expected: Value) -> int:
    indexes = range(len(items) - 1, -1, -1)
    return next((index for index in indexes if equals(items[index], expected)), -1)


def _kubernetes_rows() -> Iterator[Row]:
    for kind in _ORDERED:
        yield f"list_{kind}_is_sorted_bool", f"list({kind}):isSorted() -> bool", _is_sorted
        yield f"list_{kind}_min_{kind}", f"list({kind}):min() -> {kind}", _least
        yield f"list_{kind}_max_{kind}", f"list({kind}):max() -> {kind}", _most
    for kind in ("int", "uint", "double", "duration"):
        yield f"list_{kind}_sum_{kind}", f"list({kind}):sum() -> {kind}", _sum
    yield "list_a_index_of_int", "list(T):indexOf(T) -> int", _index_of
    yield "list_a_last_index_of_int", "list(T):lastIndexOf(T) -> int", _last_index_of


def _slice(items: list[Value], start: int, end: int) -> list[Value]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if end > len(items):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _flatten(items: list[Value], depth: int = 1) -> list[Value]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    out: list[Value] = []
    for item in items:
        if isinstance(item, (list, tuple)) and depth > 0:
            out.extend(_flatten(list(item), depth - 1))
        else:
            out.append(item)
        checked_size(len(out))
    return out


def _distinct(items: list[Value]) -> list[Value]:
    out: list[Value] = []
    for item in items:
        if not any(equals(item, existing) for existing in out):
            out.append(item)
    return out


def _range(count: int) -> list[int]:
    return list(range(checked_size(count)))


def _sort(items: list[Value]) -> list[Value]:
    return _sort_by(items, items)


def _sort_by(items: list[Value], keys: list[Value]) -> list[Value]:
    for key in keys:
        if not comparable(key, keys[0]) or type(key) is not type(keys[0]):
            raise EvaluationError("list elements must have the same type")
    ordered = cmp_to_key(compare)
    indexes = sorted(range(len(items)), key=lambda index: ordered(keys[index]))
    return [items[index] for index in indexes]


def _extension_rows() -> Iterator[Row]:
    yield "list_slice", "list(T):slice(int, int) -> list(T)", _slice
    yield "list_flatten", "list(list(T)):flatten() -> list(T)", _flatten
    yield "list_flatten_int", "list(dyn):flatten(int) -> list(dyn)", _flatten
    yield "list_distinct", "list(T):distinct() -> list(T)", _distinct
    yield "lists_range", "lists.range(int) -> list(int)", _range
    yield "list_reverse", "list(T):reverse() -> list(T)", lambda items: items[::-1]
    for kind in _ORDERED:
        yield f"list_{kind}_sort", f"list({kind}):sort() -> list({kind})", _sort
        yield (
            f"list_{kind}_sortByAssociatedKeys",
            f"list(T):@sortByAssociatedKeys(list({kind})) -> list(T)",
            _sort_by,
        )


def _contains_all(items: list[Value], expected: list[Value]) -> bool:
    return all(any(equals(item, value) for item in items) for value in expected)


def _set_rows() -> Iterator[Row]:
    pair = "(list(T), list(T)) -> bool"
    yield "list_sets_contains_list", f"sets.contains{pair}", _contains_all
    yield (
        "list_sets_equivalent_list",
        f"sets.equivalent{pair}",
        lambda left, right: _contains_all(left, right) and _contains_all(right, left),
    )
    yield (
        "list_sets_intersects_list",
        f"sets.intersects{pair}",
        lambda left, right: any(equals(one, other) for one in left for other in right),
    )


def _includes(value: Value, expected: Value) -> bool:
    if isinstance(value, (list, tuple)):
        return any(equals(item, expected) for item in value)
    return equals(value, expected)


def kubernetes_lists() -> Library:
    """Return the list functions that Kubernetes has had from the start."""
    return library(_kubernetes_rows())


def list_extensions() -> Library:
    """Return the list extensions of cel-go."""
    return library(_extension_rows())


def sets() -> Library:
    """Return the functions that take lists for sets."""
    return library(_set_rows())


def inclusion() -> Library:
    """Return `includes`, for attributes that may be a value or a list of values."""
    return library([("dyn_includes", "dyn:includes(dyn) -> bool", _includes)])

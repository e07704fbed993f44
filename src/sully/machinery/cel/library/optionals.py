"""Values that may be absent: making, asking and unwrapping them."""

from __future__ import annotations

from collections.abc import Iterator

from sully.machinery.cel import types
from sully.machinery.cel.declarations import Library, library
from sully.machinery.cel.errors import NoSuchOverloadError
from sully.machinery.cel.evaluation import access
from sully.machinery.cel.library.standard import Row
from sully.machinery.cel.values import NONE, Duration, Optional, Timestamp, Value

_OPTIONAL = "optional_type(V)"


def _of_non_zero(value: Value) -> Optional:
    return NONE if _is_zero(value) else Optional(value)


def _is_zero(value: Value) -> bool:
    if isinstance(value, Timestamp):
        return False
    if isinstance(value, Duration):
        return value.nanos == 0
    if isinstance(value, Optional):
        return not value.present
    return not value


def _or_value(value: Optional, other: Value) -> Value:
    return value.value if value.present else other


def _unwrap(values: list[Optional]) -> list[Value]:
    if not all(isinstance(value, Optional) for value in values):
        raise NoSuchOverloadError
    return [value.value for value in values if value.present]


def _rows() -> Iterator[Row]:
    yield "optional_of", f"optional.of(V) -> {_OPTIONAL}", Optional
    yield "optional_ofNonZeroValue", f"optional.ofNonZeroValue(V) -> {_OPTIONAL}", _of_non_zero
    yield "optional_none", f"optional.none() -> {_OPTIONAL}", lambda: NONE
    yield "optional_hasValue", f"{_OPTIONAL}:hasValue() -> bool", lambda value: value.present
    yield "optional_value", f"{_OPTIONAL}:value() -> V", lambda value: value.value
    yield (
        "optional_or_optional",
        f"{_OPTIONAL}:or({_OPTIONAL}) -> {_OPTIONAL}",
        lambda value, other: value if value.present else other,
    )
    yield "optional_orValue_value", f"{_OPTIONAL}:orValue(V) -> V", _or_value
    yield "list_optindex_optional_int", f"_[?_](list(V), int) -> {_OPTIONAL}", access.find
    yield (
        "optional_list_optindex_optional_int",
        f"_[?_](optional_type(list(V)), int) -> {_OPTIONAL}",
        access.find,
    )
    yield "map_optindex_optional_value", f"_[?_](map(K, V), K) -> {_OPTIONAL}", access.find
    yield (
        "optional_map_optindex_optional_value",
        f"_[?_](optional_type(map(K, V)), K) -> {_OPTIONAL}",
        access.find,
    )
    yield (
        "optional_list_index_int",
        f"_[_](optional_type(list(V)), int) -> {_OPTIONAL}",
        access.index,
    )
    yield (
        "optional_map_index_value",
        f"_[_](optional_type(map(K, V)), K) -> {_OPTIONAL}",
        access.index,
    )
    yield "optional_unwrap", f"optional.unwrap(list({_OPTIONAL})) -> list(V)", _unwrap
    yield "optional_unwrapOpt", f"list({_OPTIONAL}):unwrapOpt() -> list(V)", _unwrap
    yield "list_first", f"list(V):first() -> {_OPTIONAL}", lambda items: access.find(items, 0)
    yield (
        "list_last",
        f"list(V):last() -> {_OPTIONAL}",
        lambda items: Optional(items[-1]) if items else NONE,
    )


def optionals() -> Library:
    """Return the library of optional values."""
    return library(_rows(), {"optional_type": types.optional_of(types.DYN)})

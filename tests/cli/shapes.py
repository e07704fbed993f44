"""The fields of documents as paths: `devices[].taints[].key`; `*` stands for names of a mapping."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import Enum
from typing import Any

import msgspec

from sully.domain.planning.report import ObjectChange, PlannedTaint

MAPPINGS = frozenset(
    ("attributes", "capacity", "consumedCapacity", "effects", "refused", "invalidPools", "rows")
)
"""Fields whose keys are names that others chose."""
OPAQUE = frozenset(("data", "selectors"))
"""Fields that are handed on as they are."""


def paths(value: Any, at: str = "") -> Iterator[str]:
    """Yield the paths of all fields of a document."""
    if isinstance(value, list):
        for entry in value:
            yield from paths(entry, f"{at}[]")
    elif isinstance(value, Mapping):
        free = at.rpartition(".")[2].removesuffix("[]") in MAPPINGS
        for name, entry in value.items():
            place = f"{at}.{'*' if free else name}".lstrip(".")
            yield place
            if name not in OPAQUE or free:
                yield from paths(entry, place)


_TEXTS = (ObjectChange, PlannedTaint)
"""Structs that the format has as text."""


def type_paths(kind: Any, at: str = "") -> Iterator[str]:
    """Yield the paths of all fields that a type can have."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        for item in arguments:
            yield from type_paths(item, at)
    elif origin is tuple:
        yield from type_paths(arguments[0], f"{at}[]")
    elif origin in (Mapping, dict):
        yield f"{at}.*"
        yield from type_paths(arguments[1], f"{at}.*")
    elif kind in _TEXTS:
        return
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for field in msgspec.structs.fields(kind):
            place = f"{at}.{field.encode_name}".lstrip(".")
            yield place
            yield from type_paths(field.type, place)
    else:
        assert not isinstance(kind, type) or issubclass(
            kind, (str, int, float, bool, datetime, Enum, type(None))
        ), kind

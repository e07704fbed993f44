"""Where the typed kinds hold moments, so that these can be written as every field reads them.

The encoder leaves out a fraction that is zero, and a MicroTime without one is refused; six digits
are read as a Time and as a MicroTime alike, and the server keeps what the field keeps. To look at
every value of an object for moments takes longer than to encode it, so their places are found
once per type.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import msgspec

from sully.machinery.formats.timestamps import format_micro_time

Rewrite = Callable[[Any], Any]
"""Takes an encoded value and returns it, or changes it in place, with its moments rewritten."""

_WHOLE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_MICRO_LENGTH = len("2006-01-02T15:04:05.000000Z")


@lru_cache(maxsize=256)
def rewriter(kind: Any) -> Rewrite | None:
    """Return what rewrites the moments of an encoded value of a type; None if it has none."""
    return _of(kind, set())


def _of(kind: Any, above: set[Any]) -> Rewrite | None:
    if kind is datetime:
        return _moment
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _fields(kind, above)
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        known = [type_ for type_ in inside if type_ is not NoneType]
        # Unions of several types hold none of ours; whatever their values are is left alone.
        return _of(known[0], above) if len(known) == 1 else None
    if origin in (tuple, list):
        return _items(_of(inside[0], above)) if inside else None
    if origin is dict:
        return _values(_of(inside[1], above))
    return None


def _fields(kind: type[msgspec.Struct], above: set[Any]) -> Rewrite | None:
    if kind in above:
        # Within itself: what rewrites the whole is known by the time it is called.
        return lambda value: (rewriter(kind) or _unchanged)(value)
    fields = msgspec.structs.fields(kind)
    rewriters = [(field.encode_name, _of(field.type, above | {kind})) for field in fields]
    used = tuple((name, change) for name, change in rewriters if change is not None)

    def change_fields(value: dict[str, Any]) -> Any:
        for name, change in used:
            field_value = value.get(name)
            if field_value is not None:
                value[name] = change(field_value)
        return value

    return change_fields if used else None


def _unchanged(value: Any) -> Any:
    return value


def _items(change: Rewrite | None) -> Rewrite | None:
    return None if change is None else lambda value: [change(item) for item in value]


def _values(change: Rewrite | None) -> Rewrite | None:
    if change is None:
        return None
    return lambda value: {name: change(item) for name, item in value.items()}


def _moment(text: str) -> str:
    if len(text) == _MICRO_LENGTH and text[-1] == "Z":
        return text
    if _WHOLE.fullmatch(text):
        return f"{text[:-1]}.000000Z"
    return format_micro_time(datetime.fromisoformat(text))

"""Reaching into values: fields, keys, indexes, and whether they are there.

A map that comes from outside may give defaults for missing keys (`__missing__`): device attributes
do, for unknown domains. Reading a key asks for the default, `in` does not.
"""

from __future__ import annotations

from collections.abc import Sequence

from sully.machinery.cel.errors import EvaluationError, NoSuchKeyError, NoSuchOverloadError
from sully.machinery.cel.values import NONE, Optional, Value, as_key, equals


def select(value: Value, field: str) -> Value:
    """Return `value.field`."""
    if isinstance(value, Optional):
        return find(value.value, field) if value.present else NONE
    if not isinstance(value, dict):
        raise NoSuchOverloadError
    try:
        return value[field]
    except KeyError:
        raise NoSuchKeyError(field) from None


def has(value: Value, field: str) -> bool:
    """Report whether `value.field` could be read."""
    if isinstance(value, Optional):
        return value.present and has(value.value, field)
    if not isinstance(value, dict):
        raise NoSuchOverloadError
    return find(value, field).present


def index(value: Value, key: Value) -> Value:
    """Return `value[key]`."""
    if isinstance(value, dict):
        try:
            return value[as_key(key)]
        except KeyError:
            raise NoSuchKeyError(_shown(key)) from None
    if isinstance(value, (list, tuple)):
        place = _place(key)
        if not 0 <= place < len(value):
            raise EvaluationError(f"index out of bounds: {place}")
        return value[place]
    if isinstance(value, Optional):
        return find(value.value, key) if value.present else NONE
    raise NoSuchOverloadError


def find(value: Value, key: Value) -> Optional:
    """Return what is at a key or an index, or nothing."""
    if isinstance(value, Optional):
        return find(value.value, key) if value.present else NONE
    if isinstance(value, dict):
        try:
            return Optional(value[as_key(key)])
        except KeyError:
            return NONE
    if isinstance(value, (list, tuple)):
        place = _place(key)
        return Optional(value[place]) if 0 <= place < len(value) else NONE
    raise NoSuchOverloadError


def contains(key: Value, value: Value) -> bool:
    """Report whether a list has an equal element, or a map has a key."""
    if isinstance(value, dict):
        return isinstance(key, (str, int, float)) and as_key(key) in value
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return any(equals(key, item) for item in value)
    raise NoSuchOverloadError


def _place(key: Value) -> int:
    if isinstance(key, float) and key.is_integer():
        return int(key)
    if not isinstance(key, int) or isinstance(key, bool):
        raise NoSuchOverloadError
    return key


def _shown(key: Value) -> str:
    if isinstance(key, bool):
        return str(key).lower()
    return str(int(key)) if isinstance(key, int) else str(key)

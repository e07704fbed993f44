"""Finds the field of an object in a file that has the wrong type.

The views expect objects as servers return them. To check every object of a file would take longer
than to read it, so this only runs after something failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from sully.machinery.formats.quantity import QuantityError, canonical
from sully.machinery.formats.timestamps import TimeError, parse_time
from sully.machinery.schema import Field, ListOf, MapOf, ObjectType, Scalar, Type
from sully.views.snapshot.file import known_kind

if TYPE_CHECKING:
    from sully.machinery.scheme import Scheme


def type_error(obj: Mapping[str, Any], *, strict: bool) -> str:
    """Return the first error, such as `spec.nodeName: text is expected, not 3`; empty: no error.

    A server accepts null for an absent field and a number for a quantity, and returns neither. Nor
    does it omit required fields. With `strict`, all of these are errors.
    """
    table = _table(obj)
    if table is None:
        return ""
    return next(_object(obj, table, "", strict=strict), "")


@cache
def _scheme() -> Scheme:
    from sully.api import build_scheme

    return build_scheme()


def _table(obj: Mapping[str, Any]) -> ObjectType | None:
    kind = known_kind(obj)
    if kind is None:
        return None
    scheme, (_, _, version) = _scheme(), str(obj.get("apiVersion") or "").rpartition("/")
    resource = scheme.find(kind.group, kind.version, kind.plural)
    if resource is None:
        return None
    served = version if resource.version(version) is not None else resource.storage_version.name
    return scheme.schema(resource, served)


def _object(value: Any, type_: ObjectType, at: str, *, strict: bool) -> Iterator[str]:
    if not isinstance(value, dict):
        yield _message(at, "an object", value)
        return
    for name, field in type_.fields.items():
        place = f"{at}.{name}" if at else name
        if name in value:
            yield from _field(value[name], field, place, strict=strict)
        elif field.required and strict:
            yield f"{place}: it is missing"


def _field(value: Any, field: Field, at: str, *, strict: bool) -> Iterator[str]:
    if value is not None or (strict and not isinstance(field.type, Scalar)):
        yield from _value(value, field.type, at, strict=strict)


def _value(value: Any, type_: Type, at: str, *, strict: bool) -> Iterator[str]:
    if isinstance(type_, ObjectType):
        yield from _object(value, type_, at, strict=strict)
    elif isinstance(type_, Scalar):
        expected, is_valid = (
            _QUANTITY if strict and type_.name == "Quantity" else _SCALARS[type_.name]
        )
        if not is_valid(value):
            yield _message(at, expected, value)
    elif isinstance(type_, ListOf):
        if not isinstance(value, list):
            yield _message(at, "a list", value)
            return
        for index, item in enumerate(value):
            yield from _value(item, type_.item, f"{at}[{index}]", strict=strict)
    else:
        yield from _entries(value, type_, at, strict=strict)


def _entries(value: Any, type_: MapOf, at: str, *, strict: bool) -> Iterator[str]:
    if not isinstance(value, dict):
        yield _message(at, "an object", value)
        return
    for name, item in value.items():
        yield from _value(item, type_.value, f"{at}.{name}", strict=strict)


def _message(at: str, expected: str, value: Any) -> str:
    return f"{at or 'it'}: {expected} is expected, not {_value_text(value)}"


def _value_text(value: Any) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return ascii(value)


def _is_text(value: Any) -> bool:
    # JSON can have a lone surrogate, UTF-8 cannot.
    return isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value)


def _is_whole(value: Any) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _is_time(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(parse_time(value))
    except TimeError:
        return False


def _is_quantity(value: Any) -> bool:
    try:
        return type(value) in (str, int, float) and bool(canonical(str(value)))
    except QuantityError:
        return False


_TEXT: tuple[str, Callable[[Any], bool]] = ("text", _is_text)
_NUMBER: tuple[str, Callable[[Any], bool]] = ("a whole number", _is_whole)
_TIME: tuple[str, Callable[[Any], bool]] = ("a time such as 2026-01-31T12:00:00Z", _is_time)
_QUANTITY = ('text such as "2"', _is_text)
_SCALARS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "string": _TEXT,
    "bytes": _TEXT,
    "int32": _NUMBER,
    "int64": _NUMBER,
    "number": ("a number", lambda value: type(value) in (int, float)),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "Time": _TIME,
    "MicroTime": _TIME,
    "Quantity": ("an amount such as 2, 500m or 16Gi", _is_quantity),
    "IntOrString": ("a whole number or text", lambda value: _is_whole(value) or _is_text(value)),
    "object": ("anything", lambda _: True),
}

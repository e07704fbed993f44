"""What in an object of a file does not fit its kind: which field, and why.

Files are written by people and programs of all sorts. The views take objects as a server gives
them, and to check each before it is read would take longer than to read it. So nobody looks here
until something went wrong; then the file is to blame, and this says where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from sully.machinery.quantity import QuantityError, canonical
from sully.machinery.schema import Field, ListOf, MapOf, ObjectType, Scalar, Type
from sully.machinery.timestamps import TimeError, parse_time
from sully.views.snapshot.file import known_kind

if TYPE_CHECKING:
    from sully.machinery.scheme import Scheme


def misfit(obj: Mapping[str, Any], *, strictly: bool) -> str:
    """Return what does not fit, such as `spec.nodeName: text is expected, not 3`; empty: all fits.

    A server takes null for nothing, and a number for an amount, and answers with neither. Nor does
    it leave out what must be there: that does not fit, either, if it is said `strictly`.
    """
    table = _table(obj)
    if table is None:
        return ""
    found = next(_object(obj, table, "", strictly), None)
    return "" if found is None else found


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
    served = version if resource.version(version) is not None else resource.hub.name
    return scheme.schema(resource, served)


def _object(value: Any, kind: ObjectType, at: str, strictly: bool) -> Iterator[str]:
    if not isinstance(value, dict):
        yield _said(at, "an object", value)
        return
    for name, field in kind.fields.items():
        place = f"{at}.{name}" if at else name
        if name in value:
            yield from _field(value[name], field, place, strictly)
        elif field.required and strictly:
            yield f"{place}: it is missing"


def _field(value: Any, field: Field, at: str, strictly: bool) -> Iterator[str]:
    if value is not None or (strictly and not isinstance(field.type, Scalar)):
        yield from _value(value, field.type, at, strictly)


def _value(value: Any, kind: Type, at: str, strictly: bool) -> Iterator[str]:
    if isinstance(kind, ObjectType):
        yield from _object(value, kind, at, strictly)
    elif isinstance(kind, Scalar):
        wanted, fits = _AMOUNT if strictly and kind.name == "Quantity" else _SCALARS[kind.name]
        if not fits(value):
            yield _said(at, wanted, value)
    elif isinstance(kind, ListOf):
        if not isinstance(value, list):
            yield _said(at, "a list", value)
            return
        for index, each in enumerate(value):
            yield from _value(each, kind.item, f"{at}[{index}]", strictly)
    else:
        yield from _entries(value, kind, at, strictly)


def _entries(value: Any, kind: MapOf, at: str, strictly: bool) -> Iterator[str]:
    if not isinstance(value, dict):
        yield _said(at, "an object", value)
        return
    for name, each in value.items():
        yield from _value(each, kind.value, f"{at}.{name}", strictly)


def _said(at: str, wanted: str, value: Any) -> str:
    return f"{at or 'it'}: {wanted} is expected, not {_told(value)}"


def _told(value: Any) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return ascii(value)


def _is_text(value: Any) -> bool:
    # Half of a character can be written in JSON, and nowhere else.
    return isinstance(value, str) and not any("\ud800" <= each <= "\udfff" for each in value)


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
_AMOUNT = ('text such as "2"', _is_text)
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

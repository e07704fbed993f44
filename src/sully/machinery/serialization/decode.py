"""From a parsed body to the object as the API sees it, along a field table.

What Go's typed decoding and encoding do together happens here in one walk: types are checked,
unknown fields are noted and left out, nulls and empty optional values go, values that are always
written appear, times and quantities take their canonical form. The result is exactly what the
server stores and answers.

Most bodies are well formed, and read by readers.py; the walk here is for those that are not.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Any

from sully.machinery.formats.quantity import QuantityError, canonical
from sully.machinery.formats.timestamps import TimeError, canonical_micro_time, canonical_time
from sully.machinery.schema import Field, ListOf, MapOf, ObjectType, Scalar, Type
from sully.machinery.serialization.codec import Trail, copy, written
from sully.machinery.serialization.readers import ZERO, FallbackError, object_reader

Obj = dict[str, Any]
MAX_UNKNOWN = 100
"""How many unknown fields are reported, as Kubernetes."""

_NOT_BASE64 = re.compile("[^A-Za-z0-9+/]")
_INT_RANGE = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


class DecodeError(ValueError):
    """A body with wrong types; the message is that of Go.

    A strategic merge patch is not decoded from JSON but converted, with other messages.
    """

    def __init__(self, message: str, converting: str = "") -> None:
        super().__init__(message)
        self.converting = converting or message


def decode(value: Any, kind: ObjectType, unknown: list[str], known: Obj | None = None) -> Obj:
    """Return the object in its normal form; names of unknown fields are added to `unknown`.

    `known` is the object before a change, in its normal form: what is equal is not read again.
    """
    reader = object_reader(kind)
    try:
        return reader.read(value) if known is None else reader.read_changed(value, known)
    except FallbackError:
        return walk(value, kind, unknown)


def walk(value: Any, kind: ObjectType, unknown: list[str]) -> Obj:
    """Decode step by step, with the path of each value."""
    try:
        return _object(value, kind, (), _GoField(kind, None), unknown)
    except DecodeError as error:
        # Go reports the first wrong type only if every time and quantity can be read.
        unreadable = _unreadable(value, kind, (), _GoField(kind, None)) or error
        raise DecodeError(str(unreadable), error.converting) from None


def empty_object(kind: ObjectType) -> Obj:
    """Return the object as an empty body decodes: only what is always written."""
    if kind.structural:
        return {"metadata": {}}
    return decode({}, kind, [])


class _Key(str):
    """A key of a map: part of a path for people, not of one for Go types."""

    __slots__ = ()


class UnknownField(str):
    """The path of an unknown field, and what Kubernetes names if it converts without JSON."""

    __slots__ = ("converting",)
    converting: str


def _unknown(at: Trail, name: str) -> UnknownField:
    field = UnknownField(written((at, name)))
    field.converting = written((_without_keys(at), name))
    return field


def _without_keys(at: Trail) -> Trail:
    if not at:
        return at
    outer, step = at
    outer = _without_keys(outer)
    return outer if type(step) is _Key else (outer, step)


class _Embedded(str):
    """A field of structs that Go embeds: its name for Go has the names of those before it."""

    __slots__ = ("go_name",)
    go_name: str


def _step(field: Field, owner: ObjectType) -> str:
    """Return a field as a part of a path."""
    around = (field.number[:depth] for depth in range(1, len(field.number)))
    structs = [owner.embedded[number] for number in around if number in owner.embedded]
    if not structs:
        return field.name
    step = _Embedded(field.name)
    step.go_name = ".".join((*structs, field.name))
    return step


class _GoField:
    """The Go type and field of a value, for error texts."""

    __slots__ = ("field", "owner")

    def __init__(self, owner: ObjectType, field: Field | None) -> None:
        self.owner, self.field = owner, field


_READ_THEMSELVES = ("Time", "MicroTime", "Quantity", "IntOrString")


def _unreadable(value: Any, kind: Type, at: Trail, go_field: _GoField) -> DecodeError | None:
    """Return the first error of a value whose Go type reads itself."""
    if isinstance(kind, Scalar):
        if kind.name in _READ_THEMSELVES and value is not None:
            try:
                _SCALAR[kind.name](value, kind, at, go_field)
            except DecodeError as error:
                return error
        return None
    parts = _parts(value, kind, at, go_field)
    return next(filter(None, (_unreadable(*part) for part in parts)), None)


def _parts(
    value: Any, kind: Type, at: Trail, go_field: _GoField
) -> Iterator[tuple[Any, Type, Trail, _GoField]]:
    """Yield the values inside a value that have a type."""
    if isinstance(value, list) and isinstance(kind, ListOf):
        for index, item in enumerate(value):
            yield item, kind.item, (at, index), go_field
    elif isinstance(value, dict) and isinstance(kind, MapOf):
        for key, item in value.items():
            yield item, kind.value, (at, _Key(key)), go_field
    elif isinstance(value, dict) and isinstance(kind, ObjectType):
        for name, item in value.items():
            if (field := kind.fields.get(name)) is not None:
                yield item, field.type, (at, _step(field, kind)), _GoField(kind, field)


def _object(value: Any, kind: ObjectType, at: Trail, go_field: _GoField, unknown: list[str]) -> Obj:
    if not isinstance(value, dict):
        raise _mismatch(value, kind, at, go_field)
    result: Obj = {}
    fields = kind.fields
    for name, field_value in value.items():
        field = fields.get(name)
        if field is None:
            if len(unknown) < MAX_UNKNOWN:
                unknown.append(_unknown(at, name))
            continue
        if field_value is None:
            continue
        _put(result, field, field_value, ((at, _step(field, kind)), kind), unknown)
    for field in _always_written(kind):
        if field.name not in result:
            result[field.name] = _zero_of(field)
    return result


def _put(
    result: Obj, field: Field, value: Any, where: tuple[Trail, ObjectType], unknown: list[str]
) -> None:
    at, owner = where
    decoded = _value(value, field.type, at, _GoField(owner, field), unknown)
    if decoded or field.emit or field.null or field.ptr or _keeps_empty(field, decoded):
        result[field.name] = decoded


def _keeps_empty(field: Field, decoded: Any) -> bool:
    # An empty struct behind a pointer, a raw value and a written quantity are not "zero" to Go.
    if isinstance(field.type, ObjectType):
        return True
    return (
        isinstance(field.type, Scalar)
        and field.type.name in ("object", "IntOrString")
        and (decoded is not None)
    )


def _value(value: Any, kind: Type, at: Trail, go_field: _GoField, unknown: list[str]) -> Any:
    if isinstance(kind, Scalar):
        return _SCALAR[kind.name](value, kind, at, go_field)
    if isinstance(kind, ObjectType):
        if value is None:
            value = {}
        return _object(value, kind, at, go_field, unknown)
    if isinstance(kind, ListOf):
        if not isinstance(value, list):
            raise _mismatch(value, kind, at, go_field)
        return [
            _value(_or_zero(item, kind.item), kind.item, (at, index), go_field, unknown)
            for index, item in enumerate(value)
        ]
    if not isinstance(value, dict):
        raise _mismatch(value, kind, at, go_field)
    return {
        key: _value(_or_zero(item, kind.value), kind.value, (at, _Key(key)), go_field, unknown)
        for key, item in value.items()
    }


def _or_zero(item: Any, kind: Type) -> Any:
    if item is not None:
        return item
    if isinstance(kind, Scalar):
        return ZERO[kind.name]
    return [] if isinstance(kind, ListOf) else {}


def _string(value: Any, kind: Scalar, at: Trail, go_field: _GoField) -> Any:
    if type(value) is not str:
        raise _mismatch(value, kind, at, go_field)
    return value


def _integer(value: Any, kind: Scalar, at: Trail, go_field: _GoField) -> Any:
    if type(value) is not int:
        raise _mismatch(value, kind, at, go_field)
    low, high = _INT_RANGE[kind.name]
    if not low <= value <= high:
        raise _mismatch(value, kind, at, go_field)
    return value


def _bool(value: Any, kind: Scalar, at: Trail, go_field: _GoField) -> Any:
    if type(value) is not bool:
        raise _mismatch(value, kind, at, go_field)
    return value


def _number(value: Any, kind: Scalar, at: Trail, go_field: _GoField) -> Any:
    if type(value) not in (int, float):
        raise _mismatch(value, kind, at, go_field)
    return value


def _bytes(value: Any, kind: Scalar, at: Trail, go_field: _GoField) -> Any:
    if type(value) is not str:
        raise _mismatch(value, kind, at, go_field)
    try:
        raw = base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        text = f"illegal base64 data at input byte {_bad_base64(value)}"
        raise DecodeError(text, f"error decoding from json: {text}") from None
    return base64.b64encode(raw).decode()


def _bad_base64(text: str) -> int:
    match = _NOT_BASE64.search(text)
    return match.start() if match else len(text) - len(text) % 4


def _time(value: Any, kind: Scalar, at: Trail, go_field: _GoField) -> Any:
    if value is None:
        return None
    if type(value) is not str:
        error = _mismatch(value, Scalar("string"), at, go_field)
        # Times read themselves from JSON, also where all else is converted.
        read = f"json: cannot unmarshal {_json_kind(value, kind)} into Go value of type string"
        raise DecodeError(str(error), read)
    try:
        return canonical_time(value) if kind.name == "Time" else canonical_micro_time(value)
    except TimeError as error:
        raise DecodeError(str(error)) from None


def _quantity(value: Any, *_: object) -> Any:
    # Go reads the text of the value, whatever its type; no other than these is a quantity.
    text = value.strip() if type(value) is str else repr(value)
    try:
        return canonical(text)
    except QuantityError as error:
        raise DecodeError(str(error)) from None


def _int_or_string(value: Any, _: Scalar, at: Trail, go_field: _GoField) -> Any:
    low, high = _INT_RANGE["int32"]
    if type(value) is str or (type(value) is int and low <= value <= high):
        return value
    number = Scalar("int32")
    # Such a value is read from JSON even where the object is converted.
    text = f"json: cannot unmarshal {_json_kind(value, number)} into Go value of type int32"
    raise DecodeError(str(_mismatch(value, number, at, go_field)), text)


def _raw(value: Any, *_: object) -> Any:
    # A caller in this process may go on changing what it sent.
    return copy(value)


_SCALAR: dict[str, Callable[[Any, Scalar, Trail, _GoField], Any]] = {
    "string": _string,
    "int32": _integer,
    "int64": _integer,
    "number": _number,
    "bool": _bool,
    "bytes": _bytes,
    "Time": _time,
    "MicroTime": _time,
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "object": _raw,
}


_WRITTEN: dict[int, tuple[ObjectType, tuple[Field, ...]]] = {}


def _always_written(kind: ObjectType) -> tuple[Field, ...]:
    known = _WRITTEN.get(id(kind))
    if known is None:
        known = (kind, tuple(f for f in kind.fields.values() if f.emit or f.null))
        _WRITTEN[id(kind)] = known
    return known[1]


def _zero_of(field: Field) -> Any:
    if field.null:
        return None
    if isinstance(field.type, Scalar):
        return ZERO[field.type.name]
    if isinstance(field.type, ObjectType):
        return empty_object(field.type)
    return None


def _mismatch(value: Any, kind: Type, at: Trail, go_field: _GoField) -> DecodeError:
    names: list[Any] = []
    while at:
        at, name = at
        names.append(name)
    # Go names fields, not the entries of lists and maps on the way.
    known: list[str] = [name for name in reversed(names) if type(name) in (str, _Embedded)]
    if go_field.field is not None and go_field.field.name in known:
        last = len(known) - 1 - known[::-1].index(go_field.field.name)
        known = known[: last + 1]
    path = ".".join(getattr(name, "go_name", name) for name in known)
    target = f"Go struct field {go_field.owner.name}.{path}" if known else "Go value"
    return DecodeError(
        f"json: cannot unmarshal {_json_kind(value, kind)} into {target}"
        f" of type {_go(kind, go_field)}",
        _unconvertible(value, kind, go_field),
    )


_REFLECTED = {bool: "bool", int: "int64", float: "float64", str: "string", list: "slice"}


def _unconvertible(value: Any, kind: Type, go_field: _GoField) -> str:
    """Return what Kubernetes reports of a value that it converts without JSON."""
    low, high = _INT_RANGE["int64"]
    if type(value) is int and not low <= value <= high:
        value = float(value)
    source = _REFLECTED.get(type(value), "map")
    if isinstance(kind, ObjectType):
        return f"cannot restore struct from: {source}"
    if isinstance(kind, MapOf):
        return f"cannot restore map from {source}"
    if isinstance(kind, ListOf) or kind.name == "bytes":
        return f"cannot restore slice from {source}"
    if kind.name not in ("string", "int32", "int64", "number", "bool"):
        return ""
    is_number = type(value) in (int, float)
    if is_number and (kind.name != "string" or type(value) is int) and kind.name != "bool":
        return f"cannot convert {source} to {_go(kind, go_field)}"
    return f"unrecognized type: {_GO_SCALAR.get(kind.name, 'string')}"


def _json_kind(value: Any, kind: Type) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        integral = isinstance(kind, Scalar) and kind.name in ("int32", "int64")
        return f"number {value!r}" if integral else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


_GO_SCALAR = {
    "int32": "int32",
    "int64": "int64",
    "number": "float64",
    "bool": "bool",
    "bytes": "[]uint8",
    "Quantity": "resource.Quantity",
}


_OWN_NAME = re.compile(r"(?<![\w.])[A-Z]\w*")


def _go(kind: Type, go_field: _GoField) -> str:
    if declared := _declared(kind, go_field):
        return declared
    if isinstance(kind, ListOf):
        return "[]" + _go(kind.item, go_field)
    if isinstance(kind, MapOf):
        return "map[string]" + _go(kind.value, go_field)
    if isinstance(kind, ObjectType):
        return f"{kind.package.rsplit('.', 1)[-1]}.{kind.name}"
    return _GO_SCALAR.get(kind.name, "string")


def _declared(kind: Type, go_field: _GoField) -> str:
    """Return the type that the table declares for a field or for the items of its list."""
    field = go_field.field
    if field is None or not field.go_type:
        return ""
    package = go_field.owner.package.rsplit(".", 1)[-1]
    declared = _OWN_NAME.sub(lambda match: f"{package}.{match[0]}", field.go_type)
    if kind is field.type:
        return declared
    return declared.removeprefix("[]") if isinstance(field.type, ListOf) else ""

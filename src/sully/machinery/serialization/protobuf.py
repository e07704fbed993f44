"""Kubernetes objects in protobuf, decoded into the same values as JSON bodies.

Go clients send the core kinds in this form by default. A message is walked along the
same field table as JSON (schema.py), which also has the numbers of the fields; protobuf_wire.py
takes bytes apart. The result is decoded by decode.py like any parsed body, so that defaults,
checks and error texts are the same. protobuf_writer.py is the opposite direction.
"""

import base64
import math
import struct
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from sully.machinery.formats.timestamps import format_micro_time, format_time
from sully.machinery.schema import Field, ListOf, MapOf, ObjectType, Scalar, Type
from sully.machinery.serialization import codec
from sully.machinery.serialization.protobuf_wire import (
    ProtobufError,
    WireType,
    fields_of,
    numbers_of,
    signed,
    text_of,
)

Obj = dict[str, Any]

MAGIC = b"k8s\x00"
MAX_DEPTH = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DOUBLE = struct.Struct("<d")
_EXPONENT = 1e21
_VARINTS = ("int32", "int64", "bool")


class Envelope(msgspec.Struct, frozen=True):
    """What surrounds every object: which kind it is, and its message."""

    api_version: str
    kind: str
    raw: bytes


def read_envelope(body: bytes) -> Envelope:
    """Decode the envelope of an object."""
    if not body:
        raise ProtobufError("empty data")
    if not body.startswith(MAGIC):
        prefix = " ".join(str(byte) for byte in MAGIC)
        raise ProtobufError(
            f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]"
        )
    outer = _chunks(body[len(MAGIC) :], (1, 2, 3))
    names = _chunks(outer.get(1, b""), (1, 2))
    if outer.get(3):
        raise ProtobufError(f"unsupported content encoding {text_of(outer[3])!r}")
    return Envelope(text_of(names.get(1, b"")), text_of(names.get(2, b"")), outer.get(2, b""))


Slot = Field | dict[int, "Slot"]
"""The field of a number, or a message that Go embeds, with its own numbers."""


@lru_cache(maxsize=4096)
def slots_of(kind: ObjectType) -> dict[int, Slot]:
    """Return the fields of a type by their numbers; empty if it cannot be sent in protobuf."""
    return _slots([(field.number, field) for field in kind.fields.values() if field.number])


def _slots(fields: list[tuple[tuple[int, ...], Field]]) -> dict[int, Slot]:
    slots: dict[int, Slot] = {}
    for first in {number[0] for number, _ in fields}:
        inside = [(number[1:], field) for number, field in fields if number[0] == first]
        slots[first] = _slots(inside) if inside[0][0] else inside[0][1]
    return slots


def read_message(raw: bytes, kind: ObjectType) -> Obj:
    """Read the message of a type into a plain value; an unknown number is an unknown field."""
    return _Reader().message(raw, kind, {}, 0)


class _Reader:
    """One walk over a message."""

    def __init__(self) -> None:
        self._left = codec.MAX_VALUES
        self._choices = 0  # messages around this one that are plain JSON for decode.py

    def message(self, raw: bytes, kind: ObjectType, into: Obj, depth: int) -> Obj:
        if depth > MAX_DEPTH:
            raise ProtobufError("exceeded max depth")
        self._fill(raw, slots_of(kind), into, depth)
        return into

    def _fill(self, raw: bytes, slots: dict[int, Slot], into: Obj, depth: int) -> None:
        for number, wire, content in fields_of(raw):
            self._count()
            slot = slots.get(number)
            if isinstance(slot, Field):
                self._put(slot, wire, content, into, depth)
            elif slot is not None:
                # What Go embeds is a message of its own here, but not in JSON.
                self._fill(_bytes(content, number), slot, into, depth)
            else:
                # Of a newer API, or of one that is off: an unknown field, as in JSON.
                into[f"protobuf:{number}"] = True

    def _count(self, values: int = 1) -> None:
        self._left -= values
        if self._left < 0:
            raise codec.TooManyValuesError

    def _put(
        self, field: Field, wire: WireType, content: int | bytes, into: Obj, depth: int
    ) -> None:
        kind, name = field.wire or field.type, field.name
        if isinstance(kind, ListOf):
            into.setdefault(name, []).extend(self._items(kind.item, wire, content, name, depth))
        elif isinstance(kind, MapOf):
            key, value = self._entry(kind.value, _bytes(content, name), name, depth)
            into.setdefault(name, {})[key] = value
        elif isinstance(kind, ObjectType) and not kind.either:
            # A repeated message is one message in two parts.
            self.message(_bytes(content, name), kind, into.setdefault(name, {}), depth + 1)
        else:
            into[name] = self._value(kind, content, name, depth)
            if self._choices and into[name] in _ZEROS and _leaves_out_zeros(field):
                del into[name]

    def _choice(self, raw: bytes, kind: ObjectType, depth: int) -> Any:
        self._choices += 1
        message = self.message(raw, kind, {}, depth)
        self._choices -= 1
        return _set_last(message, kind)

    def _items(
        self, kind: Type, wire: WireType, content: int | bytes, name: str, depth: int
    ) -> list[Any]:
        if isinstance(kind, Scalar) and kind.name in _VARINTS and wire is WireType.CHUNK:
            packed = _bytes(content, name)
            self._count(len(packed))
            return [_scalar(kind, number, name) for number in numbers_of(packed)]
        return [self._value(kind, content, name, depth)]

    def _entry(self, kind: Type, raw: bytes, name: str, depth: int) -> tuple[str, Any]:
        key, value = "", _missing(kind)
        for number, _, content in fields_of(raw):
            self._count()
            if number == 1:
                key = text_of(_bytes(content, name))
            elif number == 2:
                value = self._value(kind, content, name, depth)
        return key, value

    def _value(self, kind: Type, content: int | bytes, name: str, depth: int) -> Any:
        if isinstance(kind, Scalar):
            return _scalar(kind, content, name)
        raw = _bytes(content, name)
        if isinstance(kind, ObjectType):
            if kind.either:
                return self._choice(raw, kind, depth + 1)
            return self.message(raw, kind, {}, depth + 1)
        # A list or map inside a list or map has no place in protobuf: Go wraps it in a message.
        inner: Obj = {}
        self._fill(raw, {1: Field("items", kind)}, inner, depth + 1)
        return inner.get("items", _missing(kind))


_ZEROS = ("", 0, False)


def _leaves_out_zeros(field: Field) -> bool:
    """Report whether JSON has no zero of a field, which Go always writes here."""
    is_plain = isinstance(field.type, Scalar) and field.type.name in (*_VARINTS, "string", "number")
    return is_plain and not (field.ptr or field.emit or field.null)


def _set_last(message: Obj, kind: ObjectType) -> Any:
    """Return the value in place of a message that has one of several."""
    for name in reversed(kind.order):
        if name in message:
            return message[name]
    return False if kind.fields[kind.order[0]].type == Scalar("bool") else None


def _missing(kind: Type) -> Any:
    """Return what an entry without a value has."""
    if isinstance(kind, Scalar):
        return _scalar(kind, 0 if kind.name in _VARINTS else b"", "")
    return [] if isinstance(kind, ListOf) else {}


def _scalar(kind: Scalar, content: int | bytes, name: str) -> Any:
    if kind.name in _VARINTS:
        if not isinstance(content, int):
            raise _wrong(name)
        return bool(content) if kind.name == "bool" else signed(content, int(kind.name[3:]))
    raw = _bytes(content, name)
    match kind.name:
        case "number":
            return _number(raw, name)
        case "string":
            return text_of(raw)
        case "bytes":
            return base64.b64encode(raw).decode()
        case "Time" | "MicroTime":
            return _time(raw, micro=kind.name == "MicroTime")
        case "Quantity":
            return text_of(_chunks(raw, (1,)).get(1, b"0"))
        case "IntOrString":
            return _int_or_string(raw)
        case "object":
            return _raw_value(_chunks(raw, (1,)).get(1, b""))
        case _:
            raise ProtobufError(f"field {name} cannot be written in protobuf")


def _number(raw: bytes, name: str) -> float:
    if len(raw) != _DOUBLE.size:
        raise _wrong(name)
    number: float = _DOUBLE.unpack(raw)[0]
    if not math.isfinite(number):
        raise ProtobufError(f"field {name} has no number")
    # JSON writes a whole number without a fraction, up to where Go writes an exponent.
    return int(number) if number.is_integer() and abs(number) < _EXPONENT else number


def _time(raw: bytes, *, micro: bool) -> str | None:
    if not raw:
        return None  # how Go writes the time that is not set
    parts = {number: content for number, _, content in fields_of(raw) if isinstance(content, int)}
    seconds, nanos = signed(parts.get(1, 0), 64), signed(parts.get(2, 0), 32)
    try:
        # JSON has no finer times than these, so the rest must not be kept either.
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000 if micro else 0)
    except OverflowError:
        raise ProtobufError("time out of range") from None
    return format_micro_time(moment) if micro else format_time(moment)


def _int_or_string(raw: bytes) -> int | str:
    parts: dict[int, int | bytes] = {number: content for number, _, content in fields_of(raw)}
    is_text, number, text = parts.get(1, 0), parts.get(2, 0), parts.get(3, b"")
    if not (isinstance(is_text, int) and isinstance(number, int) and isinstance(text, bytes)):
        raise _wrong("IntOrString")
    if is_text not in (0, 1):
        raise ProtobufError("impossible IntOrString.Type")
    return text_of(text) if is_text else signed(number, 32)


def _raw_value(raw: bytes) -> Any:
    """Read JSON that travels inside a message: driver parameters, sets of managed fields."""
    if not raw.strip():
        return None
    try:
        return codec.parse_json(raw)[0]
    except codec.BodyError as error:
        raise ProtobufError(str(error)) from None


def _chunks(raw: bytes, numbers: tuple[int, ...]) -> dict[int, bytes]:
    chunks: dict[int, bytes] = {}
    for number, _, value in fields_of(raw):
        if number in numbers:
            chunks[number] = _bytes(value, number)
    return chunks


def _bytes(content: int | bytes, name: object) -> bytes:
    if not isinstance(content, bytes):
        raise _wrong(name)
    return content


def _wrong(name: object) -> ProtobufError:
    return ProtobufError(f"proto: wrong wireType for field {name}")

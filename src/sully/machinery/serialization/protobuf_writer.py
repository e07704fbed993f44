"""Kubernetes objects to protobuf, from the same values as JSON responses; protobuf.py reads them.

A writer is compiled once per type from its field table. Zero values are left out where JSON leaves
them out: Go reads a missing field as zero.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from sully.machinery.formats.timestamps import parse_micro_time, parse_time
from sully.machinery.schema import Field, ListOf, MapOf, ObjectType, Scalar, Type
from sully.machinery.serialization.codec import to_json
from sully.machinery.serialization.protobuf import MAGIC, slots_of

Obj = Mapping[str, Any]
Write = Callable[[Any], bytes]

_CHUNK: Final = 2
_EIGHT: Final = 1
_WHOLE: Final = 2**64 - 1
_SHORT: Final = tuple(bytes((number,)) for number in range(128))


def write_message(kind: ObjectType, obj: Obj) -> bytes:
    """Return the message of an object, without its envelope."""
    return _message_writer(kind)(obj)


def in_envelope(api_version: str, kind: str, message: bytes) -> bytes:
    """Put the envelope around the message of an object."""
    named = _chunk(1, api_version.encode()) + _chunk(2, kind.encode())
    return MAGIC + _chunk(1, named) + _chunk(2, message) + _chunk(3, b"") + _chunk(4, b"")


def write_list(metadata: bytes, items: Iterable[bytes]) -> bytes:
    """Return the message of a list from those of its metadata and items."""
    tag = _tag(2, _CHUNK)
    parts = [_chunk(1, metadata)]
    for item in items:
        parts += (tag, _size(item), item)
    return b"".join(parts)


def write_watch_event(event: str, embedded: bytes) -> bytes:
    """Return an event of a watch, with its length in front; the object is in its envelope."""
    message = _chunk(1, event.encode()) + _chunk(2, _chunk(1, embedded))
    return len(message).to_bytes(4, "big") + message


@lru_cache(maxsize=4096)
def is_writable(kind: ObjectType) -> bool:
    """Report whether a type has a form in protobuf."""
    return bool(slots_of(kind))


@lru_cache(maxsize=4096)
def _message_writer(kind: ObjectType) -> Write:
    return _struct_writer([(field.number, field) for field in kind.fields.values() if field.number])


def _inside(
    fields: list[tuple[tuple[int, ...], Field]], outer: int
) -> list[tuple[tuple[int, ...], Field]]:
    return [(n[1:], field) for n, field in fields if len(n) > 1 and n[0] == outer]


def _struct_writer(fields: list[tuple[tuple[int, ...], Field]]) -> Write:
    """Return what writes a message with these fields, and the messages that Go embeds in it."""
    plain: dict[str, Write] = {}
    embedded: dict[str, int] = {}
    for number, field in fields:
        if len(number) == 1:
            plain[field.name] = _field_writer(number[0], field.wire or field.type)
        else:
            embedded[field.name] = number[0]
    inner = {outer: _struct_writer(_inside(fields, outer)) for outer in set(embedded.values())}

    def write(obj: Obj) -> bytes:
        parts: list[bytes] = []
        inside: dict[int, dict[str, Any]] = {}
        for name, value in obj.items():
            if value is None:
                continue
            writer = plain.get(name)
            if writer is not None:
                parts.append(writer(value))
            elif name in embedded:
                inside.setdefault(embedded[name], {})[name] = value
        for outer, values in inside.items():
            parts.append(_chunk(outer, inner[outer](values)))
        return b"".join(parts)

    return write


def _field_writer(number: int, kind: Type) -> Write:
    if isinstance(kind, ListOf):
        item = _value_writer(number, kind.item)
        return lambda values: b"".join([item(value) for value in values])
    if isinstance(kind, MapOf):
        entry = _value_writer(2, kind.value)
        tag = _tag(number, _CHUNK)

        def write_entries(values: Mapping[str, Any]) -> bytes:
            return b"".join(
                [
                    tag + _sized(_chunk(1, key.encode()) + entry(value))
                    for key, value in values.items()
                ]
            )

        return write_entries
    return _value_writer(number, kind)


def _value_writer(number: int, kind: Type) -> Write:
    """Return what writes one value with its number: of a field, an item or an entry."""
    if isinstance(kind, Scalar):
        return _scalar_writer(number, kind.name)
    tag = _tag(number, _CHUNK)
    if isinstance(kind, ObjectType):
        # Types refer to themselves, so the writer of a message is looked up when it is needed.
        if kind.either:
            return lambda value: tag + _sized(_message_writer(kind)(_in_field(kind, value)))
        return lambda value: tag + _sized(_message_writer(kind)(value))
    # A list or map inside a list or map: Go wraps it in a message.
    inner = _field_writer(1, kind)
    return lambda value: tag + _sized(inner(value))


def _in_field(kind: ObjectType, value: Any) -> Obj:
    """Put a value into the field of its type."""
    names = {_python_type(field.type): name for name, field in kind.fields.items()}
    # Go allows values wherever it has a schema for them.
    allowed = {names[bool]: True} if bool in names else {}
    name = names.get(type(value))
    return {**allowed, name: value} if name else allowed


def _python_type(kind: Type) -> type:
    if isinstance(kind, ListOf):
        return list
    return bool if isinstance(kind, Scalar) else dict


def _scalar_writer(number: int, name: str) -> Write:
    if name in ("int32", "int64", "bool"):
        tag = _tag(number, 0)
        return lambda value: tag + varint(int(value) & _WHOLE)
    if name == "number":
        tag = _tag(number, _EIGHT)
        return lambda value: tag + struct.pack("<d", value)
    tag = _tag(number, _CHUNK)
    content = _CONTENTS.get(name)
    if content is None:
        raise ValueError(f"{name} has no form in protobuf")
    return lambda value: tag + _sized(content(value))


def _time(text: str) -> bytes:
    return _varint_field(1, int(parse_time(text).timestamp()))


def _micro_time(text: str) -> bytes:
    moment = parse_micro_time(text)
    seconds = int(moment.replace(microsecond=0).timestamp())
    return _varint_field(1, seconds) + _varint_field(2, moment.microsecond * 1000)


def _int_or_string(value: int | str) -> bytes:
    if isinstance(value, str):
        return _varint_field(1, 1) + _chunk(3, value.encode())
    return _varint_field(1, 0) + _varint_field(2, value)


_CONTENTS: Final[dict[str, Write]] = {
    "string": lambda value: value.encode(),
    "bytes": base64.b64decode,
    "Time": _time,
    "MicroTime": _micro_time,
    "Quantity": lambda value: _chunk(1, str(value).encode()),
    "IntOrString": _int_or_string,
    "object": lambda value: _chunk(1, to_json(value)),
}


def _varint_field(number: int, value: int) -> bytes:
    return _tag(number, 0) + varint(value & _WHOLE)


def _chunk(number: int, content: bytes) -> bytes:
    return _tag(number, _CHUNK) + _sized(content)


def _sized(content: bytes) -> bytes:
    return _size(content) + content


def _size(content: bytes) -> bytes:
    size = len(content)
    return _SHORT[size] if size < 128 else varint(size)


def _tag(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


def varint(value: int) -> bytes:
    """Encode a number that is not negative in base 128."""
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)

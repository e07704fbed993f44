"""Protobuf's outermost layer: numbered values in a row, without any idea what they mean.

Bytes come from anyone, so nothing is believed: a length that points past the end, a number that
never ends or an unused wire type becomes a `ProtobufError` with a text for the client.
"""

from collections.abc import Iterator
from enum import IntEnum

_LONGEST = 10  # bytes of a 64-bit number
_WHOLE = 2**64 - 1
_LAST_NUMBER = 2**29 - 1


class ProtobufError(ValueError):
    """A body that is not a protobuf message of the kind it should be."""


class WireType(IntEnum):
    """How a value is written."""

    VARINT = 0
    EIGHT = 1
    CHUNK = 2
    FOUR = 5


_FIXED = {WireType.EIGHT: 8, WireType.FOUR: 4}


def fields_of(raw: bytes) -> Iterator[tuple[int, WireType, int | bytes]]:
    """Go through the fields of a message: number, how it is written, value."""
    at, end = 0, len(raw)
    while at < end:
        tag, at = _varint(raw, at)
        number = tag >> 3
        if not 1 <= number <= _LAST_NUMBER:
            raise ProtobufError(f"proto: illegal tag {number} (wire type {tag & 7})")
        try:
            wire = WireType(tag & 7)
        except ValueError:
            raise ProtobufError(f"proto: illegal wireType {tag & 7}") from None
        if wire is WireType.VARINT:
            value, at = _varint(raw, at)
            yield number, wire, value
            continue
        if wire is WireType.CHUNK:
            size, at = _varint(raw, at)
        else:
            size = _FIXED[wire]
        if size > end - at:
            raise ProtobufError("unexpected EOF")
        yield number, wire, raw[at : at + size]
        at += size


def numbers_of(raw: bytes) -> Iterator[int]:
    """Go through numbers that are packed into one value."""
    at = 0
    while at < len(raw):
        value, at = _varint(raw, at)
        yield value


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = 0
    for step in range(_LONGEST):
        if at >= len(raw):
            raise ProtobufError("unexpected EOF")
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            return value & _WHOLE, at
    raise ProtobufError("proto: integer overflow")


def signed(value: int, bits: int) -> int:
    """Read a number as two's complement of a width; higher bits are cut off, as Go does."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def text_of(raw: bytes) -> str:
    """Read text; bytes that are not UTF-8 are replaced, as in JSON bodies."""
    return raw.decode("utf-8", errors="replace")

"""The values of string, bytes and number tokens.

A neighbour of the lexer: it knows where a literal ends, this module knows what it means.
"""

from __future__ import annotations

import re
from typing import Final

from sully.machinery.cel.values import MAX_INT, MAX_UINT, MIN_INT, UInt

_SIMPLE: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\\'\"`?])|([0-3][0-7]{2})|[xX]([0-9a-fA-F]{2})"
    r"|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))"
)


class LiteralError(ValueError):
    """A token that looks like a literal but has no value."""


def int_value(text: str) -> int:
    """Return the value of an integer, which must fit into 64 bits."""
    value = _whole(text)
    if value is None or not MIN_INT <= value <= MAX_INT:
        raise LiteralError("invalid int literal")
    return value


def _whole(text: str) -> int | None:
    try:
        return int(text, 16) if "x" in text else int(text)
    except ValueError:
        # Python reads a limited number of digits, far beyond 64 bits.
        return None


def uint_value(text: str) -> UInt:
    """Return the value of an unsigned integer such as `7u`."""
    value = _whole(text[:-1])
    if value is None or not 0 <= value <= MAX_UINT:
        raise LiteralError("invalid uint literal")
    return UInt(value)


def float_value(text: str) -> float:
    """Return the value of a floating point number."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise LiteralError("invalid double literal")
    return value


def string_value(text: str) -> str:
    """Return the value of a string token with its quotes and prefixes."""
    body, raw = _body(text)
    return body if raw else _ESCAPE.sub(_character, body)


def bytes_value(text: str) -> bytes:
    """Return the value of a bytes token; its numeric escapes are bytes, not characters."""
    body, raw = _body(text)
    if raw:
        return body.encode()
    out, last = bytearray(), 0
    for escape in _ESCAPE.finditer(body):
        out += body[last : escape.start()].encode()
        out += _octets(escape)
        last = escape.end()
    return bytes(out + body[last:].encode())


def _body(text: str) -> tuple[str, bool]:
    """Return what is between the quotes, and whether escapes are to be left alone."""
    prefix = text[: min(i for i in (text.find("'"), text.find('"')) if i >= 0)]
    quoted = text[len(prefix) :]
    width = 3 if len(quoted) >= 6 and quoted[:3] in ('"""', "'''") else 1
    return quoted[width:-width], "r" in prefix.lower()


def _character(escape: re.Match[str]) -> str:
    simple, octal, byte, short, long = escape.groups()
    if simple:
        return _SIMPLE[simple]
    code = int(octal, 8) if octal else int(byte or short or long, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise LiteralError("invalid unicode code point")
    return chr(code)


def _octets(escape: re.Match[str]) -> bytes:
    simple, octal, byte, short, long = escape.groups()
    if simple:
        return _SIMPLE[simple].encode()
    if short or long:
        raise LiteralError("unable to unescape string")
    return bytes((int(octal, 8) if octal else int(byte, 16),))

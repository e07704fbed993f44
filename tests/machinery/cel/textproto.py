"""A reader for protobuf's text format, as far as the conformance cases of CEL use it.

Messages become dicts whose values are lists, since any field may be repeated.
"""

from __future__ import annotations

import re
from typing import Any

_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"""|(?P<bracketed>\[[A-Za-z][\w./]*\])|(?P<word>[-+]?[\w.]+(?:[-+]\d+)?)|(?P<mark>[{}<>\[\]:,;])"""
)
_ESCAPE = re.compile(
    rb"\\([0-7]{1,3}|[xX][0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.S
)
_SIMPLE = {
    b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"
}  # fmt: skip

Message = dict[str, list[Any]]


def parse(text: str) -> Message:
    """Read a whole file."""
    tokens: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None, text[position : position + 40]
        if match.lastgroup:
            tokens.append((match.lastgroup, match.group()))
        position = match.end()
    message, rest = _message(tokens, 0, None)
    assert rest == len(tokens)
    return message


def _message(tokens: list[tuple[str, str]], at: int, end: str | None) -> tuple[Message, int]:
    message: Message = {}
    while at < len(tokens) and tokens[at][1] != end:
        kind, name = tokens[at]
        assert kind in ("word", "bracketed"), tokens[at]
        at += 1
        if tokens[at][1] == ":":
            at += 1
        value, at = _value(tokens, at)
        message.setdefault(name.strip("[]"), []).extend(
            value if isinstance(value, _Many) else [value]
        )
        while at < len(tokens) and tokens[at][1] in (",", ";"):
            at += 1
    return message, at + (end is not None)


class _Many(list[Any]):
    """The values of a field written as a list."""


def _value(tokens: list[tuple[str, str]], at: int) -> tuple[Any, int]:
    kind, text = tokens[at]
    if text == "{":
        return _message(tokens, at + 1, "}")
    if text == "[":
        return _list(tokens, at + 1)
    if kind == "string":
        joined = b""
        while at < len(tokens) and tokens[at][0] == "string":
            joined += _ESCAPE.sub(_unescape, tokens[at][1][1:-1].encode())
            at += 1
        return joined, at
    return text, at + 1


def _list(tokens: list[tuple[str, str]], at: int) -> tuple[Any, int]:
    many = _Many()
    while tokens[at][1] != "]":
        value, at = _value(tokens, at)
        many.append(value)
        if tokens[at][1] == ",":
            at += 1
    return many, at + 1


def _unescape(match: re.Match[bytes]) -> bytes:
    body = match.group(1)
    if body[:1] in b"01234567":
        return bytes([int(body, 8)])
    if body[:1] in b"xX":
        return bytes([int(body[1:], 16)])
    if body[:1] in b"uU" and len(body) > 1:
        return chr(int(body[1:], 16)).encode()
    return _SIMPLE.get(body, body)

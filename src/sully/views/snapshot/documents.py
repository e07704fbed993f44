"""Reads the documents of a file, in any of its formats; file.py interprets them.

JSON, also several values one after the other as `jq -c` and repeated `kubectl get -o json` write
them, or YAML; either may be compressed with gzip, or in the encoding of a Windows shell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from sully.machinery.serialization.codec import BodyError, from_json

Document = tuple[Any, list[str]]
"""A value, and the lines of its duplicate keys, of which the last is used."""

_SPACES = re.compile(r"\s*")
_GZIP = b"\x1f\x8b"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class TextError(ValueError):
    """A file that is neither JSON nor YAML."""


def read_documents(data: bytes) -> Iterator[Document]:
    """Yield the documents of a file."""
    data = _to_utf8(_decompress(data))
    if data.lstrip()[:1] in (b"{", b"["):
        values = _json(data)
        if values is not None:
            # Much faster than YAML, and the format of large snapshots.
            yield from ((value, []) for value in values)
            return
    from sully.machinery.serialization.yamltext import read_all  # late: not needed for JSON

    try:
        yield from read_all(data.decode())
    except BodyError as error:
        raise TextError(f"invalid YAML: {str(error).removeprefix('yaml: ')}") from error


def _decompress(data: bytes) -> bytes:
    if not data.startswith(_GZIP):
        return data
    import gzip
    import zlib

    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise TextError(f"invalid gzip file: {error}") from error


def _to_utf8(data: bytes) -> bytes:
    """Return a text in UTF-8, without a byte order mark."""
    try:
        text = data.decode("utf-16" if data.startswith(_UTF16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise TextError(f"not a text file: {error}") from error
    return text.encode()


def _json(data: bytes) -> list[Any] | None:
    """Return the values of JSON; None if it is not JSON: YAML can begin with a brace, too."""
    try:
        return [from_json(data)]
    except (ValueError, RecursionError):
        pass
    text, read = data.decode(), json.JSONDecoder().raw_decode
    values, at = [], _skip_spaces(text, 0)
    try:
        while at < len(text):
            value, at = read(text, at)
            values.append(value)
            at = _skip_spaces(text, at)
    except (ValueError, RecursionError):
        return None
    return values


def _skip_spaces(text: str, at: int) -> int:
    spaces = _SPACES.match(text, at)
    return spaces.end() if spaces is not None else at

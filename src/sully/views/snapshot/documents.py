"""What stands in a file of objects, document by document, whichever way it was written.

JSON, also several values one after the other as `jq -c` and repeated `kubectl get -o json` leave
them; YAML; either packed by gzip, or in the encoding that a Windows shell redirects into. What the
documents mean is for file.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from sully.machinery.codec import BodyError, from_json

Document = tuple[Any, list[str]]
"""A value, and the paths of keys that stand in it more than once, of which the last counts."""

_SPACES = re.compile(r"\s*")
_GZIP = b"\x1f\x8b"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class TextError(ValueError):
    """A file that is neither JSON nor YAML."""


def read_documents(data: bytes) -> Iterator[Document]:
    """Yield the documents of a file."""
    data = _plain(_unpacked(data))
    if data.lstrip()[:1] in (b"{", b"["):
        found = _json(data)
        if found is not None:
            # Quicker by far, and JSON is what large snapshots are kept in.
            yield from ((each, []) for each in found)
            return
    from sully.machinery.yamltext import read_all  # late: YAML is not read where JSON is given

    try:
        yield from read_all(data.decode())
    except BodyError as error:
        raise TextError(f"it is no YAML: {str(error).removeprefix('yaml: ')}") from error


def _unpacked(data: bytes) -> bytes:
    if not data.startswith(_GZIP):
        return data
    import gzip
    import zlib

    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise TextError(f"it cannot be unpacked: {error}") from error


def _plain(data: bytes) -> bytes:
    """Return a text in UTF-8, without the mark that tells how it is written."""
    try:
        text = data.decode("utf-16" if data.startswith(_UTF16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise TextError(f"it is no text: {error}") from error
    return text.encode()


def _json(data: bytes) -> list[Any] | None:
    """Return the values of JSON; None if it is not that: YAML can begin with a brace, too."""
    try:
        return [from_json(data)]
    except (ValueError, RecursionError):
        pass
    text, read = data.decode(), json.JSONDecoder().raw_decode
    found, at = [], _behind_spaces(text, 0)
    try:
        while at < len(text):
            value, at = read(text, at)
            found.append(value)
            at = _behind_spaces(text, at)
    except (ValueError, RecursionError):
        return None
    return found


def _behind_spaces(text: str, at: int) -> int:
    found = _SPACES.match(text, at)
    return found.end() if found is not None else at

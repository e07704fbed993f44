"""The string extensions, version 2 (and optionally `reverse` of version 3).

Positions count characters, not bytes. `format` has its own module.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sully.machinery.cel.declarations import Library, library
from sully.machinery.cel.errors import EvaluationError, NoSuchOverloadError
from sully.machinery.cel.library.formatting import format_text
from sully.machinery.cel.library.standard import Row
from sully.machinery.cel.values import checked_length, checked_size

_UPPER: Final = str.maketrans({chr(code): chr(code - 32) for code in range(ord("a"), ord("z") + 1)})
_LOWER: Final = str.maketrans({chr(code): chr(code + 32) for code in range(ord("A"), ord("Z") + 1)})
_ESCAPES: Final = str.maketrans(
    {
        "\a": r"\a",
        "\b": r"\b",
        "\f": r"\f",
        "\n": r"\n",
        "\r": r"\r",
        "\t": r"\t",
        "\v": r"\v",
        "\\": r"\\",
        '"': r"\"",
    }
)


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text.find(part, start)


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is not None and not 0 <= start <= len(text):
        raise _out_of_range(start)
    if not part:
        return len(text) if start is None else start
    return text.rfind(part) if start is None else text.rfind(part, 0, start + len(part))


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    count = text.count(old) if limit < 0 else min(limit, text.count(old))
    checked_length(len(text) + count * (len(new) - len(old)))
    return text.replace(old, new, count)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    count = text.count(separator) + 1
    checked_size(count if limit < 0 else min(limit, count))
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if limit < 0 or limit >= len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


def _substring(text: str, start: int, end: int | None = None) -> str:
    for index in (start,) if end is None else (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    if end is not None and start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    return text[start:end]


def _join(parts: list[str], separator: str = "") -> str:
    if not all(isinstance(part, str) for part in parts):
        raise NoSuchOverloadError
    checked_length(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def _quote(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


# What Go and the language call white space.
_SPACE: Final = "".join(
    chr(code)
    for code in (
        *range(0x09, 0x0E),
        *(0x20, 0x85, 0xA0, 0x1680),
        *range(0x2000, 0x200B),
        *(0x2028, 0x2029, 0x202F, 0x205F, 0x3000),
    )
)


def _rows() -> Iterator[Row]:
    yield "string_char_at_int", "string:charAt(int) -> string", _char_at
    yield "string_index_of_string", "string:indexOf(string) -> int", _index_of
    yield "string_index_of_string_int", "string:indexOf(string, int) -> int", _index_of
    yield "string_last_index_of_string", "string:lastIndexOf(string) -> int", _last_index_of
    yield (
        "string_last_index_of_string_int",
        "string:lastIndexOf(string, int) -> int",
        _last_index_of,
    )
    yield "string_lower_ascii", "string:lowerAscii() -> string", lambda t: t.translate(_LOWER)
    yield "string_upper_ascii", "string:upperAscii() -> string", lambda t: t.translate(_UPPER)
    yield "string_replace_string_string", "string:replace(string, string) -> string", _replace
    yield (
        "string_replace_string_string_int",
        "string:replace(string, string, int) -> string",
        _replace,
    )
    yield "string_split_string", "string:split(string) -> list(string)", _split
    yield "string_split_string_int", "string:split(string, int) -> list(string)", _split
    yield "string_substring_int", "string:substring(int) -> string", _substring
    yield "string_substring_int_int", "string:substring(int, int) -> string", _substring
    yield "string_trim", "string:trim() -> string", lambda text: text.strip(_SPACE)
    yield "list_join", "list(string):join() -> string", _join
    yield "list_join_string", "list(string):join(string) -> string", _join
    yield "string_format", "string:format(list(dyn)) -> string", format_text
    yield "strings_quote", "strings.quote(string) -> string", _quote


def strings() -> Library:
    """Return the library of string functions."""
    return library(_rows())


def reversal() -> Library:
    """Return `reverse`, which came with a later version than Kubernetes uses."""
    return library([("string_reverse", "string:reverse() -> string", lambda text: text[::-1])])

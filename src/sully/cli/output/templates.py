"""`-o jsonpath=` and `-o custom-columns=`: parts of what `-o json` prints, as kubectl prints them.

Paths are those of definitions (customresources/jsonpath.py). Templates have paths in braces, quoted
text, and {range} ... {end}. Whatever else kubectl knows, such as `..name` and slices, is refused
before a server is asked.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from sully.cli.command import CommandError
from sully.cli.output.tables import Column, Table
from sully.machinery.customresources import jsonpath
from sully.machinery.serialization.codec import to_json

JSONPATH: Final = "jsonpath="
COLUMNS: Final = "custom-columns="
_ACTION: Final = re.compile(r"""\{((?:[^{}"']|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')*)\}""")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}
_NONE: Final = "<none>"


class _Text(msgspec.Struct, frozen=True):
    text: str


class _Path(msgspec.Struct, frozen=True):
    path: str


class _Range(msgspec.Struct, frozen=True):
    path: str
    body: "tuple[_Part, ...]"


_Part = _Text | _Path | _Range


def check(output: str) -> None:
    """Raise `ValueError` if an output format cannot be read."""
    if output.startswith(JSONPATH):
        _parse(output.removeprefix(JSONPATH))
    else:
        _columns(output.removeprefix(COLUMNS))


def print_template(value: Any, output: str, rows: Sequence[str] = (), *, titled: bool) -> None:
    """Print parts of a document; custom columns have a row for each entry of the lists `rows`."""
    # What a path leads to is what JSON has.
    document = msgspec.json.decode(to_json(value))
    if output.startswith(JSONPATH):
        sys.stdout.write("".join(_filled(_parse(output.removeprefix(JSONPATH)), document)))
        sys.stdout.flush()
        return
    columns = _columns(output.removeprefix(COLUMNS))
    cells = [[_cell(path, entry) for _, path in columns] for entry in _entries(document, rows)]
    if titled or cells:
        Table([Column(title, shrinks=1) for title, _ in columns], titled=titled).show(cells)


def print_template_line(value: Any, output: str) -> None:
    """Print parts of one of a stream of documents."""
    if output.startswith(COLUMNS):
        raise CommandError("--watch cannot be used with -o custom-columns; use -o jsonpath", code=2)
    print_template(value, output, titled=False)
    sys.stdout.write("\n")
    sys.stdout.flush()


def _entries(document: Any, rows: Sequence[str]) -> list[Any]:
    if rows:
        return [entry for name in rows for entry in document.get(name, ())]
    is_list = isinstance(document, dict) and document.get("kind") == "List"
    return document["items"] if is_list else [document]


# -- reading --------------------------------------------------------------------------------------


def _parse(template: str) -> tuple[_Part, ...]:
    open_ranges: list[tuple[str, list[_Part]]] = [("", [])]
    position = 0
    for match in _ACTION.finditer(template):
        open_ranges[-1][1].extend(_literal(template[position : match.start()]))
        position = match.end()
        action = match[1].strip()
        if action.startswith("range "):
            open_ranges.append((_path(action.removeprefix("range ")), []))
        elif action == "end":
            if len(open_ranges) == 1:
                raise ValueError("{end} without {range}")
            path, body = open_ranges.pop()
            open_ranges[-1][1].append(_Range(path, tuple(body)))
        elif action[:1] in ('"', "'"):
            text = re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[1]), action[1:-1])
            open_ranges[-1][1].append(_Text(text))
        else:
            open_ranges[-1][1].append(_Path(_path(action)))
    open_ranges[-1][1].extend(_literal(template[position:]))
    if len(open_ranges) > 1:
        raise ValueError("{range} without {end}")
    parts = tuple(open_ranges[0][1])
    if all(isinstance(part, _Text) for part in parts):
        raise ValueError("no path in braces (for example {.kind})")
    return parts


def _literal(text: str) -> list[_Part]:
    if "{" in text or "}" in text:
        raise ValueError(f'invalid braces at "{text}"')
    return [_Text(text)] if text else []


def _columns(spec: str) -> list[tuple[str, str]]:
    columns = []
    for column in spec.split(","):
        title, colon, path = column.partition(":")
        if not (title and colon and path):
            raise ValueError(f'invalid column "{column}" (NAME:PATH, for example NODE:.node)')
        columns.append((title, _path(path.removeprefix("{").removesuffix("}"))))
    return columns


def _path(text: str) -> str:
    """Return a path as definitions have it, without a root; a leading dot may be missing."""
    path = text.strip().removeprefix("$").removeprefix("@")
    path = path if path.startswith((".", "[")) or not path else f".{path}"
    try:
        jsonpath.parse(path)
    except jsonpath.JSONPathError as error:
        raise ValueError(f'path "{text.strip()}": {error}') from error
    return path


# -- printing -------------------------------------------------------------------------------------


def _filled(parts: Sequence[_Part], value: Any) -> Iterator[str]:
    for part in parts:
        match part:
            case _Text(text):
                yield text
            case _Path(path):
                yield " ".join(map(_text, jsonpath.find(path, value)))
            case _Range(path, body):
                for entry in jsonpath.find(path, value):
                    yield from _filled(body, entry)


def _cell(path: str, entry: Any) -> str:
    return ",".join(map(_text, jsonpath.find(path, entry))) or _NONE


def _text(value: Any) -> str:
    return value if isinstance(value, str) else to_json(value).decode()

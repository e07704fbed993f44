"""Warnings about formats that the schemas of a definition name and no value is checked against."""

from collections.abc import Iterable, Iterator
from typing import Any

from sully.machinery.customresources.formats import KNOWN, NUMERIC
from sully.machinery.serialization.gotext import quote

Obj = dict[str, Any]
_NUMBERS = {"integer": {"int32", "int64"}, "number": {"float", "double"}}
_LISTS = ("allOf", "anyOf", "oneOf")
_MAPS = ("properties", "patternProperties", "definitions")
_SCHEMAS = ("items", "not", "additionalProperties", "additionalItems")


def format_warnings(obj: Obj, old: Obj | None) -> Iterator[str]:
    """Warn about each unknown format that the stored definition does not have."""
    known = set() if old is None else set(_unrecognized(old))
    for name in dict.fromkeys(_unrecognized(obj)):
        if name not in known:
            yield f"unrecognized format {quote(name)}"


def _unrecognized(definition: Obj) -> Iterator[str]:
    for version in definition["spec"].get("versions") or ():
        # A stack and no recursion: schemas may be nested as deeply as bodies.
        schemas = [(version.get("schema") or {}).get("openAPIV3Schema")]
        while schemas:
            schema = schemas.pop()
            if isinstance(schema, dict):
                if "format" in schema and not _is_recognized(schema):
                    yield schema["format"]
                schemas.extend(reversed(list(_inside(schema))))


def _is_recognized(schema: Obj) -> bool:
    kind, name = schema.get("type", ""), schema["format"]
    if kind in ("", "string"):
        return name.replace("-", "") in _OF_STRINGS
    return name in _NUMBERS.get(kind, ())


_OF_STRINGS = {name.replace("-", "") for name in KNOWN - NUMERIC}


def _inside(schema: Obj) -> Iterable[Any]:
    for name in _SCHEMAS:
        yield schema.get(name)
    for name in _LISTS:
        yield from schema.get(name) or ()
    for name in _MAPS:
        parts = schema.get(name) or {}
        yield from (parts[key] for key in sorted(parts))

"""YAML bodies as plain JSON values, for codec.py.

The document is read event by event: a composer recurses as deep as a body nests, in C, and would
take the process down before anyone could report that it is too deep.
"""

import base64
import binascii
import re
import sys
from collections.abc import Iterator
from math import isinf
from typing import Any

import yaml
from yaml.resolver import Resolver

from sully.machinery.memo import memoized
from sully.machinery.serialization.codec import (
    MAX_DEPTH,
    MAX_REPEATED,
    BodyError,
    TooManyValuesError,
    Trail,
)
from sully.machinery.serialization.gotext import quote

# How many values the aliases of one document may expand to: a few lines can mean billions.
MAX_ALIASED = 20_000
# How many fields and items a body may have: half of what JSON may, which is read ten times faster.
MAX_VALUES = 25_000
# The library compares each directive with all before it.
MAX_DIRECTIVES = 100
_DIRECTIVE = re.compile("^\ufeff?%|[\r\n\x85\u2028\u2029]%")
_PREFIX = "tag:yaml.org,2002:"
_MERGE = f"{_PREFIX}merge"
# JSON and Go read these as numbers, YAML 1.1 as text.
_EXPONENT = re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)[eE][-+]?\d+", re.ASCII)
_OCTAL = re.compile(r"[-+]?0[oO][0-7]+", re.ASCII)
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_TYPED = ("null", "bool", "int", "float")
"""Tags that a text has to agree with."""
_resolver = Resolver()
_OPEN = object()
_KEY_STARTS = frozenset("yYnNoOtTfF0123456789+-")
_SHORT = 64
"""Texts up to this length are cached."""


def read(text: str) -> tuple[Any, list[str]]:
    """Return the value of the first document, and its repeated keys; others are ignored."""
    if text.count("%") > MAX_DIRECTIVES < len(_DIRECTIVE.findall(text)):
        raise BodyError(f"yaml: document contains more than {MAX_DIRECTIVES} directives")
    documents = _documents(text, MAX_VALUES)
    try:
        first = next(documents, None)
        result = (None, []) if first is None else (first.read(), first.repeated)
    except yaml.YAMLError as error:
        raise BodyError(_complaint(error)) from None
    return result


def read_all(text: str) -> Iterator[tuple[Any, list[str]]]:
    """Yield the value of each document, and the paths of repeated keys in it.

    For files of the user: they may have any number of values.
    """
    try:
        for document in _documents(text, sys.maxsize):
            yield document.read(), document.repeated
    except yaml.YAMLError as error:
        raise BodyError(_complaint(error)) from None


def _documents(text: str, limit: int) -> Iterator["_Document"]:
    """Yield the documents in a text; read each before the next."""
    events = yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    next(events)  # the stream
    while not isinstance(next(events), yaml.StreamEndEvent):
        yield _Document(events, limit)
        next(events)  # the end of the document


def _complaint(error: Exception) -> str:
    # Go's parser counts lines from 0 for grammar errors and from 1 for bad characters; the first
    # line is not named.
    line = getattr(getattr(error, "problem_mark", None), "line", 0)
    if line and isinstance(error, yaml.scanner.ScannerError):
        line += 1
    line = line or getattr(getattr(error, "context_mark", None), "line", 0)
    problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
    return f"yaml: line {line}: {problem}" if line else f"yaml: {problem}"


class _Document:
    """Turns the events of one document into plain values."""

    def __init__(self, events: Iterator[Any], limit: int) -> None:
        self._repeated: dict[str, None] = {}
        self._events = events
        self._anchors: dict[str, Any] = {}
        self._aliased = 0
        self._left = limit
        self._null_key = ""

    @property
    def repeated(self) -> list[str]:
        """Return which keys are repeated, each once and not too many."""
        return list(self._repeated)

    def read(self) -> Any:
        """Return the value of the document."""
        value = self._value(next(self._events), (), 0)
        if self._null_key:
            raise BodyError(self._null_key)
        return value

    def _value(self, event: Any, path: Trail, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise TooManyValuesError(MAX_VALUES)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(str(event.anchor))
        if depth > MAX_DEPTH:
            raise BodyError("exceeded max depth")
        if event.anchor is not None:
            self._anchors[event.anchor] = _OPEN
        if isinstance(event, yaml.ScalarEvent):
            value = _read_scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._sequence(path, depth)
        else:
            value = self._mapping(path, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = value
        return value

    def _alias(self, name: str) -> Any:
        if name not in self._anchors:
            raise BodyError(f"yaml: unknown anchor '{name}' referenced")
        if self._anchors[name] is _OPEN:
            raise BodyError(f"yaml: anchor '{name}' value contains itself")
        return self._copied(self._anchors[name])

    def _copied(self, value: Any) -> Any:
        """Copy the value of an alias: callers do not expect shared parts."""
        self._aliased += 1
        if self._aliased > MAX_ALIASED:
            raise BodyError("yaml: document contains excessive aliasing")
        if isinstance(value, dict):
            return {key: self._copied(item) for key, item in value.items()}
        return [self._copied(item) for item in value] if isinstance(value, list) else value

    def _sequence(self, path: Trail, depth: int) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._value(event, (path, len(items)), depth + 1))
        return items

    def _mapping(self, path: Trail, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                key_value = self._value(event, path, depth + 1)
                raise BodyError(f"yaml: invalid map key: {go_syntax(key_value)}")
            key = _key(event)
            value = self._value(next(self._events), (path, key), depth + 1)
            if key in _NULLS and _is_null(event):
                self._null_key = self._null_key or _unsupported_key(value)
            # Only for this text: the check takes longer than all the rest.
            if key == "<<" and _tag(event) == _MERGE:
                merged |= _merged(value)
                continue
            if key in mapping and len(self._repeated) < MAX_REPEATED:
                line = event.start_mark.line + 1 if event.start_mark else 0
                self._repeated[f"line {line}: key {quote(key)} already set in map"] = None
            mapping[key] = value
        # The keys of a mapping override merged ones.
        return {**merged, **mapping} if merged else mapping


def _key(event: Any) -> str:
    """Return a key as a text: only booleans and whole numbers change on their way through JSON."""
    key = str(event.value)
    if event.tag is not None or not event.implicit[0] or key[:1] not in _KEY_STARTS:
        return key
    value = _read_plain(key)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else key


def _is_null(event: Any) -> bool:
    return _read_scalar(event) is None


def _unsupported_key(value: Any) -> str:
    # A formatting error of the real one, which clients see.
    return f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {go_syntax(value)}"


def go_syntax(value: Any, *, nested: bool = False) -> str:
    """Return a value as Go prints it in its own syntax."""
    match value:
        case None:
            return "interface {}(nil)" if nested else "<nil>"
        case dict():
            items = (
                f"{go_syntax(k)}:{go_syntax(v, nested=True)}" for k, v in sorted(value.items())
            )
            return "map[interface {}]interface {}{" + ", ".join(items) + "}"
        case list():
            return "[]interface {}{" + ", ".join(go_syntax(v, nested=True) for v in value) + "}"
        case bool():
            return "true" if value else "false"
        case str():
            return quote(value)
        case _:
            return str(value)


def _read_scalar(event: Any) -> Any:
    plain, quoted = event.implicit
    if event.tag is None and plain and len(event.value) <= _SHORT:
        return _read_plain(event.value)
    if event.tag is None and quoted:
        return event.value
    tag = _tag(event).removeprefix(_PREFIX)
    if event.tag is not None and tag in _TYPED:
        _check_tag(event.value, tag)
    return _scalar(event.value, tag)


def _check_tag(text: str, tag: str) -> None:
    plain = _tag(yaml.ScalarEvent(None, None, (True, False), text)).removeprefix(_PREFIX)
    if plain != tag and (plain, tag) != ("int", "float"):
        raise BodyError(f"yaml: cannot decode !!{plain} `{text}` as a !!{tag}")


@memoized(10_000)
def _read_plain(text: str) -> Any:
    """Return the value of a plain scalar; objects repeat the same ones many times."""
    return _scalar(text, _tag(yaml.ScalarEvent(None, None, (True, False), text)))


def _tag(event: Any) -> str:
    if event.tag is not None and event.tag != "!":
        return str(event.tag)
    if event.implicit[0] and _EXPONENT.fullmatch(event.value):
        return "float"
    if event.implicit[0] and _OCTAL.fullmatch(event.value):
        return "int"
    if event.implicit[0] and event.value in _LETTERS:
        return "bool"
    return str(_resolver.resolve(yaml.ScalarNode, event.value, event.implicit))  # type: ignore[no-untyped-call]  # the library has no types


def _merged(value: Any) -> dict[str, Any]:
    maps = value if isinstance(value, list) else [value]
    if not all(isinstance(item, dict) for item in maps):
        raise BodyError("yaml: map merge requires map or sequence of maps as the value")
    mapping: dict[str, Any] = {}
    for item in reversed(maps):
        mapping |= item
    return mapping


def _scalar(text: str, full_tag: str) -> Any:
    tag = full_tag.removeprefix(_PREFIX)
    if tag == "binary":
        return _binary(text)
    if tag == "null":
        return None
    if tag == "bool":
        # YAML 1.1 reads yes and on as true, but only unquoted true and false are JSON to Go.
        lowered = text.lower()
        return lowered in ("true", "yes", "on", "y") if lowered in _BOOLS else text
    if tag == "int":
        return _yaml_int(text)
    if tag == "float":
        return _yaml_float(text)
    return text


def _binary(text: str) -> str:
    try:
        return base64.b64decode(text.replace("\n", ""), validate=True).decode(errors="replace")
    except binascii.Error:
        raise BodyError("yaml: !!binary value contains invalid base64 data") from None


_LETTERS = ("y", "Y", "n", "N")
_BOOLS = ("true", "false", "yes", "no", "on", "off", "y", "n")


def _yaml_int(text: str) -> Any:
    digits = text.replace("_", "")
    try:
        if digits.lstrip("+-").startswith("0") and digits.lstrip("+-").isdigit():
            value = int(digits, 8) if len(digits.lstrip("+-")) > 1 else 0
        else:
            value = int(digits, 0)
        float(value)
    except (ValueError, OverflowError):
        # A number that no float holds is a text to Go.
        return text
    return value


def _yaml_float(text: str) -> Any:
    plain = text.replace("_", "").lower()
    if plain.lstrip("+-") in (".inf", ".nan"):
        named = "NaN" if plain.endswith("nan") else "-Inf" if plain[0] == "-" else "+Inf"
        raise BodyError(f"json: unsupported value: {named}")
    try:
        value = float(plain)
    except ValueError:
        return text
    if isinf(value):
        # A number that no float holds is a text to Go.
        return text
    # On its way through JSON a whole number loses its point.
    return int(value) if value.is_integer() and abs(value) < 1e21 else value

"""Bytes ↔ plain values: JSON and YAML bodies in, JSON and YAML answers out.

Bodies come from anyone: whatever is wrong with them becomes a `BodyError` with a text for the
client, never an exception of a parser. YAML is read by yamltext.py; which fields an object may have
is decode.py's business.
"""

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import msgspec

from sully.machinery.serialization.jsonsyntax import syntax_problem

MAX_DEPTH = 200
MAX_VALUES = 50_000
"""How many fields and list items a body may have: reading one takes longer than sending it."""
MAX_REPEATED = 100
"""How many repeated keys are reported, as Kubernetes."""
_MAX_POSITIONS = 2000
_MAX_PATH = 1024
Trail = tuple[Any, ...]  # (parent trail, name); a linked list, since most walks never print it
_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(rb"\\[uU](?:0000)?[dD][89a-fA-F]")
# Looking for long numbers with a pattern would take longer than reading the body.
_DIGITS = bytes.maketrans(b"0123456789", b"0" * 10)
_LONG_NUMBER = b"0" * 19


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


class BodyError(ValueError):
    """A body that is not JSON or YAML, or nested too deeply."""


class TooManyValuesError(BodyError):
    """A body with more fields and list items than the server reads."""

    def __init__(self, limit: int = MAX_VALUES) -> None:
        super().__init__(
            f"limit is {limit} fields and list items in one body; split it into several objects"
        )


def check_values(body: bytes, limit: int = MAX_VALUES) -> None:
    """Reject JSON with too many values, without parsing it."""
    if len(body) > 2 * limit and _marks(body) > limit and _values(body) > limit:
        raise TooManyValuesError(limit)


def _values(body: bytes) -> int:
    """Return an upper bound of the fields and items of JSON; quoted text does not count."""
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # A field has its name and its value in quotes.
    quotes = plain.count(b'"')
    return quotes // 4 if quotes > 4 * MAX_VALUES else _marks(b"".join(plain.split(b'"')[::2]))


def _marks(text: bytes) -> int:
    return text.count(b",") + text.count(b"{") + text.count(b"[")


def count_values(value: Any, limit: int) -> int:
    """Count the fields and items of a JSON value, until there are more than a limit."""
    level, count = [value] if type(value) in (dict, list) else [], 0
    while level and count <= limit:
        count += sum(map(len, level))
        # A value that is too large is not counted further.
        level = _containers(level) if count <= limit else []
    return count


def has_more_values(value: Any, limit: int) -> bool:
    """Report whether a JSON value has more fields and items than a limit."""
    return count_values(value, limit) > limit


def parse_json(body: bytes) -> tuple[Any, list[str]]:
    """Read JSON; also return the paths of repeated keys, of which the last one counts."""
    check_values(body)
    plain = _plain(body)
    if plain is not None:
        return plain, []
    text = _text(body)
    repeated = False

    def pairs_to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        obj = dict(pairs)
        repeated = repeated or len(obj) != len(pairs)
        return obj

    value = _normalized(_load(text, pairs_to_dict, body), body)
    return value, _repeated_keys(_load(text, _Pairs, body)) if repeated else []


def _plain(body: bytes) -> Any | None:
    """Read a body in canonical form; None for any other.

    It is one if encoding the value returns the body, except for the spaces that many encoders add
    after colons and commas. Then it has no repeated keys and no numbers that are too long.
    """
    try:
        if _LONG_NUMBER in body.translate(_DIGITS):
            return None
        value = _decoder.decode(body)
        encoded = _encoder.encode(value)
        if encoded != body and encoded != body.replace(b'": ', b'":').replace(b", ", b","):
            return None
        # So few brackets cannot nest too deeply.
        if body.count(b"{") + body.count(b"[") > MAX_DEPTH and _is_deep(value):
            return None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return value


def _is_deep(value: Any) -> bool:
    """Report whether a value nests too deeply, level by level."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = _containers(level)
        if not level:
            return False
    return True


def _containers(level: list[Any]) -> list[Any]:
    """Return the objects and lists that are directly inside of some."""
    return [
        item
        for container in level
        for item in (container.values() if type(container) is dict else container)
        if type(item) is dict or type(item) is list
    ]


def _has_fractions(value: Any) -> bool:
    level = [value]
    while level:
        if any(
            type(item) is float
            for container in level
            for item in (container.values() if type(container) is dict else container)
        ):
            return True
        level = _containers(level)
    return False


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with its repeated keys."""


def _text(body: bytes) -> str:
    # Bytes that are not UTF-8 are replaced, as Go's decoder does.
    return body.decode("utf-8", errors="replace")


def _normalized(value: Any, body: bytes) -> Any:
    """Replace what JSON allows and Go does not: lone surrogates, numbers beyond 64 bits."""
    halves = b"\\" in body and _SURROGATE_ESCAPE.search(body)
    return _held(value) if halves or _LONG_NUMBER in body.translate(_DIGITS) else value


def _held(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_held(key): _held(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_held(item) for item in value]
    if type(value) is int and not -(2**63) <= value < 2**64:
        return _float(str(value))
    return value


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise BodyError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return value


def _load(text: str, hook: Any, body: bytes) -> Any:
    try:
        value = json.loads(
            text, object_pairs_hook=hook, parse_constant=_no_constant, parse_float=_float
        )
        _check_depth(value)
        return value
    except RecursionError:
        raise BodyError("exceeded max depth") from None
    except json.JSONDecodeError:
        raise BodyError(syntax_problem(body) or "unexpected end of JSON input") from None
    except BodyError:
        raise
    except ValueError:
        # Python reads no number of more than some thousand digits.
        raise BodyError("json: a number in the body is too long") from None


def _check_depth(value: Any, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise BodyError("exceeded max depth")
    if isinstance(value, dict):
        for item in value.values():
            if isinstance(item, dict | list):
                _check_depth(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict | list | tuple):
                _check_depth(item[1] if isinstance(item, tuple) else item, depth + 1)


def _no_constant(name: str) -> Any:
    raise BodyError(f"invalid character '{name[0]}' looking for beginning of value")


def written(trail: Trail) -> str:
    """Write a path as strict decoding does: dots for fields and keys, brackets for indexes.

    Of a very long path the beginning is omitted.
    """
    steps: list[str] = []
    room = _MAX_PATH
    while trail and room > 0:
        trail, step = trail
        text = f"[{step}]" if type(step) is int else f"{step}"[:room]
        steps.append(text if type(step) is int or not trail else f".{text}")
        room -= len(text)
    return ("..." if trail else "") + "".join(reversed(steps))


class RepeatedKey(str):
    """The path of a repeated key, with its position among all keys of the document."""

    __slots__ = ("position", "positions")
    position: int
    positions: dict[str, int]
    """Where each path is first; of a large document only its beginning."""


def _repeated_keys(value: Any) -> list[str]:
    """Return the paths of repeated keys, without duplicates and up to a limit."""
    paths: dict[str, None] = {}
    positions: dict[str, int] = {}
    for position, (trail, is_repeated) in enumerate(_keys(value, ())):
        if is_repeated and (path := RepeatedKey(written(trail))) not in paths:
            path.position, path.positions = position, positions
            paths[path] = None
        elif position < _MAX_POSITIONS:
            positions.setdefault(written(trail), position)
        if len(paths) == MAX_REPEATED:
            break
    return list(paths)


def merge_repeated(document: bytes) -> Any:
    """Read JSON as Go reads it into a struct: objects under a repeated key are merged."""
    return _normalized(_load(_text(document), _merged, document), document)


def _merged(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    _merge(result, pairs)
    return result


def _merge(target: dict[str, Any], pairs: Iterable[tuple[str, Any]]) -> None:
    # In place: a key that is repeated thousands of times must not copy what came before.
    for key, value in pairs:
        known = target.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            _merge(known, value.items())
        else:
            target[key] = value


def _keys(value: Any, at: Trail) -> Iterator[tuple[Trail, bool]]:
    """Yield all keys in the order of the document, and whether their object had them before."""
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, item in value:
            yield (at, key), key in seen
            seen.add(key)
            if isinstance(item, list):
                yield from _keys(item, (at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, list):
                yield from _keys(item, (at, index))


def parse_yaml(body: bytes) -> tuple[Any, list[str]]:
    """Read one YAML document of JSON values; also return the paths of repeated keys."""
    if body[:1] == b"{" and body.isascii():
        # What clients apply is JSON more often than not, and but for fractions means the same.
        check_values(body)
        plain = _plain(body)
        if plain is not None and not _has_fractions(plain):
            return plain, []
    from sully.machinery.serialization import yamltext  # late: most bodies are JSON

    value, repeated = yamltext.read(_text(body))
    return _normalized(value, body), repeated


def in_key_order(value: Any) -> Any:
    """Return a value with sorted keys, as Go writes what it has no structs for."""
    if isinstance(value, dict):
        return {name: in_key_order(value[name]) for name in sorted(value)}
    return [in_key_order(item) for item in value] if isinstance(value, list) else value


def to_json(value: Any) -> bytes:
    """Write compact JSON."""
    return _encoder.encode(value)


def to_json_if_possible(value: Any) -> bytes | None:
    """Write compact JSON of what anyone sent; None if it has another value or nests too deeply."""
    try:
        return to_json(value)
    except (OverflowError, RecursionError, TypeError, ValueError):
        return None


def to_pretty_json(value: Any) -> bytes:
    """Write indented JSON for people."""
    return msgspec.json.format(_encoder.encode(value), indent=2) + b"\n"


def from_json(data: bytes) -> Any:
    """Read JSON that we or a server wrote; raises ValueError."""
    try:
        return _decoder.decode(data)
    except RecursionError:
        raise ValueError("it nests too deeply") from None


def to_yaml(value: Any) -> bytes:
    """Write YAML with sorted keys, as Kubernetes does."""
    import yaml

    text = yaml.dump(value, Dumper=_dumper(), sort_keys=True, allow_unicode=True, width=10**9)
    return str(text).encode()


@cache
def _dumper() -> Any:
    """Return a writer as that of Kubernetes: no aliases, and y and n, booleans there, in quotes."""
    import yaml

    base = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    dumper: Any = type("Dumper", (base,), {"ignore_aliases": lambda _self, _data: True})
    dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^[yYnN]$"), list("yYnN"))
    return dumper


def copy(value: Any) -> Any:
    """Copy a JSON value deeply, in C; it must contain only JSON."""
    return msgspec.to_builtins(value)

"""Bytes ↔ plain values: JSON and YAML bodies in, JSON and YAML answers out.

Bodies come from anyone: whatever is wrong with them becomes a `BodyError` with a text for the
client, never an exception of a parser. YAML is read by yamltext.py; which fields an object may have
is decode.py's business.
"""

import json
import re
from typing import Any

import msgspec

MAX_DEPTH = 200
_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(rb"\\[uU](?:0000)?[dD][89a-fA-F]")
# Looking for long numbers with a pattern would take longer than reading the body.
_DIGITS = bytes.maketrans(b"0123456789", b"0" * 10)
_LONG_NUMBER = b"0" * 19


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


class BodyError(ValueError):
    """A body that is no JSON or YAML, or nested too deeply."""


def parse_json(body: bytes) -> tuple[Any, list[str]]:
    """Read JSON; also return the paths of repeated keys, of which the last one counts."""
    plain = _plain(body)
    if plain is not None:
        return plain, []
    text = _text(body)
    repeated = False

    def pairs_to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        found = dict(pairs)
        repeated = repeated or len(found) != len(pairs)
        return found

    value = _settled(_load(text, pairs_to_dict), body)
    return value, _repeated_keys(_load(text, _Pairs)) if repeated else []


def _plain(body: bytes) -> Any | None:
    """Read a body that says everything once and in the plainest way; None for any other.

    It is one if writing the value gives the body back, but for the spaces that many encoders put
    behind colons and commas. Then no key can stand there twice, and no number was too long.
    """
    try:
        value = _decoder.decode(body)
        again = _encoder.encode(value)
        if again != body and again != body.replace(b'": ', b'":').replace(b", ", b","):
            return None
        # So few brackets cannot nest too deeply.
        if body.count(b"{") + body.count(b"[") > MAX_DEPTH and _is_deep(value):
            return None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return value


def _is_deep(value: Any) -> bool:
    """Say whether a value nests too deeply, level by level."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            item
            for each in level
            for item in (each.values() if type(each) is dict else each)
            if type(item) is dict or type(item) is list
        ]
        if not level:
            return False
    return True


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with its repeated keys."""


def _text(body: bytes) -> str:
    # Bytes that are no UTF-8 are replaced, as Go's decoder does.
    return body.decode("utf-8", errors="replace")


def _settled(value: Any, body: bytes) -> Any:
    """Replace what JSON can say and Go cannot hold: half characters, numbers beyond 64 bits."""
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


def _load(text: str, hook: Any) -> Any:
    try:
        value = json.loads(
            text, object_pairs_hook=hook, parse_constant=_no_constant, parse_float=_float
        )
        _check_depth(value)
        return value
    except RecursionError:
        raise BodyError("exceeded max depth") from None
    except json.JSONDecodeError as error:
        raise BodyError(_go_syntax_error(text, error)) from None
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


def _go_syntax_error(text: str, error: json.JSONDecodeError) -> str:
    position = error.pos
    if position >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return "unexpected end of JSON input"
    char = text[position]
    if error.msg == "Extra data":
        return f"invalid character '{char}' after top-level value"
    if error.msg.startswith("Expecting property name"):
        return f"invalid character '{char}' looking for beginning of object key string"
    if error.msg.startswith("Expecting ',' delimiter"):
        inside = (
            "array element" if text[:position].rstrip().endswith("]") else "object key:value pair"
        )
        return f"invalid character '{char}' after {inside}"
    if error.msg.startswith("Expecting ':'"):
        return f"invalid character '{char}' after object key"
    return f"invalid character '{char}' looking for beginning of value"


def _repeated_keys(value: Any, path: str = "") -> list[str]:
    found: list[str] = []
    if isinstance(value, _Pairs):
        seen = set()
        for key, item in value:
            here = f"{path}.{key}" if path else key
            if key in seen:
                found.append(here)
            seen.add(key)
            found += _repeated_keys(item, here)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += _repeated_keys(item, f"{path}[{index}]")
    return list(dict.fromkeys(found))


def parse_yaml(body: bytes) -> tuple[Any, list[str]]:
    """Read one YAML document of JSON values; also return the paths of repeated keys."""
    from sully.machinery import yamltext  # late: most bodies are JSON

    value, repeated = yamltext.read(_text(body))
    return _settled(value, body), repeated


def to_json(value: Any) -> bytes:
    """Write compact JSON."""
    return _encoder.encode(value)


def to_pretty_json(value: Any) -> bytes:
    """Write indented JSON for people."""
    return msgspec.json.format(_encoder.encode(value), indent=2) + b"\n"


def from_json(data: bytes) -> Any:
    """Read JSON that we wrote ourselves."""
    return _decoder.decode(data)


def to_yaml(value: Any) -> bytes:
    """Write YAML with sorted keys, as the reference does."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text = yaml.dump(value, Dumper=dumper, sort_keys=True, allow_unicode=True, width=10**9)
    return str(text).encode()


def copy(value: Any) -> Any:
    """Copy a JSON value deeply, at the speed of C; there is nothing but JSON in it."""
    return msgspec.to_builtins(value)

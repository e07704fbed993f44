"""Bytes ↔ plain values: JSON and YAML bodies in, JSON and YAML answers out.

Bodies come from anyone: whatever is wrong with them becomes a `BodyError` with a text for the
client, never an exception of a parser. Which fields an object may have is decode.py's business.
"""

import json
from typing import Any

import msgspec

MAX_DEPTH = 200


class BodyError(ValueError):
    """A body that is no JSON or YAML, or nested too deeply."""


def parse_json(body: bytes) -> tuple[Any, list[str]]:
    """Read JSON; also return the paths of repeated keys, of which the last one counts."""
    text = _text(body)
    repeated = False

    def pairs_to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        found = dict(pairs)
        repeated = repeated or len(found) != len(pairs)
        return found

    value = _load(text, pairs_to_dict)
    return value, _repeated_keys(_load(text, _Pairs)) if repeated else []


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with its repeated keys."""


def _text(body: bytes) -> str:
    # Bytes that are no UTF-8 are replaced, as Go's decoder does.
    return body.decode("utf-8", errors="replace")


def _load(text: str, hook: Any) -> Any:
    try:
        value = json.loads(text, object_pairs_hook=hook, parse_constant=_no_constant)
        _check_depth(value)
        return value
    except RecursionError:
        raise BodyError("exceeded max depth") from None
    except json.JSONDecodeError as error:
        raise BodyError(_go_syntax_error(text, error)) from None
    except ValueError as error:
        raise BodyError(str(error)) from None


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
    if position >= len(text.rstrip()):
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
    import yaml  # late: most bodies are JSON

    text = _text(body)
    try:
        node = yaml.compose(text, Loader=_safe_loader())
        if node is None:
            return None, []
        repeated: list[str] = []
        value = _plain(node, "", repeated, 0)
    except yaml.YAMLError as error:
        raise BodyError(_yaml_error(error)) from None
    except RecursionError:
        raise BodyError("exceeded max depth") from None
    return value, repeated


def _safe_loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _yaml_error(error: Exception) -> str:
    import yaml

    # Go's parser counts lines from 0 for grammar errors and from 1 for bad characters.
    first = 1 if isinstance(error, yaml.scanner.ScannerError) else 0
    marks = (getattr(error, "context_mark", None), getattr(error, "problem_mark", None))
    at = next((mark.line for mark in marks if mark is not None and mark.line), 0)
    problem = getattr(error, "problem", None) or str(error)
    return f"yaml: line {at + first}: {problem}" if at else f"yaml: {problem}"


def _plain(node: Any, path: str, repeated: list[str], depth: int) -> Any:
    import yaml

    if depth > MAX_DEPTH:
        raise BodyError("exceeded max depth")
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [
            _plain(item, f"{path}[{index}]", repeated, depth + 1)
            for index, item in enumerate(node.value)
        ]
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = str(key_node.value)
        here = f"{path}.{key}" if path else key
        if key in found:
            repeated.append(here)
        found[key] = _plain(value_node, here, repeated, depth + 1)
    return found


def _scalar(node: Any) -> Any:
    text, tag = node.value, node.tag.removeprefix("tag:yaml.org,2002:")
    if tag == "null":
        return None
    if tag == "bool":
        # YAML 1.1 reads yes and on as true, but only unquoted true and false are JSON to Go.
        lowered = text.lower()
        return lowered in ("true", "yes", "on") if lowered in _BOOLS else text
    if tag == "int":
        return _yaml_int(text)
    if tag == "float":
        return _yaml_float(text)
    return text


_BOOLS = ("true", "false", "yes", "no", "on", "off")


def _yaml_int(text: str) -> Any:
    digits = text.replace("_", "")
    try:
        if digits.lstrip("+-").startswith("0") and digits.lstrip("+-").isdigit():
            return int(digits, 8) if len(digits.lstrip("+-")) > 1 else 0
        return int(digits, 0)
    except ValueError:
        return text


def _yaml_float(text: str) -> Any:
    try:
        value = float(text.replace("_", ""))
    except ValueError:
        return text
    if value != value or value in (float("inf"), float("-inf")):
        raise BodyError(f"json: unsupported value: {text}")
    return (
        int(value) if value.is_integer() and "e" not in text.lower() and "." not in text else value
    )


_encoder = msgspec.json.Encoder()


def to_json(value: Any) -> bytes:
    """Write compact JSON."""
    return _encoder.encode(value)


def to_pretty_json(value: Any) -> bytes:
    """Write indented JSON for people."""
    return msgspec.json.format(_encoder.encode(value), indent=2) + b"\n"


def from_json(data: bytes) -> Any:
    """Read JSON that we wrote ourselves."""
    return msgspec.json.decode(data)


def to_yaml(value: Any) -> bytes:
    """Write YAML with sorted keys, as the reference does."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text = yaml.dump(value, Dumper=dumper, sort_keys=True, allow_unicode=True, width=10**9)
    return str(text).encode()


def copy(value: Any) -> Any:
    """Copy a JSON value deeply; faster than copy.deepcopy because only JSON can occur."""
    if isinstance(value, dict):
        return {key: copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copy(item) for item in value]
    return value

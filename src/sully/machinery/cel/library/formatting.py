"""`"%s and %d".format([...])`: the clauses and what each accepts."""

from __future__ import annotations

import math
import re
from typing import Final

from sully.machinery.cel import temporal
from sully.machinery.cel.errors import EvaluationError
from sully.machinery.cel.types import Type
from sully.machinery.cel.values import (
    Duration,
    Timestamp,
    UInt,
    Value,
    checked_length,
    from_key,
    type_of,
)

_CLAUSE: Final = re.compile(r"%(?:%|(?:\.([0-9]+))?(.)?)", re.DOTALL)
_MAX_PRECISION: Final = 1000
_NAMES: Final = {
    "null": "null_type",
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
}


_HEX: Final = "only integers, byte buffers, and strings can be formatted as hex"
RULES: Final = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists,"
    " types, durations, and timestamps",
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": _HEX,
    "X": _HEX,
    "o": "octal clause can only be used on integers",
}
"""What a clause accepts, as its error names it."""


def format_text(template: str, values: list[Value]) -> str:
    """Fill the clauses of a template with values, in order."""
    index = length = last = 0
    out: list[str] = []
    for clause in _CLAUSE.finditer(template):
        out.append(template[last : clause.start()])
        last = clause.end()
        if clause.group() == "%%":
            out.append("%")
            continue
        precision, verb = clause.groups()
        if index >= len(values):
            raise EvaluationError(f"index {index} out of range")
        out.append(_formatted(verb, precision, values[index]))
        length += len(out[-1])
        checked_length(length)
        index += 1
    return "".join((*out, template[last:]))


def _formatted(verb: str | None, precision: str | None, value: Value) -> str:
    digits = 6 if precision is None else int(precision)
    if digits > _MAX_PRECISION:
        raise EvaluationError(f"precision {digits} exceeds maximum of {_MAX_PRECISION}")
    match verb:
        case "s":
            return text_of(value)
        case "d":
            return _decimal(value)
        case "f":
            return _fixed(value, digits)
        case "e":
            return _scientific(value, digits)
        case "b":
            return _binary(value)
        case "x" | "X":
            text = _hexadecimal(value)
            return text.upper() if verb == "X" else text
        case "o":
            return _octal(value)
        case _:
            raise EvaluationError(unrecognized(verb or ""))


def unrecognized(verb: str) -> str:
    """Return the error of a clause that does not exist; cel-go shows only its first byte."""
    shown = chr(verb.encode()[0]) if verb else ""
    return f'could not parse formatting clause: unrecognized formatting clause "{shown}"'


def name_of(type_: Type) -> str:
    """Return the name of a type in errors."""
    return _NAMES.get(type_.kind, type_.name)


def _refused(verb: str, value: Value) -> EvaluationError:
    actual = name_of(type_of(value))
    return EvaluationError(f"error during formatting: {RULES[verb]}, was given {actual}")


def _special(value: Value) -> str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return None


def _is_integer(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _decimal(value: Value) -> str:
    special = _special(value)
    if special is not None:
        return special
    if not _is_integer(value):
        raise _refused("d", value)
    return str(int(value))


def _fixed(value: Value, digits: int) -> str:
    special = _special(value)
    if special is not None:
        return special
    if not (_is_integer(value) or isinstance(value, float)):
        raise _refused("f", value)
    return f"{float(value):.{digits}f}"


def _scientific(value: Value, digits: int) -> str:
    special = _special(value)
    if special is not None:
        return special
    if not (_is_integer(value) or isinstance(value, float)):
        raise _refused("e", value)
    return f"{float(value):.{digits}e}"


def _binary(value: Value) -> str:
    if isinstance(value, int):
        return f"{int(value):b}"
    raise _refused("b", value)


def _octal(value: Value) -> str:
    if _is_integer(value):
        return f"{int(value):o}"
    raise _refused("o", value)


def _hexadecimal(value: Value) -> str:
    if isinstance(value, str):
        return value.encode().hex()
    if isinstance(value, bytes):
        return value.hex()
    if _is_integer(value):
        return f"{int(value):x}"
    raise _refused("x", value)


def text_of(value: Value) -> str:  # noqa: PLR0911 - one return per kind of value
    """Return a value as `%s` shows it."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return value
        case UInt() | int():
            return str(int(value))
        case float():
            return _special(value) or _shortest(value)
        case bytes():
            return value.decode(errors="replace")
        case Timestamp():
            return temporal.format_timestamp(value)
        case Duration():
            return temporal.format_duration(value)
        case Type():
            return name_of(value)
        case list() | tuple():
            return f"[{', '.join(map(text_of, value))}]"
        case dict():
            rows = sorted((text_of(from_key(key)), text_of(item)) for key, item in value.items())
            return "{" + ", ".join(f"{key}: {item}" for key, item in rows) + "}"
        case _:
            raise _refused("s", value)


def _shortest(value: float) -> str:
    """Return the digits that name this double and no other, never with an exponent."""
    text = repr(value)
    if "e" in text:
        text = f"{value:.400f}".rstrip("0").rstrip(".") if abs(value) < 1 else f"{value:.0f}"
    return text.removesuffix(".0")

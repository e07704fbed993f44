"""Conversions between the basic types: `int("7")`, `string(1.5)`, `type(x)`, `dyn(x)`.

Texts are read and written as Go does it, because that is what users of cel-go see.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Final

from sully.machinery.cel import temporal
from sully.machinery.cel.declarations import Library, library
from sully.machinery.cel.errors import EvaluationError
from sully.machinery.cel.library.standard import Row
from sully.machinery.cel.types import Type
from sully.machinery.cel.values import (
    NANOS,
    UInt,
    Value,
    checked_int,
    checked_uint,
    type_of,
)

_INT: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_UINT: Final = re.compile(r"[0-9]+", re.ASCII)
_FLOAT: Final = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)",
    re.ASCII | re.IGNORECASE,
)
_EXPONENT_FROM: Final = 6
_MAX_DIGITS: Final = 20
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def _int_of_float(value: float) -> int:
    if not math.isfinite(value) or not -(2.0**63) < value < 2.0**63:
        raise EvaluationError("integer overflow")
    return int(value)


def _uint_of_float(value: float) -> UInt:
    if not math.isfinite(value) or not 0 <= value < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return UInt(value)


def _int_of_text(text: str) -> int:
    if not _INT.fullmatch(text):
        raise EvaluationError(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return checked_int(_whole(text))


def _whole(text: str) -> int:
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > _MAX_DIGITS:
        raise EvaluationError(f'strconv.ParseInt: parsing "{text}": value out of range')
    return -int(digits or 0) if text.startswith("-") else int(digits or 0)


def _uint_of_text(text: str) -> UInt:
    if not _UINT.fullmatch(text):
        raise EvaluationError(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    return checked_uint(_whole(text))


def _float_of_text(text: str) -> float:
    if not _FLOAT.fullmatch(text):
        raise EvaluationError(f'strconv.ParseFloat: parsing "{text}": invalid syntax')
    value = float(text)
    if math.isinf(value) and "n" not in text.lower():
        raise EvaluationError(f'strconv.ParseFloat: parsing "{text}": value out of range')
    return value


def _bool_of_text(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise EvaluationError(f'type conversion error from "string" to "bool": {text}')


OF_TEXT: Final[dict[str, Callable[[str], object]]] = {
    "int": _int_of_text,
    "uint": _uint_of_text,
    "double": _float_of_text,
    "bool": _bool_of_text,
}


def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def text_of_float(value: float) -> str:
    """Return the shortest text of a double, with an exponent from a million on."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    mantissa, _, exponent = f"{value!r}".partition("e")
    digits, power = _digits(mantissa, int(exponent or 0))
    sign = "-" if value < 0 else ""
    if -4 <= power < _EXPONENT_FROM:
        return sign + _plain(digits, power)
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'-' if power < 0 else '+'}{abs(power):02d}"


def _digits(mantissa: str, exponent: int) -> tuple[str, int]:
    """Return the significant digits and the power of ten of the first one."""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    every = whole + fraction
    first = len(every) - len(every.lstrip("0"))
    return every.strip("0"), exponent + len(whole) - 1 - first


def _plain(digits: str, power: int) -> str:
    if power < 0:
        return "0." + "0" * (-power - 1) + digits
    if len(digits) <= power + 1:
        return digits.ljust(power + 1, "0")
    return f"{digits[: power + 1]}.{digits[power + 1 :]}"


def _text_of_type(value: Type) -> str:
    return value.name


def type_value(value: Value) -> Type:
    return type_of(value)


def _ints() -> Iterator[Row]:
    yield "int64_to_int64", "int(int) -> int", lambda value: value
    yield "uint64_to_int64", "int(uint) -> int", lambda value: checked_int(int(value))
    yield "double_to_int64", "int(double) -> int", _int_of_float
    yield "string_to_int64", "int(string) -> int", _int_of_text
    yield "timestamp_to_int64", "int(timestamp) -> int", lambda value: value.nanos // NANOS
    yield "duration_to_int64", "int(duration) -> int", lambda value: value.nanos
    yield "uint64_to_uint64", "uint(uint) -> uint", lambda value: value
    yield "int64_to_uint64", "uint(int) -> uint", checked_uint
    yield "double_to_uint64", "uint(double) -> uint", _uint_of_float
    yield "string_to_uint64", "uint(string) -> uint", _uint_of_text


def _others() -> Iterator[Row]:
    yield "double_to_double", "double(double) -> double", lambda value: value
    yield "int64_to_double", "double(int) -> double", float
    yield "uint64_to_double", "double(uint) -> double", float
    yield "string_to_double", "double(string) -> double", _float_of_text
    yield "bool_to_bool", "bool(bool) -> bool", lambda value: value
    yield "string_to_bool", "bool(string) -> bool", _bool_of_text
    yield "bytes_to_bytes", "bytes(bytes) -> bytes", lambda value: value
    yield "string_to_bytes", "bytes(string) -> bytes", str.encode
    yield "type", "type(T) -> type(T)", type_value
    yield "to_dyn", "dyn(T) -> dyn", lambda value: value


def _strings() -> Iterator[Row]:
    yield "string_to_string", "string(string) -> string", lambda value: value
    yield "bool_to_string", "string(bool) -> string", lambda value: str(value).lower()
    yield "int64_to_string", "string(int) -> string", str
    yield "uint64_to_string", "string(uint) -> string", lambda value: str(int(value))
    yield "double_to_string", "string(double) -> string", text_of_float
    yield "bytes_to_string", "string(bytes) -> string", _text_of_bytes
    yield "timestamp_to_string", "string(timestamp) -> string", temporal.format_timestamp
    yield "duration_to_string", "string(duration) -> string", temporal.format_duration
    yield "type_to_string", "string(type) -> string", _text_of_type


def conversions() -> Library:
    return library((*_ints(), *_others(), *_strings()))

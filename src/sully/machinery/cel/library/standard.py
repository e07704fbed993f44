"""The operators and functions every environment has.

The names of the overloads are those of cel-go, since costs are attached to them. Conversions are
in `conversions`, dates in `dates`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Final

from sully.machinery.cel import regex, types
from sully.machinery.cel.declarations import Implementation, Library, library
from sully.machinery.cel.errors import EvaluationError, NoSuchOverloadError
from sully.machinery.cel.evaluation import access, loops
from sully.machinery.cel.values import (
    Value,
    checked_int,
    checked_length,
    checked_size,
    checked_uint,
    comparison,
    equals,
)

Row = tuple[str, str, Implementation]


def _not(value: Value) -> bool:
    if value is True or value is False:
        return not value
    raise NoSuchOverloadError


def _quotient(left: int, right: int) -> int:
    """Divide and cut towards zero, as machines do."""
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    # The quotient is checked too: the smallest number by -1 has none, whatever would be left.
    return left - right * checked_int(_quotient(left, right))


def _uint_remainder(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    return left % right


def _float_quotient(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def _joined(left: list[Value], right: list[Value]) -> list[Value]:
    checked_size(len(left) + len(right))
    return [*left, *right]


def _appended(left: Value, right: Value) -> Value:
    checked_length(len(left) + len(right))
    return left + right


def _ints(run: Callable[[int, int], int]) -> Implementation:
    return lambda left, right: checked_int(run(left, right))


def _uints(run: Callable[[int, int], int]) -> Implementation:
    return lambda left, right: checked_uint(run(int(left), int(right)))


def _arithmetic() -> Iterator[Row]:
    yield "add_int64", "_+_(int, int) -> int", _ints(operator.add)
    yield "add_uint64", "_+_(uint, uint) -> uint", _uints(operator.add)
    yield "add_double", "_+_(double, double) -> double", operator.add
    yield "add_string", "_+_(string, string) -> string", _appended
    yield "add_bytes", "_+_(bytes, bytes) -> bytes", _appended
    yield "add_list", "_+_(list(T), list(T)) -> list(T)", _joined
    yield "subtract_int64", "_-_(int, int) -> int", _ints(operator.sub)
    yield "subtract_uint64", "_-_(uint, uint) -> uint", _uints(operator.sub)
    yield "subtract_double", "_-_(double, double) -> double", operator.sub
    yield "multiply_int64", "_*_(int, int) -> int", _ints(operator.mul)
    yield "multiply_uint64", "_*_(uint, uint) -> uint", _uints(operator.mul)
    yield "multiply_double", "_*_(double, double) -> double", operator.mul
    yield "divide_int64", "_/_(int, int) -> int", _ints(_quotient)
    yield "divide_uint64", "_/_(uint, uint) -> uint", _uints(_quotient)
    yield "divide_double", "_/_(double, double) -> double", _float_quotient
    yield "modulo_int64", "_%_(int, int) -> int", _ints(_remainder)
    yield "modulo_uint64", "_%_(uint, uint) -> uint", _uints(_uint_remainder)
    yield "negate_int64", "-_(int) -> int", lambda value: checked_int(-value)
    yield "negate_double", "-_(double) -> double", operator.neg


_ORDERINGS: Final = (
    ("less", "_<_", operator.lt),
    ("less_equals", "_<=_", operator.le),
    ("greater", "_>_", operator.gt),
    ("greater_equals", "_>=_", operator.ge),
)
_NUMBERS: Final = (("int64", "int"), ("uint64", "uint"), ("double", "double"))


def _orderings() -> Iterator[Row]:
    for name, function, run in _ORDERINGS:
        for kind in ("bool", "string", "bytes", "timestamp", "duration"):
            yield f"{name}_{kind}", f"{function}({kind}, {kind}) -> bool", run
        for number, kind in _NUMBERS:
            yield f"{name}_{number}", f"{function}({kind}, {kind}) -> bool", comparison(run)


def _mixed_orderings() -> Iterator[Row]:
    for name, function, run in _ORDERINGS:
        for (left, left_type), (right, right_type) in permutations(_NUMBERS, 2):
            signature = f"{function}({left_type}, {right_type}) -> bool"
            yield f"{name}_{left}_{right}", signature, comparison(run)


def _logic() -> Iterator[Row]:
    yield "conditional", "_?_:_(bool, T, T) -> T", lambda test, a, b: a if test else b
    yield "logical_and", "_&&_(bool, bool) -> bool", lambda a, b: a and b
    yield "logical_or", "_||_(bool, bool) -> bool", lambda a, b: a or b
    yield "logical_not", "!_(bool) -> bool", _not
    yield "not_strictly_false", "@not_strictly_false(bool) -> bool", lambda a: a is not False
    yield "equals", "_==_(T, T) -> bool", equals
    yield "not_equals", "_!=_(T, T) -> bool", lambda a, b: not equals(a, b)


def _containers() -> Iterator[Row]:
    for kind, name in (("string", ""), ("bytes", ""), ("list(T)", "list"), ("map(K, V)", "map")):
        short = name or kind
        yield f"size_{short}", f"size({kind}) -> int", len
        yield f"{short}_size", f"{kind}:size() -> int", len
    yield "in_list", "@in(T, list(T)) -> bool", access.contains
    yield "in_map", "@in(K, map(K, V)) -> bool", access.contains
    yield "index_list", "_[_](list(T), int) -> T", access.index
    yield "index_map", "_[_](map(K, V), K) -> V", access.index
    inserted = "map(K, V)"
    yield (
        "@mapInsert_map_key_value",
        f"cel.@mapInsert({inserted}, K, V) -> {inserted}",
        loops.map_insert,
    )
    yield (
        "@mapInsert_map_map",
        f"cel.@mapInsert({inserted}, {inserted}) -> {inserted}",
        loops.map_insert,
    )


def _text() -> Iterator[Row]:
    yield "contains_string", "string:contains(string) -> bool", lambda text, part: part in text
    yield "ends_with_string", "string:endsWith(string) -> bool", str.endswith
    yield "starts_with_string", "string:startsWith(string) -> bool", str.startswith
    yield "matches", "matches(string, string) -> bool", regex.matches
    yield "matches_string", "string:matches(string) -> bool", regex.matches


CONSTANTS: Final = {
    "bool": types.BOOL,
    "int": types.INT,
    "uint": types.UINT,
    "double": types.DOUBLE,
    "string": types.STRING,
    "bytes": types.BYTES,
    "list": types.list_of(types.DYN),
    "map": types.map_of(types.DYN, types.DYN),
    "null_type": types.NULL_TYPE,
    "type": types.TYPE,
    "google.protobuf.Timestamp": types.TIMESTAMP,
    "google.protobuf.Duration": types.DURATION,
}


def standard() -> Library:
    """Return the library of operators and containers."""
    rows = (*_arithmetic(), *_orderings(), *_logic(), *_containers(), *_text())
    return library(rows, CONSTANTS)


def mixed_orderings() -> Library:
    """Return the comparisons of numbers of different types."""
    return library(_mixed_orderings())

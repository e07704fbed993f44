"""The values an expression computes with, and when two of them are equal or ordered.

Most are plain Python: bool, int, float, str, bytes, list, dict and None. The rest is here. Python
and CEL disagree in two points, and both are settled in this module: a bool is not a number, and a
map may have `true` and `1` as different keys (bools are wrapped when they are keys).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from functools import total_ordering
from typing import Any, Final

from sully.machinery.cel import types
from sully.machinery.cel.errors import EvaluationError, NoSuchOverloadError
from sully.machinery.cel.types import Type

# The language is dynamically typed where the checker has `dyn`; the values are Python objects of
# any class, and only the functions that receive them know more.
Value = Any

MAX_INT: Final = 2**63 - 1
MIN_INT: Final = -(2**63)
MAX_UINT: Final = 2**64 - 1
NANOS: Final = 10**9
MAX_LIST: Final = 100_000
MAX_TEXT: Final = 10_000_000


class UInt(int):
    """An unsigned 64-bit number; equal to the int of the same amount, but another type."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"


class BoolKey:
    """A bool as the key of a map, which Python would confuse with 0 and 1."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value

    def __repr__(self) -> str:
        return str(self.value).lower()


_TRUE_KEY: Final = BoolKey(True)
_FALSE_KEY: Final = BoolKey(False)


@total_ordering
class Duration:
    """A span of time in nanoseconds."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(("duration", self.nanos))

    def __lt__(self, other: Duration) -> bool:
        return self.nanos < other.nanos

    def __repr__(self) -> str:
        return f"Duration({self.nanos})"


@total_ordering
class Timestamp:
    """A point in time, in nanoseconds since 1970."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos

    @property
    def utc(self) -> datetime:
        """Return the time in UTC, cut to microseconds."""
        return _EPOCH + timedelta(microseconds=self.nanos // 1000)

    def at(self, zone: timezone) -> datetime:
        """Return the wall clock time in a zone, cut to microseconds."""
        return self.utc.astimezone(zone)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(("timestamp", self.nanos))

    def __lt__(self, other: Timestamp) -> bool:
        return self.nanos < other.nanos

    def __repr__(self) -> str:
        return f"Timestamp({self.nanos})"


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ABSENT: Final = object()


class Optional:
    """A value that may be absent."""

    __slots__ = ("_value",)

    def __init__(self, value: Value = _ABSENT) -> None:
        self._value = value

    @property
    def present(self) -> bool:
        """Report whether there is a value."""
        return self._value is not _ABSENT

    @property
    def value(self) -> Value:
        """Return the value; raises if there is none."""
        if self._value is _ABSENT:
            raise EvaluationError("optional.none() dereference")
        return self._value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Optional) or self.present != other.present:
            return False
        return not self.present or equals(self._value, other._value)

    def __hash__(self) -> int:
        return hash(("optional", self.present))

    def __repr__(self) -> str:
        return f"Optional({self._value!r})" if self.present else "Optional()"


NONE: Final = Optional()

_TYPES: Final[dict[type, Type]] = {
    bool: types.BOOL,
    int: types.INT,
    UInt: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    list: types.list_of(types.DYN),
    tuple: types.list_of(types.DYN),
    dict: types.map_of(types.DYN, types.DYN),
    type(None): types.NULL_TYPE,
    Duration: types.DURATION,
    Timestamp: types.TIMESTAMP,
    Optional: types.optional_of(types.DYN),
    Type: types.TYPE,
}


def register(python: type, declared: Type) -> None:
    """Register the CEL type of a Python class."""
    _TYPES[python] = declared


def type_of(value: Value) -> Type:
    """Return the type of a value as it is at run time."""
    declared = _TYPES.get(type(value))
    if declared is not None:
        return declared
    for python, declared in _TYPES.items():
        # Subclasses of dict and str come from the outside; bool before int is the table's order.
        if isinstance(value, python):
            return declared
    raise EvaluationError(f"unsupported value: {type(value).__name__}")


def as_key(value: Value) -> Value:
    """Return a value in the form in which maps have it as a key."""
    if value is True:
        return _TRUE_KEY
    if value is False:
        return _FALSE_KEY
    if isinstance(value, (str, int, float)):
        return value
    raise EvaluationError(f"unsupported key type: {type_of(value).name}")


def from_key(key: Value) -> Value:
    """Return the value of a map's key."""
    return key.value if type(key) is BoolKey else key


def keys(value: dict[Value, Value]) -> Iterator[Value]:
    """Iterate over the keys of a map as values."""
    return map(from_key, value)


def is_number(value: Value) -> bool:
    """Report whether a value is an int, uint or double."""
    return isinstance(value, (int, float)) and type(value) is not bool


def equals(left: Value, right: Value) -> bool:
    """Compare as `==` does: across numeric types by amount, across others never equal."""
    kind = type(left)
    if kind is type(right) and kind in _ATOMS:
        return bool(left == right)
    if is_number(left) and is_number(right):
        return _amounts_equal(left, right)
    if isinstance(left, (list, tuple)):
        return isinstance(right, (list, tuple)) and _same_items(left, right)
    if isinstance(left, dict):
        return isinstance(right, dict) and _same_entries(left, right)
    if isinstance(left, Type):
        return isinstance(right, Type) and left.name == right.name
    return kind is type(right) and bool(left == right)


def _amounts_equal(left: Value, right: Value) -> bool:
    if isinstance(left, float) or isinstance(right, float):
        # Mixed numbers meet as doubles, with what precision doubles have.
        return float(left) == float(right)
    return int(left) == int(right)


_ATOMS: Final = frozenset({bool, int, UInt, float, str, bytes, type(None), Duration, Timestamp})


def _same_items(left: Any, right: Any) -> bool:
    return len(left) == len(right) and all(map(equals, left, right))


def _same_entries(left: dict[Value, Value], right: dict[Value, Value]) -> bool:
    if len(left) != len(right):
        return False
    return all(key in right and equals(value, right[key]) for key, value in left.items())


_ORDERED: Final = (str, bytes, bool, Duration, Timestamp)


def compare(left: Value, right: Value) -> int:
    """Return -1, 0 or 1; raise when the two have no order. NaN is handled by `comparison`."""
    if not comparable(left, right):
        raise NoSuchOverloadError
    left, right = _leveled(left, right)
    return int(right < left) - int(left < right)


def _leveled(left: Value, right: Value) -> tuple[Value, Value]:
    """Return two numbers of different types as doubles; others as they are."""
    if isinstance(left, float) != isinstance(right, float):
        return float(left), float(right)
    return left, right


def comparable(left: Value, right: Value) -> bool:
    """Report whether two values have an order."""
    if is_number(left):
        return is_number(right)
    return isinstance(left, _ORDERED) and type(left) is type(right)


def comparison(test: Callable[[Value, Value], bool]) -> Callable[[Value, Value], bool]:
    """Return an ordering operator that refuses operands without an order."""

    def ordered(left: Value, right: Value) -> bool:
        if not comparable(left, right):
            raise NoSuchOverloadError
        return test(*_leveled(left, right))

    return ordered


def checked_size(size: int) -> int:
    """Return the size of a list that may be built, or fail.

    Joining lists costs one unit, whatever their sizes; without a bound a short expression could
    fill the memory.
    """
    if size <= MAX_LIST:
        return size
    raise EvaluationError(f"list of {size} elements exceeds the limit of {MAX_LIST}")


def checked_length(length: int) -> int:
    """Return the length of a text that may be built, or fail, for the same reason."""
    if length <= MAX_TEXT:
        return length
    raise EvaluationError(f"text of {length} characters exceeds the limit of {MAX_TEXT}")


def checked_int(value: int) -> int:
    """Return a result that fits into 64 bits, or fail."""
    if MIN_INT <= value <= MAX_INT:
        return value
    raise EvaluationError("integer overflow")


def checked_uint(value: int) -> UInt:
    """Return a result that fits into unsigned 64 bits, or fail."""
    if 0 <= value <= MAX_UINT:
        return UInt(value)
    raise EvaluationError("unsigned integer overflow")

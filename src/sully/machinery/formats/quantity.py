"""Amounts as the Kubernetes API writes them: `500m`, `1.5Gi`, `12e6`.

Capacities, requests and limits are compared, added and printed everywhere, and the printed form
is part of the wire protocol: a server answers `0.5` with `500m`. Amounts are held exactly, as a
whole number of nano units, because that is the finest step the API knows; anything finer is
rounded away from zero when it is read. The CEL library in `machinery.cel` builds on this module.
"""

from __future__ import annotations

import re
from typing import Final

from sully.machinery.memo import memoized

NANO: Final = 10**9
MAX_INT64: Final = 2**63 - 1
MIN_INT64: Final = -(2**63)

FORMAT_ERROR: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
SUFFIX_ERROR: Final = "unable to parse quantity's suffix"
NUMERIC_ERROR: Final = "unable to parse numeric part of quantity"

DECIMAL_SI: Final = "DecimalSI"
BINARY_SI: Final = "BinarySI"
DECIMAL_EXPONENT: Final = "DecimalExponent"

_SHAPE: Final = re.compile(
    r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[+-]?[0-9]*)", re.ASCII
)
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY_SUFFIX: Final = {power: suffix for suffix, power in _BINARY.items()}
_DECIMAL_SUFFIX: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)

# Nothing measurable needs more; without a bound, eleven characters could ask for a number of a
# billion digits.
_MAX_EXPONENT: Final = 1000
# A number of at most this many digits surely fits into 64 bits; Kubernetes keeps the text of such
# numbers when it looks canonical already, and so the limit shows on the wire.
_INT64_DIGITS: Final = 18
_MAX_DIGITS: Final = 1000
_BINARY_DIGITS: Final = 15


class QuantityError(ValueError):
    """The reason why a text is not a quantity, in the text of the API."""


class Quantity:
    """An exact amount, and the family of suffixes it was written with.

    Two quantities are equal when their amounts are: `1Ki` equals `1024`.
    """

    __slots__ = ("_nanos", "_style", "_text")

    def __init__(self, nanos: int, style: str = DECIMAL_SI, text: str | None = None) -> None:
        self._nanos = nanos
        self._style = style
        self._text = text

    @classmethod
    def of(cls, value: int) -> Quantity:
        """Return the quantity of a whole number."""
        return cls(value * NANO)

    @property
    def nanos(self) -> int:
        """Return the amount as a number of nano units."""
        return self._nanos

    @property
    def style(self) -> str:
        """Return which family of suffixes the amount is printed with."""
        return self._style

    def sign(self) -> int:
        """Return -1, 0 or 1."""
        return (self._nanos > 0) - (self._nanos < 0)

    def is_integer(self) -> bool:
        """Report whether the amount is whole and fits into 64 bits."""
        whole, rest = divmod(self._nanos, NANO)
        return rest == 0 and MIN_INT64 <= whole <= MAX_INT64

    def as_int64(self) -> int | None:
        """Return the integer, or None if it is none or exceeds 64 bits."""
        return self._nanos // NANO if self.is_integer() else None

    def ceil(self) -> int:
        """Return the next whole number away from zero, as Kubernetes' `Value` does."""
        magnitude = -(-abs(self._nanos) // NANO)
        return magnitude if self._nanos >= 0 else -magnitude

    def as_float(self) -> float:
        """Return the nearest float, or an infinity."""
        try:
            return self._nanos / NANO
        except OverflowError:
            return float("inf") if self._nanos > 0 else float("-inf")

    def compare(self, other: Quantity) -> int:
        """Return -1, 0 or 1 as this amount is less than, equal to or more than the other."""
        return (self._nanos > other._nanos) - (self._nanos < other._nanos)

    def __add__(self, other: Quantity) -> Quantity:
        # A zero has no style of its own worth keeping: 0 + 1Ki prints as 1Ki.
        style = other._style if self._nanos == 0 else self._style
        return Quantity(self._nanos + other._nanos, style)

    def __sub__(self, other: Quantity) -> Quantity:
        style = other._style if self._nanos == 0 else self._style
        return Quantity(self._nanos - other._nanos, style)

    def __neg__(self) -> Quantity:
        return Quantity(-self._nanos, self._style)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self._nanos == other._nanos

    def __lt__(self, other: Quantity) -> bool:
        return self._nanos < other._nanos

    def __le__(self, other: Quantity) -> bool:
        return self._nanos <= other._nanos

    def __gt__(self, other: Quantity) -> bool:
        return self._nanos > other._nanos

    def __ge__(self, other: Quantity) -> bool:
        return self._nanos >= other._nanos

    def __hash__(self) -> int:
        return hash(self._nanos)

    def __bool__(self) -> bool:
        return self._nanos != 0

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __str__(self) -> str:
        return self._text if self._text is not None else _print(self._nanos, self._style)


# Thousands of pods have the same few quantities.
@memoized(8192)
def parse_quantity(text: str) -> Quantity:
    """Parse a quantity as the API does; raises QuantityError with the API's text."""
    shape = _SHAPE.fullmatch(text)
    if shape is None or not text:
        raise QuantityError(FORMAT_ERROR)
    sign, whole, fraction, suffix = shape.group(1, 2, 3, 4)
    digits, places = (whole or "0") + (fraction or ""), len(fraction or "")
    if len(digits) > _MAX_DIGITS:
        raise QuantityError(NUMERIC_ERROR)
    style, power = _interpret(suffix)
    nanos = _to_nanos(int(digits), places, style, power)
    if style == BINARY_SI and 0 < nanos < NANO:
        style = DECIMAL_SI
    original = text if _keeps_text(digits, places, style, power) or text == "0" else None
    return Quantity(-nanos if sign == "-" else nanos, style, original)


@memoized(8192)
def canonical(text: str) -> str:
    """Return the canonical form of a quantity."""
    return str(parse_quantity(text))


def _interpret(suffix: str) -> tuple[str, int]:
    """Return the style and the power of two or ten of a suffix."""
    if suffix in _BINARY:
        return BINARY_SI, _BINARY[suffix]
    if suffix in _DECIMAL:
        return DECIMAL_SI, _DECIMAL[suffix]
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        raise QuantityError(SUFFIX_ERROR)
    power = int(exponent.group(1)) if len(suffix) < 12 else _MAX_EXPONENT + 1
    if abs(power) > _MAX_EXPONENT:
        raise QuantityError(SUFFIX_ERROR)
    return DECIMAL_EXPONENT, power


def _to_nanos(number: int, places: int, style: str, power: int) -> int:
    """Return number / 10**places, times the suffix, rounded up to a whole nano unit."""
    if style == BINARY_SI:
        nanos = -(-((number << power) * NANO) // _ten_to(places))
        return min(nanos, MAX_INT64 * NANO)
    shift = 9 + power - places
    return number * _ten_to(shift) if shift >= 0 else -(-number // _ten_to(-shift))


def _ten_to(power: int) -> int:
    return int(10**power)


def _keeps_text(digits: str, places: int, style: str, power: int) -> bool:
    """Report whether the text is returned unchanged.

    Kubernetes looks quickly whether a number is canonical and then does not print it again. Its
    look is generous (`1.500` and `+5` pass), and clients see the result, so the same look is taken
    here.
    """
    if style == BINARY_SI:
        precise = _BINARY_DIGITS - len(digits) - power * 3 // 10 - 1 >= 0
        return precise and places == 0 and int(digits) & 7 != 0
    scale = power - places
    fits = len(digits) <= _INT64_DIGITS and scale >= -9
    return fits and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


def _print(nanos: int, style: str) -> str:
    if nanos == 0:
        return "0"
    sign, magnitude = ("-" if nanos < 0 else ""), abs(nanos)
    whole, rest = divmod(magnitude, NANO)
    if style == BINARY_SI and whole >= 1024 and rest == 0:
        return sign + _print_binary(whole)
    return sign + _print_decimal(magnitude, DECIMAL_SI if style == BINARY_SI else style)


def _print_binary(whole: int) -> str:
    power = 0
    while whole & 1023 == 0 and power < 60:
        whole >>= 10
        power += 10
    return f"{whole}{_BINARY_SUFFIX.get(power, '')}"


def _print_decimal(magnitude: int, style: str) -> str:
    power = -9
    # Beyond exa there is no suffix: the digits stay, where Kubernetes would lose them.
    while magnitude % 1000 == 0 and (style == DECIMAL_EXPONENT or power < 18):
        magnitude //= 1000
        power += 3
    if style == DECIMAL_EXPONENT:
        return f"{magnitude}e{power}" if power else str(magnitude)
    return f"{magnitude}{_DECIMAL_SUFFIX[power]}"

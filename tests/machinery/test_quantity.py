"""Quantities: reading, printing, arithmetic and order."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sully.machinery.formats.quantity import (
    FORMAT_ERROR,
    NUMERIC_ERROR,
    SUFFIX_ERROR,
    Quantity,
    QuantityError,
    canonical,
    parse_quantity,
)

CANONICAL = {
    "a binary amount grows its suffix": ("1024Mi", "1Gi"),
    "a fraction becomes milli": ("0.5", "500m"),
    "a thousand milli is one": ("1000m", "1"),
    "milli stays": ("100m", "100m"),
    "an exponent stays": ("1e3", "1e3"),
    "an exponent is made a multiple of three": ("1e2", "100"),
    "a capital exponent in canonical shape is given back": ("1E3", "1E3"),
    "a binary fraction loses the point": ("1.5Gi", "1536Mi"),
    "a binary fraction that is not whole becomes decimal": ("1.1Ki", "1126400m"),
    "a thousand gets a suffix": ("1000", "1k"),
    "a million gets a suffix": ("1000000", "1M"),
    "zero has no suffix": ("0Ki", "0"),
    "zero with a sign": ("-0", "0"),
    "less than a nano is rounded up": ("0.0000000001", "1n"),
    "less than a nano is rounded away from zero": ("-0.0000000001", "-1n"),
    "a binary amount that is not a multiple of 1024 stays": ("1000Ki", "1000Ki"),
    "half a kibi is whole": ("0.5Ki", "512"),
    "binary amounts stop at 64 bits": ("9Ei", "9223372036854775807"),
    "exa is a suffix, not an exponent": ("1E", "1E"),
    "what looks canonical is not printed again": ("1.500", "1.500"),
    "a plus sign in canonical shape stays": ("+5", "+5"),
    "leading zeros of a fraction": ("0.001", "1m"),
    "a point without digits after it": ("1.G", "1.G"),
    "decimal amounts beyond exa keep their digits": ("1000E", "1000E"),
    "a negative amount": ("-1024Ki", "-1Mi"),
}

REFUSED = {
    "nothing": ("", FORMAT_ERROR),
    "two points": ("1.1.M", FORMAT_ERROR),
    "a sum": ("1+1.0M", FORMAT_ERROR),
    "letters": ("aoeu", FORMAT_ERROR),
    "a space": ("1 Gi", FORMAT_ERROR),
    "digits of another script": ("１", FORMAT_ERROR),
    "an unknown suffix": ("0.1mi", SUFFIX_ERROR),
    "a bare i": ("1i", SUFFIX_ERROR),
    "an exponent without a number": ("-3.01e-", SUFFIX_ERROR),
    "an absurd exponent": ("1e99999999999", SUFFIX_ERROR),
    "an absurd number of digits": ("9" * 5000, NUMERIC_ERROR),
}


@pytest.mark.parametrize(("text", "want"), CANONICAL.values(), ids=CANONICAL.keys())
def test_canonical(text: str, want: str) -> None:
    assert canonical(text) == want


@pytest.mark.parametrize(("text", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(text: str, want: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)

    assert str(caught.value) == want


@dataclass(frozen=True)
class Case:
    left: str
    right: str
    order: int
    total: str
    difference: str


ARITHMETIC = {
    "across suffixes": Case("1Ki", "1024", 0, "2Ki", "0"),
    "milli and units": Case("500m", "1", -1, "1500m", "-500m"),
    "zero takes the other's style": Case("0", "1Ki", -1, "1Ki", "-1Ki"),
    "larger": Case("2Gi", "1Gi", 1, "3Gi", "1Gi"),
}


@pytest.mark.parametrize("case", ARITHMETIC.values(), ids=ARITHMETIC.keys())
def test_arithmetic(case: Case) -> None:
    left, right = parse_quantity(case.left), parse_quantity(case.right)

    assert left.compare(right) == case.order
    assert (left < right, left == right, left > right) == (
        case.order < 0,
        case.order == 0,
        case.order > 0,
    )
    assert str(left + right) == case.total
    assert str(left - right) == case.difference


NUMBERS = {
    "whole": ("3", 3, 3, 3.0),
    "binary": ("1Ki", 1024, 1024, 1024.0),
    "a fraction has no whole number and rounds up": ("1500m", None, 2, 1.5),
    "a negative fraction rounds away from zero": ("-1500m", None, -2, -1.5),
    "too large for 64 bits": ("10E", None, 10**19, 1e19),
}


@pytest.mark.parametrize(
    ("text", "whole", "ceiling", "number"), NUMBERS.values(), ids=NUMBERS.keys()
)
def test_numbers(text: str, whole: int | None, ceiling: int, number: float) -> None:
    quantity = parse_quantity(text)

    assert quantity.as_int64() == whole
    assert quantity.is_integer() == (whole is not None)
    assert quantity.ceil() == ceiling
    assert quantity.as_float() == number
    assert quantity.sign() == (1 if number > 0 else -1)


def test_equal_amounts_are_one_key() -> None:
    assert {parse_quantity("1Ki"): "x"}[Quantity.of(1024)] == "x"


@given(st.integers(-(10**24), 10**24), st.sampled_from(["", "m", "k", "Ki", "Gi", "e3", "n"]))
def test_printing_keeps_the_amount(number: int, suffix: str) -> None:
    first = parse_quantity(f"{number}{suffix}")

    assert parse_quantity(str(first)) == first
    assert canonical(canonical(f"{number}{suffix}")) == canonical(f"{number}{suffix}")

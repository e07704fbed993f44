"""Integers in text, of any length."""

import pytest

from sully.machinery.formats.integers import parse_int, parse_natural

ZEROS = "0" * 5000
CASES = {
    "7": 7,
    "+7": 7,
    "-7": -7,
    "007": 7,
    ZEROS: 0,
    f"-{ZEROS}1": -1,
    str(2**63 - 1): 2**63 - 1,
    str(-(2**63)): -(2**63),
    str(2**63): None,
    "9" * 5000: None,
    "": None,
    "-": None,
    "+-1": None,
    "1_000": None,
    " 1": None,
    "1\n": None,
    "\u0662": None,
    "\u00b2": None,
}


@pytest.mark.parametrize(("text", "want"), CASES.items(), ids=[text[:8] for text in CASES])
def test_parse_int(text: str, want: int | None) -> None:
    assert parse_int(text) == want
    assert parse_natural(text) == (None if text[:1] in ("+", "-") else want)

"""Integers in text: annotations, percentages, selectors. Python's `int` fails on 4300 digits."""

import re

_INTEGER = re.compile(r"[+-]?[0-9]+")
_MAX_DIGITS = 19


def parse_int(text: str) -> int | None:
    """Read a 64-bit integer as Go's ParseInt does, or return None."""
    digits = text.lstrip("+-").lstrip("0")
    if not _INTEGER.fullmatch(text) or len(digits) > _MAX_DIGITS:
        return None
    value = int(digits or "0") * (-1 if text.startswith("-") else 1)
    return value if -(2**63) <= value < 2**63 else None


def parse_natural(text: str) -> int | None:
    """Read a 64-bit integer that is not negative, without a sign, or return None."""
    return parse_int(text) if text[:1].isdecimal() else None

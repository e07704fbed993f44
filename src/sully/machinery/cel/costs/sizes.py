"""Ranges of sizes and costs, with arithmetic that stops at 64 bits.

The estimate of an expression's worst case is made of these; `estimate` does the walking and
`callcosts` knows the functions.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

MOST: Final = 2**64 - 1
TRAVERSAL: Final = 0.1
REGEX: Final = 0.25


def _scaled(amount: int, factor: float) -> int:
    product = float(amount) * factor
    return MOST if product >= float(2**64) else math.ceil(product)


class Range(NamedTuple):
    """At least `low` and at most `high`: of elements, of characters, or of cost units."""

    low: int
    high: int

    def plus(self, other: Range) -> Range:
        """Return the sum."""
        return Range(min(self.low + other.low, MOST), min(self.high + other.high, MOST))

    def times(self, other: Range) -> Range:
        """Return the product."""
        return Range(min(self.low * other.low, MOST), min(self.high * other.high, MOST))

    def scaled(self, factor: float) -> Range:
        """Return a multiple, rounded up to whole units."""
        return Range(_scaled(self.low, factor), _scaled(self.high, factor))

    def union(self, other: Range) -> Range:
        """Return the range that covers both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


UNKNOWN: Final = Range(0, MOST)
NOTHING: Final = Range(0, 0)
ONE: Final = Range(1, 1)


class Entries(NamedTuple):
    """The sizes of the keys (or indexes) and values of a container."""

    kind: str
    key: Range
    value: Range

    def union(self, other: Entries | None) -> Entries | None:
        """Return sizes that cover both, or None when one is not known."""
        if other is None:
            return None
        return Entries(self.kind, self.key.union(other.key), self.value.union(other.value))


class CallCost(NamedTuple):
    """What one call costs without its arguments, and how large its result is."""

    cost: Range
    size: Range | None = None

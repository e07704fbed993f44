"""Sets of completion indexes as Jobs write them: `1,3-5`."""

from collections.abc import Iterable
from itertools import chain

from sully.machinery.formats.integers import parse_int
from sully.machinery.serialization.gotext import quote


class IndexesError(ValueError):
    """A text that is not a set of indexes."""


def parse_indexes(text: str) -> frozenset[int]:
    """Return the indexes of a valid text that names few: those that pods have had."""
    return frozenset(chain.from_iterable(intervals(text)))


def intervals(text: str) -> list[range]:
    """Return the intervals of a valid text; together they may have billions of indexes."""
    parts = (part.partition("-") for part in text.split(",") if part)
    return [range(int(first), int(last or first) + 1) for first, _, last in parts]


def format_indexes(indexes: Iterable[int]) -> str:
    """Return indexes as a text; three and more in a row become an interval."""
    parts: list[list[int]] = []
    for index in sorted(indexes):
        if parts and index == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], index]
        else:
            parts.append([index])
    return ",".join(_interval(part) for part in parts)


def _interval(part: list[int]) -> str:
    first, last = part[0], part[-1]
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"


def count_indexes(text: str, completions: int) -> int:
    """Return how many indexes a text has; IndexesError if it is invalid."""
    last, total = -1, 0
    for part in text.split(",") if text else ():
        first, end = _bounds(part, completions)
        if last >= first:
            raise IndexesError(f"non-increasing order, previous: {last}, current: {first}")
        total += end - first + 1
        last = end
    return total


def _bounds(part: str, completions: int) -> tuple[int, int]:
    numbers = part.split("-")
    if len(numbers) > 2:
        raise IndexesError(
            f"the fragment {quote(part)} violates the requirement that an index interval can have"
            " at most two parts separated by '-'"
        )
    first, *rest = (_number(number, completions) for number in numbers)
    if rest and first >= rest[0]:
        raise IndexesError(f"non-increasing order, previous: {first}, current: {rest[0]}")
    return first, rest[0] if rest else first


def _number(text: str, completions: int) -> int:
    if not (text.isascii() and text.isdigit()):
        raise IndexesError(f"cannot convert string to integer for index: {quote(text)}")
    number = parse_int(text)
    if number is None or number >= completions:
        raise IndexesError(f"too large index: {quote(text)}")
    return number


def first_overlap(one: str, other: str) -> int | None:
    """Return the first index that two texts have in common; invalid parts do not count."""
    common = _readable(one) & _readable(other)
    return min(common, default=None)


def _readable(text: str) -> frozenset[int]:
    try:
        return parse_indexes(text)
    except ValueError:
        return frozenset()

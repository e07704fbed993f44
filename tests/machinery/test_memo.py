"""A memory with an end."""

from __future__ import annotations

import pytest

from sully.machinery.memo import LONGEST, LONGEST_VALUE, Memo, ValidValues, memoized


def test_what_is_kept_is_found() -> None:
    memo: Memo[str, int] = Memo(2)

    assert memo.keep("a", 1) == 1
    assert memo.get("a") == 1
    assert memo.get("b") is None


def test_a_full_one_restarts() -> None:
    memo: Memo[int, int] = Memo(3)
    for number in range(4):
        memo.keep(number, number)

    assert memo == {3: 3}


def test_short_texts_are_cached_and_long_ones_are_not() -> None:
    asked: list[str] = []

    @memoized(10)
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    long = "x" * (LONGEST + 1)
    assert [length("a"), length("a"), length(long), length(long)] == [1, 1, len(long), len(long)]
    assert asked == ["a", long, long]


CHECKED_AGAIN = {
    "the same": (b"{}", (), False),
    "by other rules": (b"{}", ("strict",), True),
    "another value": (b"[]", (), True),
    "one with errors": (b"bad", (), True),
    "a long one": (b"x" * (LONGEST_VALUE + 1), (), True),
}


@pytest.mark.parametrize(
    ("value", "rules", "again"), CHECKED_AGAIN.values(), ids=CHECKED_AGAIN.keys()
)
def test_only_what_was_valid_is_not_checked_again(
    value: bytes, rules: tuple[str, ...], again: bool
) -> None:
    valid = ValidValues(10)
    for first in (b"{}", b"bad", b"x" * (LONGEST_VALUE + 1)):
        list(valid.check(first, ["wrong"] if first == b"bad" else []))

    assert list(valid.check(value, ["checked"], *rules)) == (["checked"] if again else [])


def test_what_was_not_checked_to_the_end_is_not_valid() -> None:
    valid = ValidValues(10)
    next(valid.check(b"{}", ["first", "second"]))

    assert not valid.has(b"{}")

"""A memory with an end."""

from __future__ import annotations

from sully.machinery.memo import LONGEST, Memo, memoized


def test_what_is_kept_is_found() -> None:
    memo: Memo[str, int] = Memo(2)

    assert memo.keep("a", 1) == 1
    assert memo.get("a") == 1
    assert memo.get("b") is None


def test_a_full_one_starts_anew() -> None:
    memo: Memo[int, int] = Memo(3)
    for number in range(4):
        memo.keep(number, number)

    assert memo == {3: 3}


def test_short_texts_are_remembered_and_long_ones_are_not() -> None:
    asked: list[str] = []

    @memoized(10)
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    long = "x" * (LONGEST + 1)
    assert [length("a"), length("a"), length(long), length(long)] == [1, 1, len(long), len(long)]
    assert asked == ["a", long, long]

"""What the server keeps of the forms that it derives from records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sully.server.storage.recent_forms import DECODED, RecentForms

if TYPE_CHECKING:
    from sully.store.base import Derived


def test_keeps_the_newest_forms_up_to_a_size() -> None:
    recent = RecentForms(100)
    memos: list[Derived] = [{"body": number} for number in range(5)]
    for memo in memos:
        recent.add(memo, 40)
    assert memos == [{}, {}, {}, {"body": 3}, {"body": 4}]


def test_keeps_the_newest_form_however_large_it_is() -> None:
    recent = RecentForms(100)
    small: Derived = {"body": b""}
    large: Derived = {"body": b"x"}
    recent.add(small, 1)
    recent.add(large, 1000)
    assert (small, large) == ({}, {"body": b"x"})
    recent.add({}, 1)
    assert large == {}


def test_a_decoded_object_weighs_more_than_its_encoding() -> None:
    recent = RecentForms(2 * DECODED)
    decoded: Derived = {"bare": {}}
    recent.add_decoded(decoded, 1)
    recent.add({}, DECODED)
    assert decoded
    recent.add({}, 1)
    assert not decoded


class _Counted:
    """Objects that hold a place in memory as long as a user refers to them."""

    alive = 0

    def __init__(self) -> None:
        _Counted.alive += 1

    def __del__(self) -> None:
        _Counted.alive -= 1


@pytest.mark.parametrize("records", [100, 1000, 10_000])
def test_how_many_are_kept_does_not_depend_on_how_many_there_were(records: int) -> None:
    recent = RecentForms(50 * DECODED)
    held: list[dict[Any, Any]] = []
    for _ in range(records):
        memo: Derived = {"bare": _Counted()}
        held.append(memo)
        recent.add_decoded(memo, 1)
    assert _Counted.alive == 50
    held.clear()
    del recent, memo
    assert _Counted.alive == 0

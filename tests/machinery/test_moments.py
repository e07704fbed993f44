"""Typed objects as bodies: nothing is lost on the way, and moments are as all fields read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from sully.client.objects import from_body, to_body
from sully.client.transport import Kind
from sully.machinery.meta import TrackedMeta, Wire
from sully.machinery.serialization.moments import rewriter

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


class Note(Wire, frozen=True, kw_only=True):
    written_time: datetime | None = None
    words: tuple[str, ...] = ()
    answers: tuple[Note, ...] = ()


class Book(Wire, frozen=True, kw_only=True):
    metadata: TrackedMeta = TrackedMeta()
    notes: tuple[Note, ...] = ()
    by_page: dict[str, Note] = msgspec.field(default_factory=dict)
    read_times: dict[str, datetime] = msgspec.field(default_factory=dict)
    anything: Any = None


class Bare(Wire, frozen=True, kw_only=True):
    names: tuple[str, ...] = ()
    size: int | str = 0


BOOKS = Kind("example.com", "v1", "books", "Book", Book)
IN_PARIS = NOON.astimezone(timezone(timedelta(hours=1)))


@pytest.mark.parametrize(
    ("moment", "written"),
    [
        (NOON, "2026-03-01T12:00:00.000000Z"),
        (NOON.replace(microsecond=1), "2026-03-01T12:00:00.000001Z"),
        (NOON.replace(microsecond=250_000), "2026-03-01T12:00:00.250000Z"),
        (IN_PARIS, "2026-03-01T12:00:00.000000Z"),
    ],
)
def test_a_moment_has_six_digits_wherever_it_stands(moment: datetime, written: str) -> None:
    note = Note(written_time=moment)
    book = Book(
        metadata=TrackedMeta(name="b", creation_timestamp=moment),
        notes=(note, Note(answers=(note,))),
        by_page={"7": note},
        read_times={"first": moment},
    )

    assert to_body(BOOKS, book) == {
        "apiVersion": "example.com/v1",
        "kind": "Book",
        "metadata": {"name": "b", "creationTimestamp": written},
        "notes": [{"writtenTime": written}, {"answers": [{"writtenTime": written}]}],
        "byPage": {"7": {"writtenTime": written}},
        "readTimes": {"first": written},
    }


def test_what_comes_from_a_body_goes_back_into_it() -> None:
    raw = {
        "apiVersion": "example.com/v1",
        "kind": "Book",
        "metadata": {"name": "b", "managedFields": [{"time": "2026-03-01T12:00:00Z"}]},
        "notes": [{"words": ["a", "b"]}],
        "anything": {"time": "2026-03-01T12:00:00Z", "deep": [[1, 2.5, None, True]]},
    }

    assert to_body(BOOKS, from_body(BOOKS, raw)) == raw


def test_a_body_shares_nothing_with_the_object() -> None:
    book = Book(anything={"a": [1]})
    to_body(BOOKS, book)["anything"]["a"].append(2)

    assert book.anything == {"a": [1]}


def test_a_type_without_moments_needs_no_second_look() -> None:
    assert rewriter(Bare) is None
    assert rewriter(Book) is not None

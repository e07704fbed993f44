"""Timestamps and durations: making them, their arithmetic and their parts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from sully.machinery.cel import temporal
from sully.machinery.cel.declarations import Library, library
from sully.machinery.cel.library.standard import Row
from sully.machinery.cel.temporal import checked_duration, checked_timestamp
from sully.machinery.cel.values import NANOS, Duration, Timestamp

_DATE_PARTS: Final = (
    ("getFullYear", "year"),
    ("getMonth", "month"),
    ("getDayOfYear", "day_of_year"),
    ("getDayOfMonth", "day_of_month"),
    ("getDate", "day_of_month_1_based"),
    ("getDayOfWeek", "day_of_week"),
    ("getHours", "hours"),
    ("getMinutes", "minutes"),
    ("getSeconds", "seconds"),
    ("getMilliseconds", "milliseconds"),
)


def _making() -> Iterator[Row]:
    yield "timestamp_to_timestamp", "timestamp(timestamp) -> timestamp", lambda value: value
    yield "string_to_timestamp", "timestamp(string) -> timestamp", temporal.parse_timestamp
    yield (
        "int64_to_timestamp",
        "timestamp(int) -> timestamp",
        lambda value: checked_timestamp(value * NANOS),
    )
    yield "duration_to_duration", "duration(duration) -> duration", lambda value: value
    yield "string_to_duration", "duration(string) -> duration", temporal.parse_duration
    yield "int64_to_duration", "duration(int) -> duration", checked_duration


def _later(a: Any, b: Any) -> Timestamp:
    return checked_timestamp(a.nanos + b.nanos)


def _arithmetic() -> Iterator[Row]:
    yield "add_timestamp_duration", "_+_(timestamp, duration) -> timestamp", _later
    yield "add_duration_timestamp", "_+_(duration, timestamp) -> timestamp", _later
    yield (
        "add_duration_duration",
        "_+_(duration, duration) -> duration",
        lambda a, b: checked_duration(a.nanos + b.nanos),
    )
    yield (
        "subtract_timestamp_timestamp",
        "_-_(timestamp, timestamp) -> duration",
        lambda a, b: checked_duration(a.nanos - b.nanos),
    )
    yield (
        "subtract_timestamp_duration",
        "_-_(timestamp, duration) -> timestamp",
        lambda a, b: checked_timestamp(a.nanos - b.nanos),
    )
    yield (
        "subtract_duration_duration",
        "_-_(duration, duration) -> duration",
        lambda a, b: checked_duration(a.nanos - b.nanos),
    )


def _parts() -> Iterator[Row]:
    for function, suffix in _DATE_PARTS:
        run = partial(_part, function)
        yield f"timestamp_to_{suffix}", f"timestamp:{function}() -> int", run
        yield f"timestamp_to_{suffix}_with_tz", f"timestamp:{function}(string) -> int", run
        if suffix in ("hours", "minutes", "seconds", "milliseconds"):
            measured = partial(_duration_part, function)
            yield f"duration_to_{suffix}", f"duration:{function}() -> int", measured


def _part(name: str, value: Timestamp, zone: str = "") -> int:
    return temporal.part(value, name, zone)


def _duration_part(name: str, value: Duration) -> int:
    return temporal.duration_part(value, name)


def dates() -> Library:
    return library((*_making(), *_arithmetic(), *_parts()))

"""Durations and timestamps as text, and the parts of a date.

The forms are Go's: `1h30m`, and RFC 3339 with up to nine digits after the second.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final

from sully.machinery.cel.errors import EvaluationError
from sully.machinery.cel.values import MAX_INT, MIN_INT, NANOS, Duration, Timestamp

_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": NANOS,
    "m": 60 * NANOS,
    "h": 3600 * NANOS,
}
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_STAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
_OFFSET: Final = re.compile(r"([+-]?)([0-9]{1,2}):([0-9]{2})")
_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)
_MAX_TEXT: Final = 200
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MIN_STAMP: Final = int((_FIRST - _EPOCH).total_seconds()) * NANOS
MAX_STAMP: Final = 253402300799 * NANOS + NANOS - 1


def parse_duration(text: str) -> Duration:
    """Read a duration such as `1h30m` or `-1.5s`."""
    if len(text) > _MAX_TEXT:
        raise EvaluationError(f'time: invalid duration "{text}"')
    sign, body = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    if body == "0":
        return Duration(0)
    total, position = 0, 0
    while position < len(body):
        part = _PART.match(body, position)
        if part is None or not (part.group(1) or part.group(2)):
            raise EvaluationError(f'time: invalid duration "{text}"')
        whole, fraction, unit = part.groups()
        size = _UNITS[unit]
        total += int(whole or 0) * size + _fraction(fraction or "", size)
        position = part.end()
    if not body:
        raise EvaluationError(f'time: invalid duration "{text}"')
    return checked_duration(sign * total)


def _fraction(digits: str, size: int) -> int:
    return int(digits) * size // 10 ** len(digits) if digits else 0


def checked_duration(nanos: int) -> Duration:
    """Return a duration that fits into 64 bits of nanoseconds, or fail."""
    if MIN_INT <= nanos <= MAX_INT:
        return Duration(nanos)
    raise EvaluationError("duration overflow")


def format_duration(value: Duration) -> str:
    """Return the seconds in decimal, as `1.5s`."""
    sign, nanos = ("-", -value.nanos) if value.nanos < 0 else ("", value.nanos)
    seconds, rest = divmod(nanos, NANOS)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{sign}{seconds}{fraction}s"


def parse_timestamp(text: str) -> Timestamp:
    """Read an RFC 3339 time."""
    match = _STAMP.fullmatch(text)
    if match is None:
        raise EvaluationError(f'parsing time "{text}": cannot parse as RFC 3339')
    *numbers, fraction, sign, hours, minutes = match.groups()
    try:
        year, month, day, hour, minute, second = map(int, numbers)
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise EvaluationError(f'parsing time "{text}": value out of range') from None
    nanos = _whole_seconds(moment) * NANOS + int((fraction or "0")[:9].ljust(9, "0"))
    if sign:
        shift = (int(hours) * 60 + int(minutes)) * 60 * NANOS
        nanos += -shift if sign == "+" else shift
    return checked_timestamp(nanos)


def _whole_seconds(moment: datetime) -> int:
    since = moment - _EPOCH
    return since.days * 86400 + since.seconds


def checked_timestamp(nanos: int) -> Timestamp:
    """Return a timestamp between the years 1 and 9999, or fail."""
    if MIN_STAMP <= nanos <= MAX_STAMP:
        return Timestamp(nanos)
    raise EvaluationError("timestamp overflow")


def format_timestamp(value: Timestamp) -> str:
    """Return RFC 3339 in UTC with as many digits as are needed."""
    rest = value.nanos % NANOS
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    moment = value.utc
    date = f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}"
    return f"{date}T{moment.hour:02d}:{moment.minute:02d}:{moment.second:02d}{fraction}Z"


def zone(name: str) -> tzinfo:
    """Return a time zone by its name or by an offset such as `-08:00`."""
    offset = _OFFSET.fullmatch(name)
    if offset:
        sign, hours, minutes = offset.groups()
        span = timedelta(hours=int(hours), minutes=int(minutes))
        return timezone(-span if sign == "-" else span)
    from zoneinfo import ZoneInfo  # Deferred: few expressions name a zone.

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {name}") from None


def part(value: Timestamp, name: str, zone_name: str = "") -> int:
    """Return one part of a date, counted as the language does: months from 0, days from 0 or 1."""
    try:
        moment = value.utc.astimezone(zone(zone_name)) if zone_name else value.utc
    except OverflowError:
        raise EvaluationError("timestamp overflow") from None
    match name:
        case "getFullYear":
            return moment.year
        case "getMonth":
            return moment.month - 1
        case "getDate":
            return moment.day
        case "getDayOfMonth":
            return moment.day - 1
        case "getDayOfWeek":
            return moment.isoweekday() % 7
        case "getDayOfYear":
            return moment.timetuple().tm_yday - 1
        case _:
            return _clock_part(moment, name)


def _clock_part(moment: datetime, name: str) -> int:
    clock = {
        "getHours": moment.hour,
        "getMinutes": moment.minute,
        "getSeconds": moment.second,
        "getMilliseconds": moment.microsecond // 1000,
    }
    return clock[name]


def duration_part(value: Duration, name: str) -> int:
    """Return a duration in whole units, or its milliseconds past the second."""
    units = {"getHours": 3600 * NANOS, "getMinutes": 60 * NANOS, "getSeconds": NANOS}
    sign = -1 if value.nanos < 0 else 1
    if name == "getMilliseconds":
        return sign * (abs(value.nanos) % NANOS // 10**6)
    return sign * (abs(value.nanos) // units[name])

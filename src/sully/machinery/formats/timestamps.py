"""Times on the wire: `Time` has whole seconds, `MicroTime` has microseconds, both are UTC.

What time it is comes from runtime/clock.py; here are only values and their texts.
"""

import re
from datetime import UTC, datetime, timedelta, timezone

from sully.machinery.memo import memoized

_LAYOUT = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
_SHAPE = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T](\d\d):(\d\d):(\d\d)([.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII
)
# What Go's parser expects piece by piece, for its error texts.
_PIECES = tuple(
    (re.compile(pattern, re.ASCII), name)
    for pattern, name in (
        (r"\d{4}", "2006"),
        (r"-", "-"),
        (r"\d\d", "01"),
        (r"-", "-"),
        (r"\d\d", "02"),
        (r"T", "T"),
        (r"\d\d", "15"),
        (r":", ":"),
        (r"\d\d", "04"),
        (r":", ":"),
        (r"\d\d", "05"),
    )
)


END_OF_TIME = datetime.max.replace(tzinfo=UTC)
_START_OF_TIME = datetime.min.replace(tzinfo=UTC)


class TimeError(ValueError):
    """A text that is not a valid time; the message is the one clients know."""


def parse_time(text: str) -> datetime:
    """Read an RFC 3339 text into UTC."""
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise TimeError(_complaint(text, _LAYOUT, fraction=False))
    return _build(text, match)


def parse_micro_time(text: str) -> datetime:
    """Read a time that must carry six digits of fraction."""
    match = _SHAPE.fullmatch(text)
    if match is None or match[7] is None or len(match[7]) != 7:
        raise TimeError(_complaint(text, _MICRO_LAYOUT, fraction=True))
    return _build(text, match)


def _build(text: str, match: re.Match[str]) -> datetime:
    year, month, day, hour, minute, second = (int(match[i]) for i in range(1, 7))
    micros = int((match[7] or ".0")[1:7].ljust(6, "0"))
    try:
        local = datetime(year, month, day, hour, minute, second, micros, tzinfo=_zone(match[8]))
        return local.astimezone(UTC)
    except (ValueError, OverflowError):
        raise TimeError(
            f"parsing time {_quoted(text)}: {_range(month, hour, minute, second)} out of range"
        ) from None


def _range(month: int, hour: int, minute: int, second: int) -> str:
    if not 1 <= month <= 12:
        return "month"
    if hour > 23:
        return "hour"
    if minute > 59:
        return "minute"
    return "second" if second > 59 else "day"


def _zone(text: str) -> timezone:
    if text == "Z":
        return UTC
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[4:6]))
    return timezone(-offset if text[0] == "-" else offset)


_RANGES = {
    "01": ("month", 1, 12),
    "15": ("hour", 0, 23),
    "04": ("minute", 0, 59),
    "05": ("second", 0, 59),
}
"""What Go checks as soon as it has read a piece; days come at the end."""


def _complaint(text: str, layout: str, *, fraction: bool) -> str:
    """Return the error of Go's parser, which reads piece by piece."""
    rest = text
    for pattern, name in _PIECES:
        match = pattern.match(rest)
        if match is None:
            return _cannot_parse(text, layout, rest, name)
        what, least, most = _RANGES.get(name, ("", 0, 0))
        if what and not least <= int(match[0]) <= most:
            return f"parsing time {_quoted(text)}: {what} out of range"
        rest = rest[match.end() :]
    if fraction and not re.match(r"[.,]\d{6}", rest, re.ASCII):
        return _cannot_parse(text, layout, rest, ".000000")
    rest = rest[7:] if fraction else re.sub(r"^[.,]\d+", "", rest)
    if zone := re.match(r"Z|[+-]\d\d:\d\d", rest, re.ASCII):
        return f"parsing time {_quoted(text)}: extra text: {_quoted(rest[zone.end() :])}"
    return _cannot_parse(text, layout, rest, "Z07:00")


def _quoted(text: str) -> str:
    """Quote as Go's package for times does: byte by byte, in hexadecimal what is not ASCII."""
    shown = "".join(
        f"\\x{byte:02x}"
        if not 0x20 <= byte < 0x80
        else f"\\{byte:c}"
        if byte in b'"\\'
        else chr(byte)
        for byte in text.encode(errors="replace")
    )
    return f'"{shown}"'


def _cannot_parse(text: str, layout: str, rest: str, name: str) -> str:
    where = f"parsing time {_quoted(text)} as {_quoted(layout)}"
    return f"{where}: cannot parse {_quoted(rest)} as {_quoted(name)}"


def later(moment: datetime, by: timedelta | float) -> datetime:
    """Add a duration, or seconds, to a time, up to the dates that can be represented.

    Whoever writes an object chooses its times and durations: never add them in another way.
    """
    try:
        return moment + (by if isinstance(by, timedelta) else timedelta(seconds=by))
    except OverflowError:
        is_before = by < timedelta() if isinstance(by, timedelta) else by < 0
        return _START_OF_TIME if is_before else END_OF_TIME


# Every write formats a few times; isoformat takes twice as long, and strftime six times.
_WHOLE = "%04d-%02d-%02dT%02d:%02d:%02dZ"
_MICRO = "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ"


def format_time(moment: datetime) -> str:
    """Write a time with whole seconds; anything finer is lost on the wire."""
    at = _utc(moment)
    return _WHOLE % (at.year, at.month, at.day, at.hour, at.minute, at.second)


def format_micro_time(moment: datetime) -> str:
    """Write a time with microseconds."""
    at = _utc(moment)
    return _MICRO % (at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond)


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


# Every write of an object repeats its times.
@memoized(8192)
def canonical_time(text: str) -> str:
    """Bring a time into the form the server writes."""
    # Most times are in canonical form already and need no parsing.
    if len(text) == 20 and text[-1] == "Z" and text[10] == "T" and "." not in text:
        parse_time(text)
        return text
    return format_time(parse_time(text))


def canonical_micro_time(text: str) -> str:
    """Bring a time with microseconds into the form the server writes."""
    return format_micro_time(parse_micro_time(text))


def age(since: datetime, now: datetime) -> str:
    """Return an age as tables print it: 42s, 3m10s, 5h, 12d, 2y30d."""
    seconds = int((now - since).total_seconds())
    if seconds < -1:
        return "<invalid>"
    return human_duration(max(seconds, 0))


def human_duration(seconds: int) -> str:
    """Shorten a duration to at most two units."""
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    years = days // 365
    # Up to which length, the large unit, and the small one where it still matters.
    steps = (
        (seconds < 120, f"{seconds}s"),
        (minutes < 10, _two(minutes, "m", seconds % 60, "s")),
        (minutes < 180, f"{minutes}m"),
        (hours < 8, _two(hours, "h", minutes % 60, "m")),
        (hours < 48, f"{hours}h"),
        (hours < 192, _two(days, "d", hours % 24, "h")),
        (days < 730, f"{days}d"),
        (years < 8, _two(years, "y", days % 365, "d")),
    )
    return next((text for fits, text in steps if fits), f"{years}y")


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"

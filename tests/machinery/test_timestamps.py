"""Times on the wire: canonical forms, Go's complaints, ages."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sully.machinery.formats.timestamps import (
    TimeError,
    age,
    canonical_micro_time,
    canonical_time,
    format_micro_time,
    format_time,
    human_duration,
    later,
    parse_micro_time,
    parse_time,
)

MOMENTS = st.datetimes(
    min_value=datetime(1000, 1, 2),  # noqa: DTZ001 - the strategy adds the zone
    max_value=datetime(9999, 12, 30),  # noqa: DTZ001 - as above
    timezones=st.sampled_from(
        [UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-8))]
    ),
)

TIMES = {
    "as the server writes it": ("2030-01-02T03:04:05Z", "2030-01-02T03:04:05Z"),
    "fractions are cut off": ("2030-01-02T03:04:05.999999999Z", "2030-01-02T03:04:05Z"),
    "a comma, as Go allows": ("2030-01-02T03:04:05,5Z", "2030-01-02T03:04:05Z"),
    "east": ("2030-01-02T03:04:05+05:30", "2030-01-01T21:34:05Z"),
    "west, over midnight": ("2030-12-31T23:00:00-02:00", "2031-01-01T01:00:00Z"),
    "leap day": ("2028-02-29T00:00:00Z", "2028-02-29T00:00:00Z"),
    "long ago": ("0900-01-01T00:00:00Z", "0900-01-01T00:00:00Z"),
    "long ago, elsewhere": ("0900-01-01T00:00:00+00:00", "0900-01-01T00:00:00Z"),
}


@pytest.mark.parametrize(("text", "want"), TIMES.values(), ids=TIMES.keys())
def test_times(text: str, want: str) -> None:
    assert canonical_time(text) == want


MICRO_TIMES = {
    "as the server writes it": ("2030-01-02T03:04:05.000006Z", "2030-01-02T03:04:05.000006Z"),
    "elsewhere": ("2030-01-02T03:04:05.600000+01:00", "2030-01-02T02:04:05.600000Z"),
}


@pytest.mark.parametrize(("text", "want"), MICRO_TIMES.values(), ids=MICRO_TIMES.keys())
def test_micro_times(text: str, want: str) -> None:
    assert canonical_micro_time(text) == want


def _cannot(text: str, rest: str, piece: str) -> str:
    layout = "2006-01-02T15:04:05Z07:00"
    return f'parsing time "{text}" as "{layout}": cannot parse "{rest}" as "{piece}"'


BAD_TIMES = {
    "empty": ("", _cannot("", "", "2006")),
    "a word": ("soon", _cannot("soon", "soon", "2006")),
    "no month": ("2030", _cannot("2030", "", "-")),
    "a short month": ("2030-1-02", _cannot("2030-1-02", "1-02", "01")),
    "no T": ("2030-01-02 03:04:05Z", _cannot("2030-01-02 03:04:05Z", " 03:04:05Z", "T")),
    "no seconds": ("2030-01-02T03:04Z", _cannot("2030-01-02T03:04Z", "Z", ":")),
    "no zone": ("2030-01-02T03:04:05", _cannot("2030-01-02T03:04:05", "", "Z07:00")),
    "small z": ("2030-01-02T03:04:05z", _cannot("2030-01-02T03:04:05z", "z", "Z07:00")),
    "more behind it": (
        "2030-01-02T03:04:05Zx",
        'parsing time "2030-01-02T03:04:05Zx": extra text: "x"',
    ),
    "more behind an offset": (
        "2030-01-02T03:04:05+02:00/z",
        'parsing time "2030-01-02T03:04:05+02:00/z": extra text: "/z"',
    ),
    "a range before a missing piece": (
        "2030-13-02",
        'parsing time "2030-13-02": month out of range',
    ),
    "month 13": ("2030-13-02T03:04:05Z", 'parsing time "2030-13-02T03:04:05Z": month out of range'),
    "day 30 of February": (
        "2030-02-30T03:04:05Z",
        'parsing time "2030-02-30T03:04:05Z": day out of range',
    ),
    "no leap day": (
        "2030-02-29T00:00:00Z",
        'parsing time "2030-02-29T00:00:00Z": day out of range',
    ),
    "hour 24": ("2030-01-02T24:00:00Z", 'parsing time "2030-01-02T24:00:00Z": hour out of range'),
    "minute 60": (
        "2030-01-02T03:60:00Z",
        'parsing time "2030-01-02T03:60:00Z": minute out of range',
    ),
    "second 60": (
        "2030-01-02T03:04:60Z",
        'parsing time "2030-01-02T03:04:60Z": second out of range',
    ),
    "digits of another script": (
        "２030-01-02T03:04:05Z",
        _cannot(r"\xef\xbc\x92030-01-02T03:04:05Z", r"\xef\xbc\x92030-01-02T03:04:05Z", "2006"),
    ),
    "a letter beyond ASCII": (
        "é",
        _cannot(r"\xc3\xa9", r"\xc3\xa9", "2006"),
    ),
}


@pytest.mark.parametrize(("text", "want"), BAD_TIMES.values(), ids=BAD_TIMES.keys())
def test_bad_times(text: str, want: str) -> None:
    with pytest.raises(TimeError) as caught:
        canonical_time(text)

    assert str(caught.value) == want


FRACTIONS = {
    "none": ("", "Z", ".000000"),
    "too short": (".5", ".5Z", ".000000"),
    "too long": (".1234567", "7Z", "Z07:00"),
}


@pytest.mark.parametrize(("fraction", "rest", "piece"), FRACTIONS.values(), ids=FRACTIONS.keys())
def test_micro_times_have_six_digits(fraction: str, rest: str, piece: str) -> None:
    text = f"2030-01-02T03:04:05{fraction}Z"

    with pytest.raises(TimeError) as caught:
        parse_micro_time(text)

    assert str(caught.value) == (
        f'parsing time "{text}" as "2006-01-02T15:04:05.000000Z07:00": cannot parse'
        f' "{rest}" as "{piece}"'
    )


@given(MOMENTS)
def test_times_come_back(moment: datetime) -> None:
    assert parse_time(format_time(moment)) == moment.replace(microsecond=0)
    assert parse_micro_time(format_micro_time(moment)) == moment


@given(MOMENTS)
def test_canonical_is_canonical(moment: datetime) -> None:
    text = canonical_time(moment.isoformat().replace("+00:00", "Z"))

    assert canonical_time(text) == text


@given(st.text(max_size=30) | st.text("0123456789-:TZ.+", max_size=30))
def test_any_text_is_a_time_or_refused(text: str) -> None:
    complaint = ""
    try:
        canonical_time(text)
    except TimeError as error:
        complaint = str(error)

    assert not complaint or complaint.startswith("parsing time ")


AGES = {
    0: "0s",
    119: "119s",
    120: "2m",
    121: "2m1s",
    599: "9m59s",
    600: "10m",
    659: "10m",
    3 * 3600 - 1: "179m",
    3 * 3600: "3h",
    3 * 3600 + 60: "3h1m",
    8 * 3600 - 1: "7h59m",
    8 * 3600: "8h",
    48 * 3600 - 1: "47h",
    48 * 3600: "2d",
    49 * 3600: "2d1h",
    8 * 86400 - 1: "7d23h",
    8 * 86400: "8d",
    729 * 86400: "729d",
    730 * 86400: "2y",
    800 * 86400: "2y70d",
    8 * 365 * 86400: "8y",
}


@pytest.mark.parametrize(("seconds", "want"), AGES.items())
def test_durations(seconds: int, want: str) -> None:
    assert human_duration(seconds) == want


def test_ages() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)

    assert age(now - timedelta(seconds=5), now) == "5s"
    # Clocks differ a little; what is far in the future is wrong.
    assert age(now + timedelta(seconds=1), now) == "0s"
    assert age(now + timedelta(seconds=5), now) == "<invalid>"


LATEST = datetime.max.replace(tzinfo=UTC)
EARLIEST = datetime.min.replace(tzinfo=UTC)
LATER = {
    "seconds": (EARLIEST, 1.5, EARLIEST + timedelta(seconds=1.5)),
    "a duration": (LATEST, -timedelta(days=1), LATEST - timedelta(days=1)),
    "after the last date": (LATEST, 1, LATEST),
    "a duration after the last date": (LATEST, timedelta(seconds=1), LATEST),
    "before the first date": (EARLIEST, -1, EARLIEST),
    "a duration before the first date": (EARLIEST, -timedelta(seconds=1), EARLIEST),
    "more seconds than any duration": (EARLIEST, 2**63 - 1, LATEST),
    "fewer seconds than any duration": (LATEST, -(2**63), EARLIEST),
}


@pytest.mark.parametrize(("moment", "by", "want"), LATER.values(), ids=LATER.keys())
def test_later(moment: datetime, by: timedelta | float, want: datetime) -> None:
    assert later(moment, by) == want

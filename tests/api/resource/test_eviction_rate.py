"""Rates of evictions: what is parsed, what counts, what is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sully.api.resource.eviction_rate import (
    BURST_ANNOTATION,
    RATE_ANNOTATION,
    EvictionRate,
    parse_burst,
    parse_rate,
    rate_of,
)

MINUTE = timedelta(minutes=1)
PARSED = {
    "1": (EvictionRate(1, burst=1), "1/s"),
    "25/s": (EvictionRate(25), "25/s"),
    "10/m": (EvictionRate(10, MINUTE), "10/m"),
    "1/5m": (EvictionRate(1, 5 * MINUTE, burst=1), "1/5m"),
    "2/90s": (EvictionRate(2, timedelta(seconds=90), burst=2), "2/90s"),
    "3/1h": (EvictionRate(3, timedelta(hours=1), burst=3), "3/h"),
}


@pytest.mark.parametrize(("text", "want"), PARSED.items(), ids=PARSED)
def test_parse_rate(text: str, want: tuple[EvictionRate, str]) -> None:
    rate = parse_rate(text)

    assert (rate, str(rate)) == want
    assert parse_rate(str(rate)) == rate


@pytest.mark.parametrize("text", ["", "0", "-1", "1001", "1/", "1/0s", "1/d", "x", "1 /s", "1.5"])
def test_what_is_not_a_rate(text: str) -> None:
    with pytest.raises(ValueError, match="invalid rate"):
        parse_rate(text)


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "1001"])
def test_what_is_not_a_burst(text: str) -> None:
    with pytest.raises(ValueError, match="invalid burst"):
        parse_burst(text)


RATES = {
    "nothing": (None, {}, None),
    "a field": (5, {}, EvictionRate(5)),
    "a field and a burst": (5, {BURST_ANNOTATION: "1"}, EvictionRate(5, burst=1)),
    "an annotation": (None, {RATE_ANNOTATION: "2/m"}, EvictionRate(2, MINUTE, burst=2)),
    "the slower one": (1, {RATE_ANNOTATION: "2/m"}, EvictionRate(2, MINUTE, burst=2)),
    "the slower one is the field": (1, {RATE_ANNOTATION: "2/s"}, EvictionRate(1)),
    "what is invalid does not count": (
        3,
        {RATE_ANNOTATION: "fast", BURST_ANNOTATION: "all"},
        EvictionRate(3),
    ),
    "a burst of nothing": (None, {BURST_ANNOTATION: "1"}, None),
}


@pytest.mark.parametrize(("field", "annotations", "want"), RATES.values(), ids=RATES)
def test_rate_of(field: int | None, annotations: dict[str, str], want: EvictionRate | None) -> None:
    assert rate_of(field, annotations) == want

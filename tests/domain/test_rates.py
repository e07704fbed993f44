"""How fast pods may be evicted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sully.api.resource.types import DeviceTaint
from sully.domain.devices.rules import sourced
from sully.domain.devices.taints import Origin, SourcedTaint
from sully.domain.eviction.rates import (
    BURST,
    MINUTE,
    Bucket,
    BucketKey,
    Cap,
    EvictionRate,
    Limit,
    bucket_after,
    limits,
)
from sully.testing.builders import rule, select, taint
from sully.testing.clock import NOON


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def departures(bucket: Bucket, pods: int, *, from_: float = 0) -> list[float]:
    """Evict each pod as soon as it may be; return after how many seconds they were evicted."""
    result, now = [], at(from_)
    for _ in range(pods):
        now = max(now, bucket.opens_at())
        bucket = bucket.take(now)
        result.append((now - NOON).total_seconds())
    return result


PACES = {
    "one a second": (1, [0.0] * 10 + [1.0, 2.0, 3.0]),
    "two a second": (2, [0.0] * 10 + [0.5, 1.0, 1.5]),
    "ten a second": (10, [0.0] * 10 + [0.1, 0.2, 0.3]),
    "more than there are microseconds": (10**9, [0.0] * 13),
}


@pytest.mark.parametrize(("rate", "want"), PACES.values(), ids=PACES.keys())
def test_a_burst_of_ten_and_then_the_rate(rate: int, want: list[float]) -> None:
    assert departures(Bucket(EvictionRate(rate)), 13) == want


def test_tokens_come_back_up_to_the_burst() -> None:
    bucket = bucket_after(EvictionRate(1), [NOON] * 10)

    assert departures(bucket, 3, from_=2) == [2, 2, 3]
    assert departures(bucket, 12, from_=3600) == [3600.0] * 10 + [3601, 3602]


def test_a_token_that_was_not_used_goes_back() -> None:
    empty = bucket_after(EvictionRate(1), [NOON] * 10)

    assert empty.opens_at() == at(1)
    assert empty.put_back().opens_at() == NOON


def test_a_bucket_is_idle_when_all_tokens_are_back() -> None:
    bucket = bucket_after(EvictionRate(2), [NOON] * 4)

    assert not bucket.is_full(at(1.9))
    assert bucket.is_full(at(2))
    assert Bucket(EvictionRate(2)).is_full(NOON)


def test_another_rate_finds_as_many_tokens_as_there_are() -> None:
    half = bucket_after(EvictionRate(1), [NOON] * 10).at_rate(EvictionRate(1), at(5))

    assert departures(half, 7, from_=5) == [5.0] * 5 + [6, 7]
    assert departures(half.at_rate(EvictionRate(10), at(5)), 7, from_=5) == [5.0] * 5 + [5.1, 5.2]


@given(st.integers(1, 50), st.lists(st.floats(0, 60), min_size=1, max_size=60))
def test_never_more_than_burst_and_rate(rate: int, arrivals: list[float]) -> None:
    bucket, left = Bucket(EvictionRate(rate)), []
    for arrival in sorted(arrivals):
        now = max(at(arrival), bucket.opens_at())
        bucket = bucket.take(now)
        left.append(now)

    for index, first in enumerate(left):
        for number, last in enumerate(left[index:], start=1):
            # A microsecond for each token may be lost in rounding.
            most = BURST + ((last - first).total_seconds() + number * 1e-6) * rate + 1e-6
            assert number <= most


@given(st.integers(1, 20), st.lists(st.floats(0, 30), max_size=30), st.floats(30, 60))
def test_what_was_written_down_gives_the_same_bucket(
    rate: int, arrivals: list[float], later: float
) -> None:
    lived, left = Bucket(EvictionRate(rate)), []
    for arrival in sorted(arrivals):
        now = max(at(arrival), lived.opens_at())
        lived = lived.take(now)
        left.append(now)

    assert departures(bucket_after(EvictionRate(rate), left), 12, from_=later) == departures(
        lived, 12, from_=later
    )


def rated(rate: int | None, **more: Any) -> DeviceTaint:
    return msgspec.structs.replace(taint(**more), evictions_per_second=rate)


def by_rule(name: str, rate: int | None, group: str = "") -> SourcedTaint:
    labels = {"sully.dev/taint": group} if group else {}
    return sourced(rule(name, select(), rated(rate), labels=labels))


def by_driver(rate: int | None, *, name: str = "slice-1", **more: str) -> SourcedTaint:
    return SourcedTaint(rated(rate, **more), Origin("ResourceSlice", name, f"uid-{name}"))


MINE = BucketKey(key="example.com/broken", effect="NoExecute")


@dataclass(frozen=True)
class Case:
    taints: tuple[SourcedTaint, ...]
    want: tuple[Limit, ...] = ()
    default: int | None = None


LIMITS = {
    "a rule": Case((by_rule("a", 5),), (Limit(BucketKey(uid="uid-a"), EvictionRate(5)),)),
    "two rules": Case(
        (by_rule("a", 5), by_rule("b", 7)),
        (
            Limit(BucketKey(uid="uid-a"), EvictionRate(5)),
            Limit(BucketKey(uid="uid-b"), EvictionRate(7)),
        ),
    ),
    "rules that were made together": Case(
        (by_rule("a", 5, "glob"), by_rule("b", 5, "glob"), by_rule("c", 5, "other")),
        (
            Limit(BucketKey(group="glob"), EvictionRate(5)),
            Limit(BucketKey(group="other"), EvictionRate(5)),
        ),
    ),
    "a taint of a driver": Case((by_driver(5),), (Limit(MINE, EvictionRate(5)),)),
    "equal taints of a driver on two devices share": Case(
        (by_driver(5), by_driver(5, name="slice-2")), (Limit(MINE, EvictionRate(5)),)
    ),
    "another value is another taint": Case(
        (by_driver(5), by_driver(5, value="x")),
        (Limit(MINE, EvictionRate(5)), Limit(MINE._replace(value="x"), EvictionRate(5))),
    ),
    "another rate is another taint": Case(
        (by_driver(5), by_driver(6)), (Limit(MINE, EvictionRate(5)), Limit(MINE, EvictionRate(6)))
    ),
    "no rate, so immediately": Case((by_rule("a", None),)),
    "one without a rate is the fastest": Case((by_rule("a", 5), by_driver(None))),
    "the default for those without": Case(
        (by_rule("a", 5), by_driver(None)),
        (Limit(BucketKey(uid="uid-a"), EvictionRate(5)), Limit(MINE, EvictionRate(2))),
        default=2,
    ),
}


@pytest.mark.parametrize("case", LIMITS.values(), ids=LIMITS.keys())
def test_limits(case: Case) -> None:
    assert limits(case.taints, default=case.default) == case.want


def test_a_cap_holds_in_any_minute() -> None:
    cap, left, now = Cap(3), [], NOON
    for _ in range(7):
        now = max(now, cap.opens_at()) + timedelta(seconds=10)
        cap.take(now)
        left.append((now - NOON).total_seconds())

    assert left == [10, 20, 30, 80, 90, 100, 150]


def test_a_cap_counts_earlier_evictions() -> None:
    cap = Cap(2, [at(5), NOON, at(-30)])

    assert cap.opens_at() == NOON + MINUTE


def test_a_cap_forgets_pods_that_were_not_evicted() -> None:
    cap = Cap(1)
    cap.take(NOON)
    assert cap.opens_at() == NOON + MINUTE

    cap.put_back(NOON)

    assert cap.opens_at() <= NOON


@given(st.integers(1, 5), st.lists(st.floats(0, 300), max_size=40))
def test_never_more_than_the_cap_in_a_minute(most: int, arrivals: list[float]) -> None:
    cap = Cap(most)
    left: list[datetime] = []
    for arrival in sorted(arrivals):
        now = max(at(arrival), cap.opens_at(), *left[-1:])
        cap.take(now)
        left.append(now)

    for first in left:
        assert sum(first <= item < first + MINUTE for item in left) <= most

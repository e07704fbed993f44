"""Which pod may be evicted now at the rates of its taints, and which is requeued when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from sully.client.transport import Key
from sully.domain.eviction.rates import BucketKey, EvictionRate, Limit
from sully.evictor.rate_limiter import NOT_FIRST, EvictionRateLimiter
from sully.testing.clock import NOON

GO = timedelta(0)
NOT_YET = timedelta.max
SLOW = Limit(BucketKey(uid="slow"), EvictionRate(1))
FAST = Limit(BucketKey(uid="fast"), EvictionRate(10))


def pod(number: int) -> Key:
    return Key("a", f"p-{number}")


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


class Before:
    """Evictions before the process started."""

    def __init__(self, *times: datetime) -> None:
        self._times = times

    def times(self, now: datetime, bucket: BucketKey | None = None) -> Iterable[datetime]:
        return self._times


class Queues:
    """A rate limiter, which pods it requeued, and which wait for a time."""

    def __init__(self, *before: datetime, most: int | None = None) -> None:
        self.requeued: list[Key] = []
        self.waiting: list[tuple[Key, datetime]] = []
        self.limiter = EvictionRateLimiter(
            self.requeued.append,
            lambda key, until: self.waiting.append((key, until)),
            past=Before(*before),
            max_per_minute=most,
        )

    def ask(self, number: int, *limits: Limit, after: float = 0) -> timedelta:
        """Return how long a pod has to wait."""
        result = self.limiter.take(pod(number), limits, at(after))
        if result is None:
            return GO
        return NOT_YET if result is NOT_FIRST else result - at(after)

    def take_burst(self, *limits: Limit) -> None:
        for number in range(100, 110):
            assert self.ask(number, *limits) == GO
            self.limiter.evicted(pod(number))


def test_without_limits_everyone_is_evicted_and_nothing_is_kept() -> None:
    queues = Queues()

    assert [queues.ask(number) for number in range(50)] == [GO] * 50
    assert queues.limiter.size == 0


def test_the_first_in_line_knows_its_time_and_lets_the_next_wait() -> None:
    queues = Queues()
    queues.take_burst(SLOW)

    assert queues.ask(1, SLOW) == timedelta(seconds=1)
    assert queues.ask(2, SLOW) == NOT_YET
    assert queues.requeued == []
    assert queues.ask(2, SLOW, after=1) == NOT_YET  # it is not its turn
    assert queues.ask(1, SLOW, after=1) == GO
    assert (queues.requeued, queues.waiting) == ([], [(pod(2), at(2))])
    assert queues.ask(2, SLOW, after=1) == timedelta(seconds=1)


@dataclass(frozen=True)
class Next:
    """The pod that is first when another one got a token."""

    limits: tuple[Limit, ...] = (SLOW,)
    tokens: int = 0
    """What is left in the bucket."""
    most: int | None = None
    waits: bool = False
    """Its time is known; otherwise it is requeued, and finds out."""


WHO_IS_NEXT = {
    "no token is left": Next(waits=True),
    "a token is left": Next(tokens=1),
    "a faster rate may admit it": Next(limits=(SLOW, FAST)),
    "the limit of the cluster may delay it": Next(most=100),
}


@pytest.mark.parametrize("case", WHO_IS_NEXT.values(), ids=WHO_IS_NEXT.keys())
def test_the_next_pod_waits_if_its_time_is_known(case: Next) -> None:
    queues = Queues(most=case.most)
    queues.take_burst(SLOW, FAST)
    queues.ask(1, SLOW)
    queues.ask(2, *case.limits)

    assert queues.ask(1, SLOW, after=1 + case.tokens) == GO
    assert [key for key, _ in queues.waiting] == ([pod(2)] if case.waits else [])
    assert queues.requeued == ([] if case.waits else [pod(2)])


def test_a_retry_costs_one_token() -> None:
    queues = Queues()

    assert [queues.ask(1, SLOW) for _ in range(30)] == [GO] * 30
    queues.limiter.evicted(pod(1))

    assert [queues.ask(number, SLOW) for number in range(2, 12)] == [GO] * 9 + [
        timedelta(seconds=1)
    ]


def test_a_pod_that_stays_returns_its_token_and_requeues_the_first() -> None:
    queues = Queues()
    queues.take_burst(SLOW)
    assert queues.ask(1, SLOW, after=1) == GO
    assert queues.ask(2, SLOW, after=1) == timedelta(seconds=1)

    queues.limiter.release(pod(1))

    assert queues.requeued == [pod(2)]
    assert queues.ask(2, SLOW, after=1) == GO


def test_a_pod_that_is_released_requeues_the_next() -> None:
    queues = Queues()
    queues.take_burst(SLOW)
    for number in (1, 2, 3):
        queues.ask(number, SLOW)

    queues.limiter.release(pod(2))
    assert queues.requeued == []
    queues.limiter.release(pod(1))

    assert queues.requeued == [pod(3)]


def test_the_fastest_decides_and_all_are_charged() -> None:
    queues = Queues()
    queues.take_burst(SLOW, FAST)

    assert queues.ask(1, FAST) == timedelta(milliseconds=100)
    queues.limiter.release(pod(1))
    assert queues.ask(1, SLOW) == timedelta(seconds=1)
    queues.limiter.release(pod(1))
    assert queues.ask(1, SLOW, FAST) == timedelta(milliseconds=100)


def test_a_slow_bucket_owes_what_a_fast_one_gave() -> None:
    queues = Queues()
    queues.take_burst(SLOW, FAST)
    for number in range(10):
        assert queues.ask(number, SLOW, FAST, after=1) == GO
        queues.limiter.evicted(pod(number))

    assert queues.ask(50, SLOW, after=1) == timedelta(seconds=10)


def test_tokens_of_all_limits_are_returned() -> None:
    queues = Queues()
    queues.take_burst(SLOW, FAST)
    assert queues.ask(1, SLOW, FAST, after=1) == GO

    queues.limiter.release(pod(1))

    assert queues.ask(2, SLOW, after=1) == GO


def test_four_rules_of_two_per_second_are_two_per_second() -> None:
    queues = Queues()
    rules = [Limit(BucketKey(uid=f"rule-{number}"), EvictionRate(2)) for number in range(4)]

    def evicted(after: float) -> int:
        """Return how many of 60 pods have been evicted by then."""
        for number in range(60):
            if queues.ask(number, *rules, after=after) == GO:
                gone.add(number)
        return len(gone)

    gone: set[int] = set()
    assert [evicted(at_) for at_ in (0, 0.4, 0.5, 1.0, 1.5)] == [10, 10, 11, 12, 13]


BURSTS = {
    "one per second, one at a time": (EvictionRate(1, burst=1), [0, 1, 2, 3]),
    "one in five minutes": (EvictionRate(1, timedelta(minutes=5), burst=1), [0, 300, 600, 900]),
    "two per minute, two together": (
        EvictionRate(2, timedelta(minutes=1), burst=2),
        [0, 0, 30, 60],
    ),
}


@pytest.mark.parametrize(("rate", "want"), BURSTS.values(), ids=BURSTS)
def test_burst(rate: EvictionRate, want: list[int]) -> None:
    queues, limit, now, times = Queues(), Limit(BucketKey(uid="r"), rate), 0.0, []
    for number in range(len(want)):
        wait = queues.ask(number, limit, after=now)
        if wait != GO:
            now += wait.total_seconds()
            assert queues.ask(number, limit, after=now) == GO
        queues.limiter.evicted(pod(number))
        times.append(now)

    assert times == want


def test_a_pod_stands_in_every_line_until_one_lets_it_go() -> None:
    queues = Queues()
    queues.take_burst(SLOW)
    queues.take_burst(FAST)
    queues.ask(1, SLOW, FAST)
    queues.ask(2, SLOW)
    queues.ask(3, FAST)

    assert queues.ask(1, SLOW, FAST, after=0.1) == GO
    assert sorted(queues.waiting) == [(pod(2), at(2)), (pod(3), at(0.2))]
    # It has taken a token of both.
    assert queues.ask(2, SLOW, after=1) == timedelta(seconds=1)
    assert queues.ask(2, SLOW, after=2) == GO


def test_a_new_rate_keeps_the_tokens() -> None:
    queues = Queues()
    queues.take_burst(SLOW)

    assert queues.ask(1, SLOW._replace(rate=EvictionRate(10))) == timedelta(milliseconds=100)
    assert queues.limiter.size == 1


def test_a_new_process_does_not_burst_again() -> None:
    queues = Queues(*[at(-2)] * 10)

    assert [queues.ask(number, SLOW) for number in (1, 2)] == [GO, GO]
    assert queues.ask(3, SLOW) == timedelta(seconds=1)


def test_idle_buckets_go_away() -> None:
    queues = Queues()
    for name in range(20):
        queues.ask(name, Limit(BucketKey(uid=str(name)), EvictionRate(1)), after=name)
        queues.limiter.evicted(pod(name))

    assert queues.limiter.size <= 2


def test_a_cap_stops_everyone_and_the_next_minute_continues() -> None:
    queues = Queues(most=2)

    assert [queues.ask(number) for number in (1, 2)] == [GO, GO]
    for number in (1, 2):
        queues.limiter.evicted(pod(number))
    assert queues.ask(3, FAST, after=1) == timedelta(seconds=59)
    assert queues.ask(4, after=1) == timedelta(seconds=59)
    assert queues.ask(3, FAST, after=60) == GO
    assert queues.ask(4, after=60) == GO


def test_a_cap_counts_evictions_before_the_process_started() -> None:
    queues = Queues(at(-50), at(-10), most=2)

    assert queues.ask(1) == timedelta(seconds=10)


def test_under_a_cap_who_stays_lets_anyone_go() -> None:
    queues = Queues(most=1)
    assert queues.ask(1) == GO
    assert queues.ask(2, SLOW) == timedelta(seconds=60)

    queues.limiter.release(pod(1))

    assert queues.requeued == [pod(2)]
    assert queues.ask(2, SLOW) == GO

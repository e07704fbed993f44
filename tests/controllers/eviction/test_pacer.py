"""Who may leave now, and who is woken when."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from sully.client.transport import Key
from sully.controllers.eviction.pacer import NOT_YET, Pacer
from sully.domain.eviction.rates import Limit, Source
from sully.testing.clock import NOON

GO = timedelta(0)
SLOW, FAST = Limit(Source(uid="slow"), 1), Limit(Source(uid="fast"), 10)


def pod(number: int) -> Key:
    return Key("a", f"p-{number}")


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


class Before:
    """What left before the process began."""

    def __init__(self, *times: datetime) -> None:
        self._times = times

    def times(self, source: Source | None = None) -> Iterable[datetime]:
        return self._times


class Lines:
    """A pacer, and whom it woke."""

    def __init__(self, *before: datetime, most: int | None = None) -> None:
        self.woken: list[Key] = []
        self.pacer = Pacer(self.woken.append, past=Before(*before), max_per_minute=most)

    def ask(self, number: int, *limits: Limit, after: float = 0) -> timedelta:
        return self.pacer.ask(pod(number), limits, at(after))

    def take_burst(self, *limits: Limit) -> None:
        for number in range(100, 110):
            assert self.ask(number, *limits) == GO
            self.pacer.left(pod(number))


def test_without_limits_everyone_goes_and_nothing_is_kept() -> None:
    lines = Lines()

    assert [lines.ask(number) for number in range(50)] == [GO] * 50
    assert lines.pacer.size == 0


def test_the_first_in_line_knows_its_time_and_wakes_the_next() -> None:
    lines = Lines()
    lines.take_burst(SLOW)

    assert lines.ask(1, SLOW) == timedelta(seconds=1)
    assert lines.ask(2, SLOW) == NOT_YET
    assert lines.woken == []
    assert lines.ask(2, SLOW, after=1) == NOT_YET  # it is not its turn
    assert lines.ask(1, SLOW, after=1) == GO
    assert lines.woken == [pod(2)]
    assert lines.ask(2, SLOW, after=1) == timedelta(seconds=1)


def test_a_retry_costs_one_token() -> None:
    lines = Lines()

    assert [lines.ask(1, SLOW) for _ in range(30)] == [GO] * 30
    lines.pacer.left(pod(1))

    assert [lines.ask(number, SLOW) for number in range(2, 12)] == [GO] * 9 + [timedelta(seconds=1)]


def test_who_stays_gives_its_token_back_and_wakes_the_first() -> None:
    lines = Lines()
    lines.take_burst(SLOW)
    assert lines.ask(1, SLOW, after=1) == GO
    assert lines.ask(2, SLOW, after=1) == timedelta(seconds=1)

    lines.pacer.stays(pod(1))

    assert lines.woken == [pod(2)]
    assert lines.ask(2, SLOW, after=1) == GO


def test_who_leaves_the_line_wakes_who_comes_up() -> None:
    lines = Lines()
    lines.take_burst(SLOW)
    for number in (1, 2, 3):
        lines.ask(number, SLOW)

    lines.pacer.stays(pod(2))
    assert lines.woken == []
    lines.pacer.stays(pod(1))

    assert lines.woken == [pod(3)]


def test_the_fastest_wins_and_only_it_is_charged() -> None:
    lines = Lines()
    lines.take_burst(SLOW, FAST)

    assert lines.ask(1, FAST) == timedelta(milliseconds=100)
    lines.pacer.stays(pod(1))
    lines.take_burst(SLOW)  # nobody has touched it
    assert lines.ask(1, SLOW, FAST) == timedelta(milliseconds=100)


def test_a_pod_stands_in_every_line_until_one_lets_it_go() -> None:
    lines = Lines()
    lines.take_burst(SLOW)
    lines.take_burst(FAST)
    lines.ask(1, SLOW, FAST)
    lines.ask(2, SLOW)
    lines.ask(3, FAST)

    assert lines.ask(1, SLOW, FAST, after=0.1) == GO
    assert sorted(lines.woken) == [pod(2), pod(3)]
    assert lines.ask(2, SLOW, after=1) == GO


def test_a_new_rate_keeps_the_tokens() -> None:
    lines = Lines()
    lines.take_burst(SLOW)

    assert lines.ask(1, SLOW._replace(rate=10)) == timedelta(milliseconds=100)
    assert lines.pacer.size == 1


def test_a_new_process_does_not_burst_again() -> None:
    lines = Lines(*[at(-2)] * 10)

    assert [lines.ask(number, SLOW) for number in (1, 2)] == [GO, GO]
    assert lines.ask(3, SLOW) == timedelta(seconds=1)


def test_idle_buckets_go_away() -> None:
    lines = Lines()
    for name in range(20):
        lines.ask(name, Limit(Source(uid=str(name)), 1), after=name)
        lines.pacer.left(pod(name))

    assert lines.pacer.size <= 2


def test_a_cap_stops_everyone_and_the_next_minute_goes_on() -> None:
    lines = Lines(most=2)

    assert [lines.ask(number) for number in (1, 2)] == [GO, GO]
    for number in (1, 2):
        lines.pacer.left(pod(number))
    assert lines.ask(3, FAST, after=1) == timedelta(seconds=59)
    assert lines.ask(4, after=1) == timedelta(seconds=59)
    assert lines.ask(3, FAST, after=60) == GO
    assert lines.ask(4, after=60) == GO


def test_a_cap_knows_what_left_before_the_process_began() -> None:
    lines = Lines(at(-50), at(-10), most=2)

    assert lines.ask(1) == timedelta(seconds=10)


def test_under_a_cap_who_stays_lets_anyone_go() -> None:
    lines = Lines(most=1)
    assert lines.ask(1) == GO
    assert lines.ask(2, SLOW) == timedelta(seconds=60)

    lines.pacer.stays(pod(1))

    assert lines.woken == [pod(2)]
    assert lines.ask(2, SLOW) == GO

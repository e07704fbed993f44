"""A toleration whose seconds are over lets no new pod on a device; one that will end comes last."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.allocation.fixtures import CLASSES, exactly, names, offer, pool_slice, unallocated
from sully.api.resource.types import Device, DeviceTaint, DeviceToleration
from sully.domain.allocation.allocator import allocate
from sully.domain.allocation.pools.node_pools import NodePools
from sully.domain.allocation.rejections.survey import Survey, diagnose
from sully.domain.allocation.requests import Demand, HonoredTaints, prepare, without_seconds
from sully.domain.allocation.toleration_expiry import NOT_YET, AsOf, is_expired
from sully.domain.allocation.usage.ledger import Ledger
from sully.domain.allocation.verdicts import RejectionReason, UnallocatableReason
from sully.domain.eviction.judge import eviction_time
from sully.testing.builders import device, exists, taint
from sully.testing.clock import NOON


@dataclass(frozen=True)
class Times:
    """Some times of taints."""

    known: tuple[datetime, ...]

    def newest(self, until: datetime, key: str) -> datetime | None:
        place = bisect_right(self.known, until)
        return self.known[place - 1] if place else None

    def next(self, after: datetime, key: str) -> datetime | None:
        place = bisect_right(self.known, after)
        return self.known[place] if place < len(self.known) else None


def at(seconds: float, *taints: DeviceTaint) -> AsOf:
    known = sorted(taint.time_added for taint in taints if taint.time_added is not None)
    return AsOf(NOON + timedelta(seconds=seconds), Times(tuple(known)))


def demand(as_of: AsOf | None, **request: Any) -> Demand:
    result = prepare([unallocated(exactly(**request))], CLASSES.get, as_of=as_of)
    assert isinstance(result, Demand)
    return result


SICK = taint()
LATER = taint(after=100)
NEW = taint(time=None)
KEPT_OFF = taint("NoSchedule")
MINUTE, HOUR, FOREVER = exists(seconds=60), exists(seconds=3600), exists()
A, B, PLAIN = device("a", SICK), device("b", LATER), device("plain")


@dataclass(frozen=True, kw_only=True)
class Case:
    devices: tuple[Device, ...] = (A,)
    after: float
    tolerations: tuple[DeviceToleration, ...] = (MINUTE,)
    more: tuple[tuple[str, Any], ...] = ()
    gets: tuple[str, ...] = ()
    """Nothing if it is refused."""

    def offer(self) -> NodePools:
        return offer([pool_slice(*self.devices)])

    def demand(self) -> Demand:
        marks = [taint for device in self.devices for taint in device.taints]
        tolerations = list(self.tolerations)
        return demand(at(self.after, *marks), tolerations=tolerations, **dict(self.more))


CASES = {
    "the last second": Case(after=59, gets=("a",)),
    "over": Case(after=60),
    "long over": Case(after=6000),
    "no seconds at all": Case(after=0, tolerations=(exists(seconds=0),)),
    "fewer than none are none": Case(after=0, tolerations=(exists(seconds=-5),)),
    "more than there are": Case(after=60, tolerations=(exists(seconds=2**62),), gets=("a",)),
    "indefinitely": Case(after=6000, tolerations=(FOREVER,), gets=("a",)),
    "indefinitely beside one that is over": Case(
        after=60, tolerations=(MINUTE, FOREVER), gets=("a",)
    ),
    "as in eviction, the shortest counts": Case(after=60, tolerations=(HOUR, MINUTE)),
    "seconds mean nothing without an effect": Case(
        after=60, tolerations=(exists(effect="", seconds=60),), gets=("a",)
    ),
    "nor for an effect that evicts no pod": Case(
        devices=(device("a", KEPT_OFF),),
        after=60,
        tolerations=(exists(effect="NoSchedule", seconds=1),),
        gets=("a",),
    ),
    "a taint without a time is new": Case(devices=(device("a", NEW),), after=600, gets=("a",)),
    "budgets decide, and it is over": Case(
        devices=(device("a", taint("NoExecuteWithPodDisruptionBudget")),),
        after=60,
        tolerations=(exists(effect="NoExecuteWithPodDisruptionBudget", seconds=60),),
    ),
    "each taint has a time of its own": Case(devices=(A, B), after=100, gets=("b",)),
    "both are over": Case(devices=(A, B), after=160),
    "one without a taint comes first": Case(devices=(A, PLAIN), after=10, gets=("plain",)),
    "one that will end serves if it must": Case(
        devices=(A, PLAIN), after=10, more=(("count", 2),), gets=("plain", "a")
    ),
    "who tolerates indefinitely takes them in order": Case(
        devices=(A, PLAIN), after=10, tolerations=(FOREVER,), gets=("a",)
    ),
    "All means the one that is over too": Case(
        devices=(A, PLAIN), after=60, more=(("allocationMode", "All"),)
    ),
}


def test_an_expired_toleration_of_an_effect_that_is_switched_off() -> None:
    """Such a taint prevents nothing, so it does not after a toleration of it expired."""
    effect = "NoExecuteWithPodDisruptionBudget"
    optional = taint(effect)
    request = exactly(tolerations=[exists(effect=effect, seconds=60)])
    result = prepare(
        [unallocated(request)],
        CLASSES.get,
        HonoredTaints(blocking=frozenset(("NoSchedule", "NoExecute"))),
        as_of=at(60, optional),
    )
    assert isinstance(result, Demand)

    got = allocate(result, offer([pool_slice(device("a", optional))]), Ledger())

    assert names(got) == [["a"]]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_who_gets_a_device(case: Case) -> None:
    result = names(allocate(case.demand(), case.offer(), Ledger()))

    assert result == ([list(case.gets)] if case.gets else UnallocatableReason.CANNOT_ALLOCATE)


def test_what_is_cached_follows_the_time() -> None:
    here, use = offer([pool_slice(A)]), Ledger()
    got = [
        names(allocate(demand(at(number, SICK), tolerations=[MINUTE]), here, use))
        for number in (0, 59, 60, 61)
    ]

    assert got == [
        [["a"]],
        [["a"]],
        UnallocatableReason.CANNOT_ALLOCATE,
        UnallocatableReason.CANNOT_ALLOCATE,
    ]


def test_requests_that_are_alike_now_share_what_was_found_out() -> None:
    soon, late, never = (
        demand(at(10, SICK), tolerations=[item]).claims[0].requests[0].alternatives[0].requirements
        for item in (MINUTE, HOUR, FOREVER)
    )

    assert soon is late
    assert soon.lasting is never


def test_an_account_shows_that_a_toleration_is_over() -> None:
    expected = demand(at(60, SICK), tolerations=[MINUTE])
    result = diagnose(expected, Survey([offer([pool_slice(A)])]), Ledger())

    (asked,) = result.requests
    assert asked.refused == {RejectionReason.TAINT: 1}
    assert [(taint.taint.taint, taint.expired) for taint in asked.taints] == [(SICK, True)]


def test_without_a_time_nothing_ends() -> None:
    result = allocate(demand(None, tolerations=[MINUTE]), offer([pool_slice(A)]), Ledger())

    assert names(result) == [["a"]]


SECONDS = st.one_of(st.none(), st.integers(-1, 12))
TOLERATIONS = st.lists(
    st.builds(exists, effect=st.sampled_from(["", "NoExecute", "NoSchedule"]), seconds=SECONDS),
    min_size=1,
    max_size=3,
)


@given(st.integers(0, 10), st.lists(st.integers(0, 10)), TOLERATIONS, st.integers(0, 15))
def test_it_is_over_exactly_when_a_pod_would_be_evicted_immediately(
    added: int, others: list[int], tolerations: list[DeviceToleration], now: int
) -> None:
    mark = taint(after=added)
    moment = at(now, mark, *(taint(after=other) for other in others))
    if mark.time_added is None or mark.time_added > moment.now:
        return
    due = eviction_time(mark, tolerations, now=moment.now)
    covered = any(toleration.effect != "NoSchedule" for toleration in tolerations)
    ends = moment.expiries(tolerations)

    over = bool(ends) and is_expired(mark, without_seconds(tuple(tolerations)), ends)
    assert over == (covered and due is not None and due <= moment.now)
    assert isinstance(moment.times, Times)
    assert all(end is None or end is NOT_YET or end in moment.times.known for end in ends)


@given(st.lists(st.integers(0, 10)), TOLERATIONS, st.lists(st.integers(0, 15), min_size=1))
def test_what_was_read_holds_until_a_toleration_expires(
    added: list[int], tolerations: list[DeviceToleration], moments: list[int]
) -> None:
    taints = [taint(after=after) for after in added]
    moment = at(0, *taints)
    read = moment.expiries(tolerations)

    for seconds in moments:
        fresh = at(seconds, *taints)
        if moment.advance(fresh.now):
            read = moment.expiries(tolerations)
        assert read == fresh.expiries(tolerations)

"""What happened, in order of time."""

from __future__ import annotations

from datetime import timedelta
from itertools import permutations

from devices import select, taint
from sully.api.sully.types import (
    EvictedPod,
    EvictionCause,
    EvictionRecord,
    EvictionRecordSpec,
    TaintChange,
    TaintRecord,
    TaintRecordRule,
    TaintRecordSpec,
    TaintRecordStatus,
)
from sully.machinery.meta import ObjectMeta
from sully.testing.clock import NOON
from sully.views.timeline import Happening, happenings


def _later(minutes: int) -> timedelta:
    return timedelta(minutes=minutes)


def ruled(name: str, *, lifted: bool = False, changes: tuple[TaintChange, ...] = ()) -> TaintRecord:
    return TaintRecord(
        metadata=ObjectMeta(name=name),
        spec=TaintRecordSpec(
            rule=TaintRecordRule(name=name, uid=name),
            taint=taint(),
            device_selector=select(pool="p"),
            created_by="alice",
            description="why",
            added_time=NOON,
        ),
        status=TaintRecordStatus(
            changes=changes,
            evicted=3,
            lifted_time=NOON + _later(9) if lifted else None,
            lifted_by="expiry" if lifted else "",
        ),
    )


def gone(name: str, minutes: int) -> EvictionRecord:
    cause = EvictionCause(
        kind="DeviceTaintRule", name="a", key="k", effect="NoExecute", description="hot", device="d"
    )
    return EvictionRecord(
        metadata=ObjectMeta(name=name, namespace="n"),
        spec=EvictionRecordSpec(
            pod=EvictedPod(namespace="n", name=name, uid=name),
            causes=(cause,),
            evicted_time=NOON + _later(minutes),
        ),
    )


def test_a_rule_is_made_changed_and_lifted() -> None:
    change = TaintChange(time=NOON + _later(1), what="paused")

    made, changed, lifted = happenings([ruled("a", lifted=True, changes=(change,))], [])

    assert (made.what, made.rule, made.by, made.why) == ("tainted", "a", "alice", "why")
    assert made.selector == select(pool="p")
    assert (changed.what, changed.change, changed.time) == ("changed", "paused", change.time)
    assert (lifted.what, lifted.by, lifted.evicted) == ("lifted", "expiry", 3)


def test_a_rule_that_stands_is_not_lifted() -> None:
    assert [each.what for each in happenings([ruled("a")], [])] == ["tainted"]


def test_the_order_is_that_of_time_whatever_the_order_of_records() -> None:
    records = (ruled("a", lifted=True), ruled("b"))
    evictions = (gone("p", 5), gone("q", 0), gone("o", 5))

    for rules in permutations(records):
        for left in permutations(evictions):
            found = happenings(rules, left)
            assert [(each.what, each.rule or _pod(each)) for each in found] == [
                ("tainted", "a"),
                ("tainted", "b"),
                ("evicted", "q"),
                ("evicted", "o"),
                ("evicted", "p"),
                ("lifted", "a"),
            ]


def _pod(happening: Happening) -> str:
    assert happening.eviction is not None
    return happening.eviction.spec.pod.name


def test_an_eviction_says_why() -> None:
    (found,) = happenings([], [gone("p", 0)])

    assert found.why == "hot"
    assert [each.name for each in found.causes()] == ["a"]
    assert happenings([ruled("a")], [])[0].causes() == ()

"""The times of the taints that evict pods, whoever set them."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from domain.allocation.fixtures import pool_slice
from sully.api.resource.types import (
    DevicePatch,
    DeviceTaintRule,
    ResourceSlicePatch,
    ResourceSlicePatchSpec,
)
from sully.machinery.meta import TrackedMeta
from sully.testing import builders
from sully.testing.builders import KEY, device, taint
from sully.testing.clock import NOON
from sully.views.devices.taint_times import TaintTimes


def when(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)


def rule(effect: str, after: int, key: str = KEY) -> DeviceTaintRule:
    return builders.rule("rule", None, taint(effect, after=after, key=key))


def test_all_who_can_set_one_count() -> None:
    times = TaintTimes()
    times.change(None, rule("NoExecute", 1))
    times.change(None, pool_slice(device("a", taint(after=2)), device("b")))
    times.change(
        None,
        ResourceSlicePatch(
            metadata=TrackedMeta(name="patch"),
            spec=ResourceSlicePatchSpec(devices=DevicePatch(taints=(taint(after=3),))),
        ),
    )

    assert [times.newest(when(number), "") for number in (0, 1, 2, 3, 9)] == [
        None,
        when(1),
        when(2),
        when(3),
        when(3),
    ]


def test_a_taint_that_evicts_no_pod_does_not_count() -> None:
    times = TaintTimes()
    times.change(None, rule("NoSchedule", 1))
    times.change(None, rule("None", 2))

    assert times.newest(when(9), "") is None


def test_each_key_has_its_own() -> None:
    times = TaintTimes()
    times.change(None, rule("NoExecute", 1, "x"))
    times.change(None, rule("NoExecute", 2, "y"))

    assert [times.newest(when(9), name) for name in ("x", "y", "z", "")] == [
        when(1),
        when(2),
        None,
        when(2),
    ]


STATES = st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 5))))


@given(STATES)
def test_only_what_is_there_counts(states: list[tuple[str, int | None]]) -> None:
    times, rules = TaintTimes(), dict[str, DeviceTaintRule | None]()
    for name, after in states:
        new = rule("NoExecute", after, name) if after is not None else None
        times.change(rules.get(name), new)
        rules[name] = new
    known = [
        (rule.spec.taint.key, rule.spec.taint.time_added)
        for rule in rules.values()
        if rule is not None
    ]

    for limit in range(6):
        for key in ("a", "b", "c", ""):
            there = [
                time
                for of, time in known
                if time is not None and time <= when(limit) and key in ("", of)
            ]
            assert times.newest(when(limit), key) == max(there, default=None)

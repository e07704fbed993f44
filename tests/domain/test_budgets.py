"""What a budget asks for and what it allows."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace

from domain.lifecycles import NOON, ago, pod, ref
from sully.domain.workloads.budgets import (
    Need,
    Scale,
    UnknownControllerError,
    budget_status,
    count,
    failed_status,
    need,
)
from sully.domain.workloads.workloads import Budget, BudgetStatus
from sully.machinery.meta import OwnerReference
from sully.testing import builders

SIZES = {"ten": 10, "five": 5}
PODS = [
    pod("a", owner=ref("ten", controller=True)),
    pod("b", owner=ref("ten", controller=True)),
    pod("c", owner=ref("five", controller=True)),
]


def budget(status: BudgetStatus | None = None, **spec: Any) -> Budget:
    made = builders.budget("b", namespace="a", status=status, **spec)
    return replace(made, metadata=replace(made.metadata, generation=4))


def sizes(owner: OwnerReference) -> Scale | None:
    return Scale(owner.uid, SIZES[owner.uid]) if owner.uid in SIZES else None


NEEDS: dict[str, tuple[dict[str, Any], Need]] = {
    "a number to stay": ({"min_available": 2}, Need(3, 2)),
    "a part to stay": ({"min_available": "50%"}, Need(15, 8)),
    "a number away": ({"max_unavailable": 4}, Need(15, 11)),
    "a part away": ({"max_unavailable": "10%"}, Need(15, 13)),
    "more away than there are": ({"max_unavailable": 99}, Need(15, 0)),
    "nothing": ({}, Need(0, 0)),
}


@pytest.mark.parametrize(("spec", "want"), NEEDS.values(), ids=NEEDS.keys())
def test_need(spec: dict[str, Any], want: Need) -> None:
    for order in permutations(PODS):
        assert need(budget(**spec), order, sizes) == want


def test_pods_of_nobody_are_named() -> None:
    result = need(budget(max_unavailable=1), [*PODS, pod("free")], sizes)

    assert result == Need(15, 14, ("free",))


def test_an_unknown_controller_is_not_a_guess() -> None:
    strange = pod("x", owner=ref("strange", controller=True))

    with pytest.raises(UnknownControllerError, match='found no controllers for pod "x"'):
        need(budget(max_unavailable=1), [strange], sizes)


def test_who_counts_as_healthy() -> None:
    granted: dict[str, datetime | None] = {
        "gone": ago(seconds=30),
        "late": ago(minutes=3),
        "terminates": ago(seconds=1),
    }
    pods = [
        pod("serves"),
        pod("waits", ready=None),
        pod("terminates", terminating=True),
        pod("gone"),
        pod("late"),
    ]

    result = count(budget(BudgetStatus(disrupted_pods=granted)), pods, NOON)

    assert result.healthy == 2  # serves, and late again
    assert result.disrupted == {"gone": ago(seconds=30)}
    assert [item.metadata.name for item in result.overdue] == ["late"]
    assert result.recheck == NOON + timedelta(seconds=90)


@given(some.integers(0, 9), some.integers(0, 9), some.integers(0, 9))
def test_never_more_than_is_spare(healthy: int, desired: int, expected: int) -> None:
    it = budget(min_available=desired)
    counted = count(it, [pod(str(number)) for number in range(healthy)], NOON)

    result = budget_status(it, Need(expected, desired), counted, NOON)

    assert 0 <= result.disruptions_allowed <= max(healthy - desired, 0)
    assert result.disruptions_allowed == 0 or expected > 0
    (reported,) = result.conditions
    assert (reported.status == "True") == (result.disruptions_allowed > 0)
    assert reported.observed_generation == result.observed_generation == 4


def test_the_time_of_a_condition_moves_with_its_status() -> None:
    def times(first: int, second: int) -> tuple[object, object]:
        it = budget()
        counted = [
            count(it, [pod(str(n)) for n in range(number)], NOON) for number in (first, second)
        ]
        one = budget_status(it, Need(5, 2), counted[0], NOON)
        later = NOON + timedelta(hours=1)
        two = budget_status(budget(one), Need(5, 2), counted[1], later)
        return one.conditions[0].last_transition_time, two.conditions[0].last_transition_time

    assert times(3, 4) == (NOON, NOON)
    assert times(3, 2) == (NOON, NOON + timedelta(hours=1))


def test_a_failure_takes_everything_back() -> None:
    it = budget(BudgetStatus(disruptions_allowed=3, current_healthy=5))

    result = failed_status(it, "why", NOON)

    assert (result.disruptions_allowed, result.current_healthy) == (0, 5)
    assert (result.conditions[0].reason, result.conditions[0].message) == ("SyncFailed", "why")

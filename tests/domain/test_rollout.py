"""The sizes of ReplicaSets, step by step: never above, never below what is allowed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from domain.lifecycles import deployment, replica_set
from sully.domain.workloads.percentages import scaled
from sully.domain.workloads.rollout import (
    Limits,
    Sizes,
    grow,
    limits,
    new_size,
    resize,
    scaled_since,
    shrink,
)
from sully.domain.workloads.workloads import Deployment, ReplicaSet

LIMITS: dict[str, tuple[Deployment, Limits]] = {
    "counts": (deployment(10, surge=3, unavailable=2), Limits(3, 2)),
    "surge rounds up, the other down": (
        deployment(10, surge="25%", unavailable="25%"),
        Limits(3, 2),
    ),
    "not both nothing": (deployment(1, surge="0%", unavailable="10%"), Limits(0, 1)),
    "not more than there are": (deployment(2, surge=0, unavailable=5), Limits(0, 2)),
    "no pods": (deployment(0, surge="50%", unavailable="50%"), Limits(0, 0)),
    "recreate": (deployment(10, recreate=True), Limits(0, 0)),
}


@pytest.mark.parametrize(("it", "want"), LIMITS.values(), ids=LIMITS.keys())
def test_limits(it: Deployment, want: Limits) -> None:
    assert limits(it) == want


SHARES = [
    (3, 10, True, 3),
    ("25%", 10, True, 3),
    ("25%", 10, False, 2),
    ("x", 10, True, 0),
    ("100%", 7, True, 7),
]


@pytest.mark.parametrize(("value", "total", "up", "want"), SHARES)
def test_shares(value: int | str, total: int, up: bool, want: int) -> None:
    assert scaled(value, total, up=up) == want


@dataclass(frozen=True)
class Step:
    it: Deployment
    new: ReplicaSet
    old: list[ReplicaSet] = field(default_factory=list)
    grown: Sizes = field(default_factory=dict)
    shrunk: Sizes = field(default_factory=dict)


OLD = replica_set("old", 10)
STEPS = {
    "grows into the surge": Step(
        deployment(10, surge=2), replica_set("new", 0), [OLD], grown={"new": 2}
    ),
    "makes room first": Step(
        deployment(10, unavailable=2), replica_set("new", 0), [OLD], shrunk={"old": 8}
    ),
    "waits for pods to serve": Step(
        deployment(10, surge=2), replica_set("new", 2, available=0), [OLD]
    ),
    "continues when they do": Step(
        deployment(10, surge=2), replica_set("new", 2), [OLD], shrunk={"old": 8}
    ),
    "too big": Step(deployment(3, surge=1), replica_set("new", 5), grown={"new": 3}),
    "nothing to do": Step(deployment(3, surge=1), replica_set("new", 3)),
    "old pods that do not serve go first": Step(
        deployment(10, surge=2),
        replica_set("new", 2, available=0),
        [replica_set("old", 10, available=5)],
    ),
    "old pods that do not serve make room": Step(
        deployment(10, unavailable=2),
        replica_set("new", 0),
        [replica_set("old", 10, available=5)],
        shrunk={"old": 8},
    ),
    "the oldest goes first": Step(
        deployment(10, surge=0, unavailable=3),
        replica_set("new", 4),
        [replica_set("b", 3, born=2), replica_set("a", 3, born=1)],
        shrunk={"a": 0},
    ),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_steps(step: Step) -> None:
    assert grow(step.it, step.new, step.old) == step.grown
    assert shrink(step.it, step.new, step.old) == step.shrunk


counts = some.integers(0, 12)


@given(counts, counts, counts, counts, some.lists(some.tuples(counts, counts), max_size=3))
def test_no_step_leaves_the_limits(
    expected: int, surge: int, unavailable: int, size: int, olds: list[tuple[int, int]]
) -> None:
    it = deployment(expected, surge=surge, unavailable=unavailable)
    allowed = limits(it)
    new = replica_set("new", min(size, expected), born=9)
    old = [
        replica_set(f"old-{number}", has, available=min(has, serve), born=number)
        for number, (has, serve) in enumerate(olds)
    ]
    before = sum(item.spec.replicas for item in (*old, new))

    grown = grow(it, new, old).get("new", new.spec.replicas)
    total = before - new.spec.replicas + grown
    assert total <= max(expected + allowed.surge, before)

    sizes = shrink(it, new, old)
    serve = min(new.status.available_replicas, new.spec.replicas)
    for entry in old:
        serve += min(entry.status.available_replicas, sizes.get(entry.name, entry.spec.replicas))
    had = sum(item.status.available_replicas for item in (*old, new))
    assert serve >= min(expected - allowed.unavailable, had)
    assert all(0 <= size < 13 for size in sizes.values())


@given(counts, counts, counts)
def test_a_rollout_ends(expected: int, surge: int, unavailable: int) -> None:
    it = deployment(expected, surge=surge, unavailable=unavailable)
    new, old = replica_set("new", new_size(it, [replica_set("old", expected)], 0)), expected
    for _ in range(60):
        sizes = grow(it, new, [replica_set("old", old)])
        sizes = sizes or shrink(it, new, [replica_set("old", old)])
        if not sizes:
            break
        old = sizes.get("old", old)
        new = replica_set("new", sizes.get("new", new.spec.replicas))

    assert (new.spec.replicas, old) == (expected, 0)


@dataclass(frozen=True)
class Resize:
    it: Deployment
    new: ReplicaSet | None
    old: list[ReplicaSet]
    want: Sizes


def was(name: str, size: int, whole: int, **more: Any) -> ReplicaSet:
    return replica_set(name, size, desired_replicas=str(whole), max_replicas=str(whole), **more)


RESIZES = {
    "the only one": Resize(deployment(5), was("new", 3, 3), [], {"new": 5}),
    "the only one with pods": Resize(
        deployment(5), replica_set("new", 0), [was("old", 3, 3)], {"old": 5}
    ),
    "none has pods: the present one": Resize(
        deployment(5), replica_set("new", 0), [replica_set("old", 0)], {"new": 5}
    ),
    "none has pods, no present one: the newest": Resize(
        deployment(5),
        None,
        [replica_set("b", 0, born=2), replica_set("a", 0, born=1)],
        {"b": 5},
    ),
    "the present one is full": Resize(
        deployment(5, surge=1), was("new", 5, 5), [was("old", 2, 5)], {"old": 0}
    ),
    "in proportion": Resize(
        deployment(15),
        was("new", 5, 10, available=2, born=1),
        [was("old", 5, 10)],
        {"new": 8, "old": 7},
    ),
    "in proportion, down": Resize(
        deployment(5),
        was("new", 5, 10, available=2, born=1),
        [was("old", 5, 10)],
        {"new": 3, "old": 2},
    ),
    "paused from the start, with nothing to resize": Resize(deployment(3), None, [], {}),
    "to nothing": Resize(
        deployment(0), was("new", 5, 10), [was("old", 5, 10)], {"new": 0, "old": 0}
    ),
    "the same sizes, to take note": Resize(
        deployment(10), was("new", 5, 12, available=1), [was("old", 5, 12)], {"new": 5, "old": 5}
    ),
}


@pytest.mark.parametrize("case", RESIZES.values(), ids=RESIZES.keys())
def test_resize(case: Resize) -> None:
    assert resize(case.it, case.new, case.old) == case.want


@given(some.integers(0, 40), some.lists(some.integers(1, 20), min_size=2, max_size=4), counts)
def test_proportions_add_up(expected: int, sizes: list[int], surge: int) -> None:
    whole = sum(sizes)
    it = deployment(expected, surge=surge, unavailable=1)
    sets = [was(f"s{number}", size, whole, born=number) for number, size in enumerate(sizes)]

    result = resize(it, None, sets)

    allowed = expected + surge if expected else 0
    largest = f"s{sizes.index(max(sizes))}"
    # As in Kubernetes, the largest takes what rounding leaves over, but never below 0.
    above = sum(result.values()) - allowed
    assert above == 0 or (above > 0 and result[largest] == 0)
    assert all(size >= 0 for size in result.values())


def test_a_change_of_size_is_noticed() -> None:
    assert scaled_since(deployment(5), [was("new", 3, 3)])
    assert not scaled_since(deployment(3), [was("new", 3, 3)])
    assert not scaled_since(deployment(5), [was("new", 0, 3), replica_set("other", 2)])

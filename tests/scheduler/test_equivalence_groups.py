"""Which of the equal pods gets attempts, and which only wait."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sully.client.transport import Key
from sully.scheduler.equivalence.groups import EquivalenceGroups
from sully.testing.clock import NOON

Step = Callable[[EquivalenceGroups], object]
A, B, C, D = (Key("n", name) for name in "abcd")


def joins(key: Key, place: int, equivalence: bytes = b"q") -> Step:
    return lambda groups: groups.join(equivalence, (0, NOON, place), key)


def deleted(key: Key) -> Step:
    return lambda groups: groups.remove(key)


THREE = (joins(A, 1), joins(B, 2), joins(C, 3))
CASES: dict[str, tuple[tuple[Step, ...], list[Key], dict[Key, Key]]] = {
    "the first represents all": (THREE, [], {B: A, C: A}),
    "the first in the queue represents all": (
        (joins(B, 2), joins(C, 3), joins(A, 1)),
        [],
        {B: A, C: A},
    ),
    "the next is activated": ((*THREE, deleted(A)), [B], {C: B}),
    "until none is left": ((*THREE, deleted(A), deleted(B), deleted(C)), [B, C], {}),
    "a represented pod is deleted": ((*THREE, deleted(B)), [], {C: A}),
    "and is skipped later": ((*THREE, deleted(B), deleted(A)), [C], {}),
    "a second failed attempt changes nothing": (
        (*THREE, joins(A, 1), joins(C, 3)),
        [],
        {B: A, C: A},
    ),
    "other classes have other groups": ((*THREE, joins(D, 4, b"r")), [], {B: A, C: A}),
    "a pod that changes its class changes groups": (
        (*THREE, joins(D, 4, b"r"), joins(A, 1, b"r")),
        [B],
        {C: B, D: A},
    ),
    "a pod with a higher priority leads": (
        (*THREE, joins(C, 0)),
        [],
        {A: C, B: C},
    ),
    "a pod without a group leaves none": ((deleted(A), *THREE), [], {B: A, C: A}),
}


@pytest.mark.parametrize(("steps", "forward", "behind"), CASES.values(), ids=CASES)
def test_groups(steps: tuple[Step, ...], forward: list[Key], behind: dict[Key, Key]) -> None:
    called: list[Key] = []
    groups = EquivalenceGroups(called.append)
    for step in steps:
        step(groups)

    assert called == forward
    assert sorted(groups.represented()) == sorted(behind.items())


def test_join_returns_the_represented_pod() -> None:
    groups = EquivalenceGroups(lambda _: None)

    assert [joins(B, 2)(groups), joins(C, 3)(groups), joins(A, 1)(groups)] == [None, C, B]

"""The checker of histories finds planted violations, and none where there are none."""

from __future__ import annotations

import random

import pytest

from faults.histories import Operation, violations

STATES = {1: 10, 3: 30, 5: 50}
FIRST = Operation("write", 1.0, 2.0, 30, revision=3, expect=1)
SECOND = Operation("write", 3.0, 4.0, 50, revision=5)
GOOD = [
    FIRST,
    SECOND,
    Operation("read", 1.5, 1.6, 10, revision=1),
    Operation("read", 3.5, 3.6, 50, revision=5),
    Operation("read", 3.7, 5.0, 50, revision=5),
    Operation("write", 3.1, 3.2, 60, expect=3, outcome="conflict"),
    Operation("write", 3.1, 3.2, 70, outcome="unknown"),
]

PLANTED = {
    "a stale read": (Operation("read", 2.5, 2.6, 10, revision=1), {}, "began after revision 3"),
    "a read that goes back": (
        Operation("read", 6.0, 6.1, 30, revision=3),
        {},
        "began after revision 5",
    ),
    "a lost write": (
        Operation("write", 6.0, 6.1, 80, revision=7),
        {},
        "not what the watch reported: None",
    ),
    "a write below what was known": (
        Operation("write", 6.0, 6.1, 80, revision=4),
        {4: 80},
        "began after revision 5",
    ),
    "two winners": (
        Operation("write", 1.0, 6.0, 80, revision=4, expect=1),
        {4: 80},
        "made from 1 but follows 3",
    ),
    "a wrong value": (
        Operation("read", 6.0, 6.1, 30, revision=5),
        {},
        "not what the watch reported: 50",
    ),
    "a value of nobody": (
        Operation("read", 6.0, 6.1, 99, revision=7),
        {7: 99},
        "which no client wrote",
    ),
    "an unknown write that was done twice": (
        Operation("write", 6.0, 6.1, 90, outcome="unknown"),
        {7: 90, 9: 90},
        "written 2 times",
    ),
    "a conflict with nobody": (
        Operation("write", 6.0, 6.1, 90, expect=5, outcome="conflict"),
        {},
        "its revision is the newest",
    ),
}


def test_a_good_history_has_no_violation() -> None:
    assert list(violations(GOOD, STATES)) == []


@pytest.mark.parametrize(("planted", "states", "text"), PLANTED.values(), ids=PLANTED)
def test_planted_violations_are_found(
    planted: Operation, states: dict[int, int], text: str
) -> None:
    assert text in " | ".join(violations([*GOOD, planted], STATES | states))


def test_histories_of_a_real_register() -> None:
    """Run random clients against a variable: the order of effects is a linearization."""
    for seed in range(50):
        operations, states = _history(random.Random(seed))
        assert list(violations(operations, states)) == []


def _history(rng: random.Random) -> tuple[list[Operation], dict[int, int]]:
    states, operations = {1: 0}, []
    for number in range(1, 60):
        effect = float(number)
        begun, ended = effect - rng.uniform(0, 5), effect + rng.uniform(0, 5)
        newest = max(states)
        if rng.random() < 0.5:
            operations.append(Operation("read", begun, ended, states[newest], revision=newest))
            continue
        expect = rng.choice([0, newest, rng.choice(sorted(states))])
        if expect not in (0, newest):
            operations.append(
                Operation("write", begun, ended, number, expect=expect, outcome="conflict")
            )
            continue
        states[number + 1] = number
        known = rng.random() < 0.8
        operations.append(
            Operation("write", begun, ended, number, number + 1, expect)
            if known
            else Operation("write", begun, ended, number, 0, expect, "unknown")
        )
    return operations, states

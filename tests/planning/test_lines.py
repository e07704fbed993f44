"""Who of those that ask the same is looked at, and who only waits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sully.client.transport import Key
from sully.planning.lines import Lines
from sully.testing.clock import NOON

Step = Callable[[Lines], object]
A, B, C, D = (Key("n", name) for name in "abcd")


def joins(key: Key, place: int, question: bytes = b"q") -> Step:
    return lambda lines: lines.join(question, (0, NOON, place), key)


def leaves(key: Key) -> Step:
    return lambda lines: lines.leave(key)


THREE = (joins(A, 1), joins(B, 2), joins(C, 3))
CASES: dict[str, tuple[tuple[Step, ...], list[Key], dict[Key, Key]]] = {
    "the first stands for all": (THREE, [], {B: A, C: A}),
    "whoever comes first in the queue does": (
        (joins(B, 2), joins(C, 3), joins(A, 1)),
        [],
        {B: A, C: A},
    ),
    "the next steps forward": ((*THREE, leaves(A)), [B], {C: B}),
    "until nobody is left": ((*THREE, leaves(A), leaves(B), leaves(C)), [B, C], {}),
    "one behind goes, and nobody notices": ((*THREE, leaves(B)), [], {C: A}),
    "and is passed over later": ((*THREE, leaves(B), leaves(A)), [C], {}),
    "to be refused again changes nothing": ((*THREE, joins(A, 1), joins(C, 3)), [], {B: A, C: A}),
    "other questions have other lines": ((*THREE, joins(D, 4, b"r")), [], {B: A, C: A}),
    "who asks something else changes lines": (
        (*THREE, joins(D, 4, b"r"), joins(A, 1, b"r")),
        [B],
        {C: B, D: A},
    ),
    "who becomes more important goes to the front": (
        (*THREE, joins(C, 0)),
        [],
        {A: C, B: C},
    ),
    "who was behind no line leaves nothing": ((leaves(A), *THREE), [], {B: A, C: A}),
}


@pytest.mark.parametrize(("steps", "forward", "behind"), CASES.values(), ids=CASES)
def test_lines(steps: tuple[Step, ...], forward: list[Key], behind: dict[Key, Key]) -> None:
    called: list[Key] = []
    lines = Lines(called.append)
    for each in steps:
        each(lines)

    assert called == forward
    assert sorted(lines.behind()) == sorted(behind.items())


def test_who_is_behind_is_told() -> None:
    lines = Lines(lambda _: None)

    assert [joins(B, 2)(lines), joins(C, 3)(lines), joins(A, 1)(lines)] == [None, C, B]

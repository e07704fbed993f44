"""What is worth asking again after every node refused; test_spent_model.py tries it out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controllers.scheduling.pools import BOTH, ONLY_X, catalogue
from sully.controllers.scheduling.exhausted import Exhausted
from sully.domain.scheduling.decisions import Concern

Step = Callable[[Exhausted], object]


def exhausted() -> Exhausted:
    found = Exhausted(catalogue())
    found.add(b"q", Concern.DEVICES)
    return found


def gained(*nodes: str) -> Step:
    return lambda it: [it.gained(each) for each in nodes]


CASES: dict[str, tuple[tuple[Step, ...], set[str] | None]] = {
    "nothing": ((), set()),
    "a node gains": ((gained("y"),), {"y"}),
    "a node that is new": ((gained("z"),), {"z"}),
    "a pool of one node": ((lambda it: it.freed(ONLY_X),), {"x"}),
    "a pool of all nodes": ((lambda it: it.freed(BOTH),), {"x", "y"}),
    "nodes that refuse again": (
        (gained("x", "y"), lambda it: it.since(b"q"), lambda it: it.refused(b"q", {"x"}, _NODES)),
        {"y"},
    ),
    "and gain once more": (
        (
            gained("x"),
            lambda it: it.since(b"q"),
            lambda it: it.refused(b"q", {"x"}, _NODES),
            gained("x"),
        ),
        {"x"},
    ),
    "all refuse anew": ((gained("x"), lambda it: it.add(b"q", _NODES)), set()),
    "another world": ((lambda it: it.in_world(1),), None),
    "a flood of questions": (
        (lambda it: [it.add(b"%d" % number, _NODES) for number in range(1024)],),
        None,
    ),
    "a flood of gains": ((gained(*["x"] * 200_001),), None),
}
_NODES = Concern.NODES


@pytest.mark.parametrize(("steps", "nodes"), CASES.values(), ids=CASES)
def test_who_is_asked_again(steps: tuple[Step, ...], nodes: set[str] | None) -> None:
    memory = exhausted()
    for each in steps:
        each(memory)

    since = memory.since(b"q")
    assert (since.nodes if since is not None else None) == nodes


def test_what_may_help_is_all_that_was_ever_refused_for() -> None:
    memory = exhausted()
    memory.refused(b"q", {"x"}, Concern.ROOM)

    since = memory.since(b"q")

    assert since is not None
    assert since.concern == Concern.DEVICES | Concern.ROOM

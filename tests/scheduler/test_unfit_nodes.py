"""Which unfit nodes are remembered, and until when."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scheduler.pools import BOTH, NO_NODE, ONLY_X, node_pools
from sully.scheduler.equivalence.unfit_nodes import UnfitNodes


def cache() -> UnfitNodes:
    found = UnfitNodes(node_pools())
    found.add(b"q", {"x", "y"})
    found.add(b"r", {"y"})
    return found


FORGETTING: dict[str, tuple[Callable[[UnfitNodes], None], set[str], set[str]]] = {
    "nothing": (lambda _: None, {"x", "y"}, {"y"}),
    "a node gains": (lambda it: it.node_changed("y"), {"x"}, set()),
    "a node that was not evaluated gains": (lambda it: it.node_changed("z"), {"x", "y"}, {"y"}),
    "a pool of one node": (lambda it: it.pool_released(ONLY_X), {"y"}, {"y"}),
    "a pool of all nodes": (lambda it: it.pool_released(BOTH), set(), set()),
    "a pool of no node": (lambda it: it.pool_released(NO_NODE), {"x", "y"}, {"y"}),
    "devices changed": (lambda it: it.invalidate_if_changed(1), set(), set()),
}


@pytest.mark.parametrize("case", FORGETTING)
def test_what_is_forgotten(case: str) -> None:
    happens, first, second = FORGETTING[case]
    memory = cache()
    happens(memory)

    assert (memory.get(b"q"), memory.get(b"r")) == (first, second)


def test_a_flood_of_classes_does_not_fill_the_memory() -> None:
    memory = cache()
    for number in range(1000):
        memory.add(b"%d" % number, {"x"})

    assert memory.get(b"999") == {"x"}
    assert not memory.get(b"q")

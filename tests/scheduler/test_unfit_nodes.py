"""Which unfit nodes are remembered, and until when."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scheduler.pools import BOTH, NO_NODE, ONLY_X, node_pools
from sully.scheduler.caches.node_cache import NodeCache
from sully.scheduler.equivalence.unfit_nodes import UnfitNodes
from sully.testing.builders import node

NODES = ("x", "y", "z")


def cache() -> UnfitNodes:
    nodes = NodeCache()
    for name in NODES:
        nodes.update_node(node(name))
    found = UnfitNodes(node_pools(), nodes)
    found.add(b"q", {"x", "y"})
    found.add(b"r", {"y"})
    return found


def skipped(memory: UnfitNodes, equivalence: bytes) -> set[str]:
    others = memory.others(equivalence)
    return set(NODES).difference(others.names()) if others is not None else set()


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

    assert (skipped(memory, b"q"), skipped(memory, b"r")) == (first, second)


def test_a_flood_of_classes_does_not_fill_the_memory() -> None:
    memory = cache()
    for number in range(1000):
        memory.add(b"%d" % number, {"x"})

    assert skipped(memory, b"999") == {"x"}
    assert memory.others(b"q") is None

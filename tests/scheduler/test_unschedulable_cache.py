"""Which nodes are evaluated again after none fitted; see also test_unfit_nodes_model.py."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scheduler.pools import BOTH, ONLY_X, node_pools
from sully.domain.scheduling.cluster_events import ClusterEvent
from sully.scheduler.equivalence.unschedulable_cache import UnschedulableCache

Step = Callable[[UnschedulableCache], object]


def cache() -> UnschedulableCache:
    result = UnschedulableCache(node_pools())
    result.add(b"q", ClusterEvent.DEVICE_RELEASE)
    return result


def added(*classes: bytes) -> Step:
    def step(it: UnschedulableCache) -> None:
        for class_ in classes:
            it.add(class_, _NODES)

    return step


def changed(*nodes: str) -> Step:
    def step(it: UnschedulableCache) -> None:
        for node in nodes:
            it.node_changed(node)

    return step


_NODES = ClusterEvent.NODE_UPDATE
CASES: dict[str, tuple[tuple[Step, ...], set[str] | None]] = {
    "nothing": ((), set()),
    "a node gains": ((changed("y"),), {"y"}),
    "a node that is new": ((changed("z"),), {"z"}),
    "a pool of one node": ((lambda it: it.pool_released(ONLY_X),), {"x"}),
    "a pool of all nodes": ((lambda it: it.pool_released(BOTH),), {"x", "y"}),
    "nodes that still do not fit": (
        (
            changed("x", "y"),
            lambda it: it.get(b"q"),
            lambda it: it.still_unfit(b"q", {"x"}, _NODES),
        ),
        {"y"},
    ),
    "and gain once more": (
        (
            changed("x"),
            lambda it: it.get(b"q"),
            lambda it: it.still_unfit(b"q", {"x"}, _NODES),
            changed("x"),
        ),
        {"x"},
    ),
    "none fits again": ((changed("x"), added(b"q")), set()),
    "devices changed": ((lambda it: it.invalidate_if_changed(1),), None),
    "a flood of classes": (
        (added(*(b"%d" % number for number in range(1024))),),
        None,
    ),
    "a flood of gains": ((changed(*["x"] * 200_001),), None),
}


@pytest.mark.parametrize(("steps", "nodes"), CASES.values(), ids=CASES)
def test_which_nodes_are_evaluated_again(steps: tuple[Step, ...], nodes: set[str] | None) -> None:
    memory = cache()
    for step in steps:
        step(memory)

    known = memory.get(b"q")
    assert (known.changed_nodes if known is not None else None) == nodes


def test_events_of_all_errors_may_help() -> None:
    memory = cache()
    memory.still_unfit(b"q", {"x"}, ClusterEvent.ASSIGNED_POD_DELETE)

    known = memory.get(b"q")

    assert known is not None
    assert known.retry_on == ClusterEvent.DEVICE_RELEASE | ClusterEvent.ASSIGNED_POD_DELETE

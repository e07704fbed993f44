"""Nodes that do not fit an equivalence class: they are skipped until they gain something.

A pod that is bound makes no node fit, so a node stays unfit until something on it is released or
it changes. Without this, every pod of a queue evaluates the same full nodes, and nodes that never
had a device, before one that fits. schedule_algorithm.py asks; the caches of nodes and devices
report gains.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from heapq import heappop, heappush
from typing import Final

import msgspec

from sully.domain.allocation.pools.node_pools import NodePoolsCache
from sully.domain.devices.pools import PoolId
from sully.domain.scheduling.filters import NodeInfo
from sully.scheduler.caches.node_cache import NodeCache
from sully.scheduler.equivalence.classes import EquivalenceClass

MANY: Final = 16
"""Unfit nodes, of one attempt or of several, that are worth remembering; fewer are evaluated again
at less cost."""
_MAX_CLASSES: Final = 64


class _RemainingNodes(msgspec.Struct):
    """The nodes that may fit a class, by load."""

    unfit: set[str] = msgspec.field(default_factory=set)
    """The nodes that do not, until the class is asked for: many classes never are again."""
    heap: list[tuple[int, str]] | None = None
    """The others; a load may be outdated if it increased since."""
    gained: set[str] = msgspec.field(default_factory=set)
    """Nodes that may fit again, or are less loaded."""
    evaluated: set[str] = msgspec.field(default_factory=set)
    """Nodes that were taken from the heap, and are not known to be unfit."""


class UnfitNodes:
    """Which nodes remain to be evaluated, by equivalence class."""

    def __init__(self, nodes: NodeCache, node_pools: NodePoolsCache) -> None:
        self._nodes = nodes
        self._node_pools = node_pools
        self._classes: dict[EquivalenceClass, _RemainingNodes] = {}
        self._versions: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        """Report whether anything is cached."""
        return bool(self._classes)

    def invalidate_if_changed(self, *versions: int) -> None:
        """Forget everything if devices or device classes changed."""
        if versions != self._versions:
            self._versions = versions
            self._classes.clear()

    def remaining(self, equivalence: EquivalenceClass) -> Iterator[NodeInfo] | None:
        """Return the nodes that may fit, as `NodeCache.by_load`; None if no node is known not to.

        The caller reports which of them are unfit (`add`) before it asks for the class again.
        """
        known = self._classes.get(equivalence)
        return self._by_load(known) if known is not None else None

    def add(self, equivalence: EquivalenceClass, nodes: AbstractSet[str]) -> None:
        """Cache unfit nodes."""
        known = self._classes.get(equivalence)
        if known is None:
            if len(self._classes) >= _MAX_CLASSES:
                self._classes.clear()
            known = self._classes[equivalence] = _RemainingNodes()
        if known.heap is None:
            known.unfit |= nodes
        else:
            known.evaluated -= nodes

    def node_changed(self, node: str) -> None:
        """Evaluate a node again: it changed, or lost a pod."""
        for known in self._classes.values():
            known.gained.add(node)

    def pool_released(self, pool: PoolId) -> None:
        """Evaluate the nodes again that see a pool."""
        if self._classes:
            for node in self._node_pools.nodes_seeing(pool):
                self.node_changed(node)

    def _by_load(self, known: _RemainingNodes) -> Iterator[NodeInfo]:
        nodes, heap = self._nodes, known.heap
        if heap is None:
            # It is sorted, so it is a heap.
            heap = known.heap = [entry for entry in nodes.loads() if entry[1] not in known.unfit]
            known.unfit.clear()
        for name in known.gained | known.evaluated:
            if nodes.get(name) is not None:
                heappush(heap, (nodes.load(name), name))
        known.gained.clear()
        known.evaluated.clear()
        while heap:
            load, name = entry = heappop(heap)
            info = nodes.get(name)
            if info is None or (heap and heap[0] == entry):
                continue
            current = nodes.load(name)
            if load == current:
                known.evaluated.add(name)
                yield info
            elif load < current:
                heappush(heap, (current, name))
            # Otherwise it gained, and is in the heap with the load that it has now.

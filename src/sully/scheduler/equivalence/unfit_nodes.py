"""Nodes that do not fit an equivalence class: they are skipped until they gain something.

A pod that is bound makes no node fit, so a node stays unfit until something on it is released or
it changes. Without this, every pod of a queue evaluates the same full nodes, and nodes that never
had a device, before one that fits. judge.py asks; the caches of nodes and devices report gains.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from sully.domain.allocation.pools.node_pools import NodePoolsCache
from sully.domain.devices.pools import PoolId
from sully.scheduler.equivalence.classes import EquivalenceClass

MANY: Final = 16
"""Unfit nodes that are worth remembering; fewer are evaluated again at less cost."""
_MAX_CLASSES: Final = 64


class UnfitNodes:
    """Unfit nodes by equivalence class."""

    def __init__(self, node_pools: NodePoolsCache) -> None:
        self._node_pools = node_pools
        self._nodes: dict[EquivalenceClass, set[str]] = {}
        self._versions: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        """Report whether anything is remembered."""
        return bool(self._nodes)

    def invalidate_if_changed(self, *versions: int) -> None:
        """Forget everything if devices or device classes changed."""
        if versions != self._versions:
            self._versions = versions
            self._nodes.clear()

    def get(self, equivalence: EquivalenceClass) -> AbstractSet[str]:
        """Return the nodes to skip."""
        return self._nodes.get(equivalence, frozenset())

    def add(self, equivalence: EquivalenceClass, nodes: AbstractSet[str]) -> None:
        """Remember unfit nodes."""
        if equivalence not in self._nodes and len(self._nodes) >= _MAX_CLASSES:
            self._nodes.clear()
        self._nodes.setdefault(equivalence, set()).update(nodes)

    def node_changed(self, node: str) -> None:
        """Evaluate a node again: it changed, or lost a pod."""
        for nodes in self._nodes.values():
            nodes.discard(node)

    def pool_released(self, pool: PoolId) -> None:
        """Evaluate the nodes again that see a pool."""
        if self._nodes:
            for node in self._node_pools.nodes_seeing(pool):
                self.node_changed(node)

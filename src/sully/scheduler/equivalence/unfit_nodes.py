"""Nodes that do not fit an equivalence class: they are skipped until they gain something.

A pod that is bound makes no node fit, so a node stays unfit until something on it is released or
it changes. Without this, every pod of a queue evaluates the same full nodes, and nodes that never
had a device, before one that fits. judge.py asks; the caches of nodes and devices report gains.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from sully.domain.allocation.pools.node_pools import NodePoolsCache
from sully.domain.devices.pools import PoolId
from sully.scheduler.caches.node_cache import NodeCache, NodeOrder
from sully.scheduler.equivalence.classes import EquivalenceClass

MANY: Final = 16
"""Unfit nodes that are worth remembering; fewer are evaluated again at less cost."""
_MAX_CLASSES: Final = 64


class _Unfit(NamedTuple):
    names: set[str]
    others: NodeOrder
    """The nodes that may fit."""


class UnfitNodes:
    """Unfit nodes by equivalence class."""

    def __init__(self, node_pools: NodePoolsCache, nodes: NodeCache) -> None:
        self._node_pools = node_pools
        self._nodes = nodes
        self._unfit: dict[EquivalenceClass, _Unfit] = {}
        self._versions: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        """Report whether anything is remembered."""
        return bool(self._unfit)

    def invalidate_if_changed(self, *versions: int) -> None:
        """Forget everything if devices or device classes changed."""
        if versions != self._versions:
            self._versions = versions
            self._forget()

    def others(self, equivalence: EquivalenceClass) -> NodeOrder | None:
        """Return the nodes that may fit; None if that may be all of them."""
        unfit = self._unfit.get(equivalence)
        return unfit.others if unfit is not None and unfit.names else None

    def add(self, equivalence: EquivalenceClass, nodes: AbstractSet[str]) -> None:
        """Remember unfit nodes."""
        unfit = self._unfit.get(equivalence)
        if unfit is None:
            if len(self._unfit) >= _MAX_CLASSES:
                self._forget()
            names: set[str] = set()
            unfit = self._unfit[equivalence] = _Unfit(names, self._nodes.without(names))
        unfit.names.update(nodes)
        unfit.others.changed(nodes)

    def node_changed(self, node: str) -> None:
        """Evaluate a node again: it changed, or lost a pod."""
        for unfit in self._unfit.values():
            if node in unfit.names:
                unfit.names.discard(node)
                unfit.others.changed((node,))

    def pool_released(self, pool: PoolId) -> None:
        """Evaluate the nodes again that see a pool."""
        if self._unfit:
            for node in self._node_pools.nodes_seeing(pool):
                self.node_changed(node)

    def _forget(self) -> None:
        for unfit in self._unfit.values():
            self._nodes.forget(unfit.others)
        self._unfit.clear()

"""Equivalence classes that no node fits: only nodes that changed since are evaluated.

`unfit_nodes.py` has the nodes to skip on the way to one that fits. Where none fits, nodes that
changed are fewer than others: they go into one log, and each class knows how far it has read.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

import msgspec

from sully.domain.allocation.pools.node_pools import NodePoolsCache
from sully.domain.devices.pools import PoolId
from sully.domain.scheduling.cluster_events import ClusterEvent
from sully.scheduler.equivalence.classes import EquivalenceClass

_MAX_CLASSES: Final = 1024
_MAX_GAINS: Final = 200_000
"""Entries of the log; after so many it is cheaper to evaluate the whole cluster."""


class UnschedulableClass(msgspec.Struct):
    """What happened since no node fitted a class."""

    retry_on: ClusterEvent
    log_position: int
    changed_nodes: set[str] = msgspec.field(default_factory=set)
    """Nodes that may fit again."""


class UnschedulableCache:
    """Equivalence classes that no node fits."""

    def __init__(self, node_pools: NodePoolsCache) -> None:
        self._node_pools = node_pools
        self._classes: dict[EquivalenceClass, UnschedulableClass] = {}
        self._gains: list[str] = []
        self._versions: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        """Report whether anything is cached."""
        return bool(self._classes)

    def invalidate_if_changed(self, *versions: int) -> None:
        """Forget everything if devices or device classes changed."""
        if versions != self._versions:
            self._versions = versions
            self._forget()

    def add(self, equivalence: EquivalenceClass, retry_on: ClusterEvent) -> None:
        """Cache that no node fits."""
        if equivalence not in self._classes and len(self._classes) >= _MAX_CLASSES:
            self._forget()
        self._classes[equivalence] = UnschedulableClass(retry_on, len(self._gains))

    def get(self, equivalence: EquivalenceClass) -> UnschedulableClass | None:
        """Return what happened since no node fitted; None if that is not known of the class."""
        known = self._classes.get(equivalence)
        if known is not None and known.log_position < len(self._gains):
            known.changed_nodes.update(self._gains[known.log_position :])
            known.log_position = len(self._gains)
        return known

    def still_unfit(
        self, equivalence: EquivalenceClass, nodes: AbstractSet[str], retry_on: ClusterEvent
    ) -> None:
        """Note that nodes that changed do not fit either."""
        known = self._classes.get(equivalence)
        if known is not None:
            known.changed_nodes -= nodes
            known.retry_on |= retry_on

    def node_changed(self, node: str) -> None:
        """Evaluate a node again: it changed, or lost a pod."""
        if self._classes:
            self._gains.append(node)
            if len(self._gains) > _MAX_GAINS:
                self._forget()

    def pool_released(self, pool: PoolId) -> None:
        """Evaluate the nodes again that see a pool."""
        if self._classes:
            for node in self._node_pools.nodes_seeing(pool):
                self.node_changed(node)

    def _forget(self) -> None:
        self._classes.clear()
        self._gains.clear()

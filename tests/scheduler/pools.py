"""Two nodes with a pool each and one that both see: what memories of refusals are tried on."""

from __future__ import annotations

from typing import Any

from sully.domain.allocation.pools.node_pools import NodePoolsCache
from sully.domain.allocation.pools.nodes import AllocatorNode
from sully.domain.devices.pools import PoolId

BOTH, ONLY_X, NO_NODE = (PoolId("d", name) for name in ("all", "x", "z"))


class Pools:
    """Every node sees the pool of its name, and one that all see."""

    def pools_for(self, node: str) -> list[PoolId]:
        return [BOTH, PoolId("d", node)]

    def slices(self, _: PoolId) -> list[Any]:
        return []

    def devices(self, _: Any) -> list[Any]:
        return []


def node_pools() -> NodePoolsCache:
    """Return the pools of the nodes `x` and `y`."""
    cache = NodePoolsCache(Pools())
    for name in ("x", "y"):
        cache.get(AllocatorNode(name))
    return cache

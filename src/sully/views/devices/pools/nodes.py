"""Which pools a node may use: its own, and those that are not bound to one node.

Whether a slice with a node selector is for a node depends on the labels of the node, so those pools
are candidates for every node, and the scheduler evaluates the selector.
"""

from __future__ import annotations

from collections.abc import Iterable

from sully.api.resource.types import ResourceSlice
from sully.domain.devices.pools import PoolId, pool_of


class PoolsByNode:
    """Pools by node."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[PoolId, int]] = {}
        """How many slices of a pool are for a node; the empty name stands for any node."""

    def pools_for(self, node: str) -> list[PoolId]:
        """Return the pools that a node may use, in order."""
        return sorted({*self._by_node.get(node, ()), *self._by_node.get("", ())})

    def change(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        """Update the pools after an event of a slice."""
        for slice_, by in ((old, -1), (new, 1)):
            if slice_ is not None:
                pool = pool_of(slice_)
                for node in _nodes(slice_):
                    self._count(node, pool, by)

    def _count(self, node: str, pool: PoolId, by: int) -> None:
        pools = self._by_node.setdefault(node, {})
        slices = pools.get(pool, 0) + by
        if slices:
            pools[pool] = slices
            return
        del pools[pool]
        if not pools:
            del self._by_node[node]


def _nodes(slice_: ResourceSlice) -> Iterable[str]:
    spec = slice_.spec
    if not spec.per_device_node_selection:
        return (spec.node_name or "",)
    return {device.node_name or "" for device in spec.devices}

"""Which pools a node may use: its own, and those that are not bound to one node.

Whether a slice with a selector is for a node depends on the node's labels, so those pools are
candidates for every node, and whoever places pods looks closer.
"""

from __future__ import annotations

from collections.abc import Iterator

from sully.api.resource.types import ResourceSlice
from sully.domain.devices.pools import PoolId, pool_of


class Places:
    """Pools by node."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[PoolId, int]] = {}
        """How many slices tie a pool to a node; the empty name stands for any node."""

    def pools_for(self, node: str) -> list[PoolId]:
        """Return the pools with slices that are, or may be, for a node, in order."""
        return sorted({*self._by_node.get(node, ()), *self._by_node.get("", ())})

    def change(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        """Take a change of a slice."""
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


def _nodes(slice_: ResourceSlice) -> Iterator[str]:
    spec = slice_.spec
    if not spec.per_device_node_selection:
        yield spec.node_name or ""
        return
    yield from {device.node_name or "" for device in spec.devices}

"""Keeps the offers of nodes while nothing about them changes.

Offers remember what was found out about their devices, so they should live long and be shared:
nodes that see the same slices of a pool get the same `PoolOffer`. Whoever hears about changes says
which pools they touch; only those are looked at again, and only for the nodes that see them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from sully.api.resource.types import ResourceSlice
from sully.domain.allocation.nodes import Node
from sully.domain.allocation.offers import (
    NodeOffer,
    PoolOffer,
    offer_node,
    offer_pool,
    visible_slices,
)
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import PoolId


class Source(Protocol):
    """Knows slices and merged devices; the inventory of the cluster does."""

    def pools_for(self, node: str) -> Sequence[PoolId]:
        """Return the pools with slices that are, or may be, for a node."""

    def slices(self, pool: PoolId) -> Sequence[ResourceSlice]:
        """Return all slices of a pool, of every generation and for every node."""

    def devices(self, slice_: ResourceSlice) -> Iterable[EffectiveDevice]:
        """Return the devices of a slice in published order, patched and tainted."""


class Catalogue:
    """The offers of all nodes that were asked for."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.version = 0
        """Another one after every change of what nodes are offered."""
        self._nodes: dict[str, NodeOffer] = {}
        self._pools: dict[PoolId, dict[tuple[str, ...], PoolOffer | None]] = {}
        self._seen_by: dict[PoolId, set[str]] = {}

    def offer(self, node: Node) -> NodeOffer:
        """Return what a node is offered now."""
        found = self._nodes.get(node.name)
        # Most often it is the very same, and no labels need be compared.
        if found is None or (found.node is not node and found.node != node):
            pools = self._source.pools_for(node.name)
            for pool in pools:
                self._seen_by.setdefault(pool, set()).add(node.name)
            found = offer_node(node, [self._pool(pool, node) for pool in pools])
            self._nodes[node.name] = found
        return found

    def viewers(self, pool: PoolId) -> Collection[str]:
        """Return the nodes whose offers were made with a pool in view."""
        return self._seen_by.get(pool, ())

    def touch(self, pools: Iterable[PoolId]) -> None:
        """Look at pools again, because something about their slices or devices changed."""
        self.version += 1
        for pool in pools:
            self._pools.pop(pool, None)
            for node in self._seen_by.pop(pool, set()) | self._may_see(pool):
                self._nodes.pop(node, None)

    def forget(self, node: str) -> None:
        """Drop a node that is gone."""
        self._nodes.pop(node, None)
        for nodes in self._seen_by.values():
            nodes.discard(node)

    def _pool(self, pool: PoolId, node: Node) -> PoolOffer | None:
        slices = self._source.slices(pool)
        seen = visible_slices(slices, node)
        key = tuple(sorted(each.metadata.name for each in seen))
        if any(each.spec.per_device_node_selection for each in seen):
            # Two nodes that see the same slices may still see different devices in them.
            key = (*key, f"node={node.name}")
        known = self._pools.setdefault(pool, {})
        if key not in known:
            known[key] = offer_pool(pool, slices, self._source.devices, node)
        return known[key]

    def _may_see(self, pool: PoolId) -> set[str]:
        """Return the nodes that a pool may be new to."""
        specs = [each.spec for each in self._source.slices(pool)]
        if all(spec.node_name for spec in specs):
            return {spec.node_name for spec in specs if spec.node_name}
        return set(self._nodes)

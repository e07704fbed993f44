"""The pools that a node sees, with their devices in the order in which they are tried.

`NodePools` is gathered from slices and effective devices, as `GatherPools` of Kubernetes does, and
gathered again when they change (`NodePoolsCache`). Candidates that were computed for its devices
are cached in it, and so are valid as long as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from sully.api.resource.types import ResourceSlice, ResourceSliceSpec
from sully.domain.allocation.pools.nodes import AllocatorNode, is_for_node, is_visible
from sully.domain.allocation.usage.counters import (
    Draw,
    InvalidPool,
    Totals,
    dangling,
    draws_of,
    totals_of,
)
from sully.domain.devices.device import EffectiveDevice, Published
from sully.domain.devices.pools import PoolId, Standing, current, standing

EffectiveDevices = Callable[[ResourceSlice], Iterable[EffectiveDevice]]
"""Returns the devices of a slice in published order, with patches and taints applied."""


class PoolCounters(NamedTuple):
    """The counters of a pool."""

    totals: Totals
    draws: Mapping[str, tuple[Draw, ...]]
    """What devices consume of them, by name, also of devices in slices for other nodes."""


NO_COUNTERS = PoolCounters({}, {})


@dataclass(slots=True, eq=False)
class Pool:
    """A pool as some nodes see it."""

    id: PoolId
    devices: tuple[EffectiveDevice, ...] = ()
    is_incomplete: bool = False
    problem: str = ""
    """Why the pool is invalid; empty if it is not."""
    elsewhere: frozenset[int] = frozenset()
    """Indexes of devices that are in a visible slice but for other nodes."""
    counters: PoolCounters = NO_COUNTERS
    cache: dict[object, object] = field(default_factory=dict, repr=False)
    """What was computed about this pool; no part of the value, and does not refer to the pool."""

    @property
    def is_usable(self) -> bool:
        """Report whether devices of the pool may be allocated."""
        return not self.is_incomplete and not self.problem

    def order(self) -> tuple[bool, PoolId]:
        """Return what sorts pools: those without binding conditions first, as in Kubernetes."""
        waits = any(device.published.device.binding_conditions for device in self.devices)
        return waits, self.id


@dataclass(slots=True, eq=False)
class NodePools:
    """All pools that a node sees."""

    node: AllocatorNode
    pools: tuple[Pool, ...]
    incomplete: tuple[PoolId, ...] = ()
    """Pools that are not used because their driver is still writing them."""
    invalid: Mapping[PoolId, str] = field(default_factory=dict)
    """Pools that are not used because they contradict themselves, and how."""
    cache: dict[object, object] = field(default_factory=dict, repr=False)
    """What was computed about these pools together; no part of the value."""


def gather_node(node: AllocatorNode, pools: Iterable[Pool | None]) -> NodePools:
    """Return the pools of a node in the order in which they are tried."""
    ordered = tuple(sorted((pool for pool in pools if pool is not None), key=Pool.order))
    return NodePools(
        node,
        ordered,
        incomplete=tuple(pool.id for pool in ordered if pool.is_incomplete),
        invalid={pool.id: pool.problem for pool in ordered if pool.problem},
    )


def visible_slices(
    slices: Iterable[ResourceSlice], node: AllocatorNode
) -> tuple[ResourceSlice, ...]:
    """Return the slices of one pool that concern a node; none if it has nothing for it.

    Counters concern every node that uses a device of the pool, wherever their slice is published.
    """
    visible = [
        slice_
        for slice_ in slices
        if has_only_counters(slice_.spec) or is_visible(slice_.spec, node)
    ]
    return tuple(visible) if any(not has_only_counters(slice_.spec) for slice_ in visible) else ()


def has_only_counters(spec: ResourceSliceSpec) -> bool:
    """Report whether a slice has only counters, for the devices of other slices.

    Up to Kubernetes 1.34, counters and the devices that consume them are in one slice.
    """
    return bool(spec.shared_counters) and not spec.devices


def gather_pool(
    id_: PoolId,
    slices: Sequence[ResourceSlice],
    devices: EffectiveDevices,
    node: AllocatorNode,
) -> Pool | None:
    """Return a pool as a node sees it, or None if it has nothing for the node.

    `slices` are all of the pool, also those for other nodes and of other generations.
    """
    visible = visible_slices(slices, node)
    if not visible:
        return None
    match standing(visible, slices):
        case Standing.REPLACED:
            return None
        case Standing.INCOMPLETE:
            return Pool(id_, is_incomplete=True)
        case Standing.COMPLETE:
            return _complete(id_, current(visible), slices, devices, node)


def _complete(
    id_: PoolId,
    visible: Sequence[ResourceSlice],
    slices: Iterable[ResourceSlice],
    effective: EffectiveDevices,
    node: AllocatorNode,
) -> Pool:
    generation = visible[0].spec.pool.generation
    whole = [slice_ for slice_ in slices if slice_.spec.pool.generation == generation]
    counters = counters_of(visible, whole)
    if isinstance(counters, InvalidPool):
        return Pool(id_, problem=counters.message)
    devices = tuple(device for slice_ in visible for device in effective(slice_))
    return Pool(
        id_,
        devices,
        elsewhere=_elsewhere(visible, devices, node),
        counters=counters,
    )


def counters_of(
    visible: Iterable[ResourceSlice], whole: Sequence[ResourceSlice]
) -> PoolCounters | InvalidPool:
    """Return the counters of a pool and what its devices consume.

    Names need to be unique only among the slices that a node sees.
    """
    totals = totals_of(whole)
    if (duplicate := _duplicate(visible)) is not None:
        return duplicate
    if isinstance(totals, InvalidPool):
        return totals
    draws = {
        device.name: draws_of(device)
        for slice_ in whole
        for device in slice_.spec.devices
        if device.consumes_counters
    }
    for consumed in draws.values():
        if missing := dangling(consumed, totals):
            return InvalidPool(missing)
    return PoolCounters(totals, draws)


def _duplicate(slices: Iterable[ResourceSlice]) -> InvalidPool | None:
    names: set[str] = set()
    for slice_ in slices:
        for device in slice_.spec.devices:
            if device.name in names:
                return InvalidPool(f"duplicate device name {device.name}")
            names.add(device.name)
    return None


def _elsewhere(
    visible: Iterable[ResourceSlice], devices: Iterable[EffectiveDevice], node: AllocatorNode
) -> frozenset[int]:
    """Return the indexes of devices that are for other nodes."""
    if not any(slice_.spec.per_device_node_selection for slice_ in visible):
        return frozenset()
    return frozenset(
        index for index, device in enumerate(devices) if not _is_for(device.published, node)
    )


def _is_for(published: Published, node: AllocatorNode) -> bool:
    if not published.slice.spec.per_device_node_selection:
        return True
    return is_for_node(published.device, node)


class SliceSource(Protocol):
    """The slices and effective devices of a cluster; its inventory has them."""

    def pools_for(self, node: str) -> Sequence[PoolId]:
        """Return the pools with slices that are, or may be, for a node."""

    def slices(self, pool: PoolId) -> Sequence[ResourceSlice]:
        """Return all slices of a pool, of every generation and for every node."""

    def devices(self, slice_: ResourceSlice) -> Iterable[EffectiveDevice]:
        """Return the devices of a slice in published order, patched and tainted."""


class NodePoolsCache:
    """The pools of nodes, kept as long as nothing about them changes.

    They hold what was computed about their devices, so nodes that see the same slices of a pool
    share one `Pool`. The caller reports changes (`invalidate`); only the pools that changed are
    gathered again, and only for the nodes that see them.
    """

    def __init__(self, source: SliceSource) -> None:
        self._source = source
        self.version = 0
        """Increases with every change."""
        self._nodes: dict[str, NodePools] = {}
        self._pools: dict[PoolId, dict[tuple[str, ...], Pool | None]] = {}
        self._seen_by: dict[PoolId, set[str]] = {}

    def get(self, node: AllocatorNode) -> NodePools:
        """Return the pools that a node sees now."""
        node_pools = self._nodes.get(node.name)
        # Usually it is the same object, and no labels need to be compared.
        if node_pools is None or (node_pools.node is not node and node_pools.node != node):
            pools = self._source.pools_for(node.name)
            for pool in pools:
                self._seen_by.setdefault(pool, set()).add(node.name)
            node_pools = gather_node(node, [self._pool(pool, node) for pool in pools])
            self._nodes[node.name] = node_pools
        return node_pools

    def nodes_seeing(self, pool: PoolId) -> Collection[str]:
        """Return the nodes that see a pool, of those that were asked for."""
        return self._seen_by.get(pool, ())

    def invalidate(self, pools: Iterable[PoolId]) -> None:
        """Gather pools again, because their slices or devices changed."""
        self.version += 1
        for pool in pools:
            self._pools.pop(pool, None)
            for node in self._seen_by.pop(pool, set()) | self._may_see(pool):
                self._nodes.pop(node, None)

    def remove_node(self, node: str) -> None:
        """Drop a deleted node."""
        self._nodes.pop(node, None)
        for nodes in self._seen_by.values():
            nodes.discard(node)

    def _pool(self, pool: PoolId, node: AllocatorNode) -> Pool | None:
        slices = self._source.slices(pool)
        visible = visible_slices(slices, node)
        key = tuple(sorted(slice_.metadata.name for slice_ in visible))
        if any(slice_.spec.per_device_node_selection for slice_ in visible):
            # Two nodes that see the same slices may still see different devices in them.
            key = (*key, f"node={node.name}")
        cached = self._pools.setdefault(pool, {})
        if key not in cached:
            cached[key] = gather_pool(pool, slices, self._source.devices, node)
        return cached[key]

    def _may_see(self, pool: PoolId) -> set[str]:
        """Return the nodes that may not have seen a pool before."""
        specs = [slice_.spec for slice_ in self._source.slices(pool)]
        if all(spec.node_name for spec in specs):
            return {spec.node_name for spec in specs if spec.node_name}
        return set(self._nodes)

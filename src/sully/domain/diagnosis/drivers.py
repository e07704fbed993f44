"""Drivers whose slices are stale: their node is gone or not ready, or their pool is incomplete."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from sully.api.resource.types import ResourceSlice
from sully.domain.devicepolicies.sources.nodes import PolicyNode
from sully.domain.devices.pools import PoolId, Standing, pool_of, standing
from sully.domain.diagnosis.findings import Finding, failure, listed, ok, warning
from sully.machinery.formats.plurals import number_of
from sully.machinery.meta import find_condition

DRIVERS, POOLS = "drivers", "pools"


def check_drivers(slices: Iterable[ResourceSlice], nodes: Mapping[str, bool]) -> Iterator[Finding]:
    """Check the nodes of slices; `nodes`: whether each is ready."""
    gone: dict[str, set[str]] = defaultdict(set)
    unready: dict[str, set[str]] = defaultdict(set)
    drivers = set()
    for slice_ in slices:
        driver, node = slice_.spec.driver, slice_.spec.node_name or ""
        drivers.add(driver)
        if node and node not in nodes:
            gone[driver].add(node)
        elif node and not nodes[node]:
            unready[driver].add(node)
    for driver in sorted(gone):
        yield failure(
            f"driver {driver}",
            f"has slices of nodes that do not exist: {listed(sorted(gone[driver]))}",
            "delete the ResourceSlices of these nodes: their devices count as free",
        )
    for driver in sorted(unready):
        yield warning(
            f"driver {driver}",
            f"has slices of nodes that are not ready: {listed(sorted(unready[driver]))}",
            "repair the nodes, or taint their devices: nobody updates these slices",
        )
    if not gone and not unready:
        yield ok(DRIVERS, f"{number_of(len(drivers), 'driver')}, all on nodes that are ready")


def check_pools(slices: Iterable[ResourceSlice]) -> Iterator[Finding]:
    """Check that each pool has all slices of its newest generation."""
    pools: dict[PoolId, list[ResourceSlice]] = defaultdict(list)
    for slice_ in slices:
        pools[pool_of(slice_)].append(slice_)
    incomplete = [
        pool
        for pool in sorted(pools)
        if standing(pools[pool], pools[pool]) is not Standing.COMPLETE
    ]
    for pool in incomplete:
        newest = max(slice_.spec.pool.generation for slice_ in pools[pool])
        current = [x.spec.pool for x in pools[pool] if x.spec.pool.generation == newest]
        yield warning(
            f"pool {pool}",
            f"is incomplete: {len(current)} of {current[0].resource_slice_count} slices of"
            f" generation {newest}",
            f"check the driver {pool.driver}: none of these devices is allocated",
        )
    if not incomplete:
        yield ok(POOLS, f"{number_of(len(pools), 'pool')}, all complete")


def ready_nodes(nodes: Iterable[PolicyNode]) -> dict[str, bool]:
    """Return which nodes are ready, by name; one that has not reported yet counts as ready."""
    return {node.metadata.name: _is_ready(node) for node in nodes}


def _is_ready(node: PolicyNode) -> bool:
    condition = find_condition(node.conditions, "Ready")
    return condition is None or condition.status == "True"

"""The state of a pool as a ResourcePoolStatusRequest reports it: how many devices are available.

The counts are those of Kubernetes (KEP-5677). Types of partitions and shared capacity are in
pool_summaries.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from sully.api.resource.types import (
    PoolStatus,
    ResourceClaim,
    ResourcePoolStatusRequestSpec,
    ResourcePoolStatusRequestStatus,
    ResourceSlice,
)
from sully.domain.allocation.pools.pool_summaries import partition_summary, shareable_summary
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import PoolId
from sully.domain.devices.taints import BLOCKING_EFFECTS, untolerated
from sully.machinery.formats.quantity import Quantity, parse_quantity
from sully.machinery.formats.texts import truncated

ERROR_MAX = 256
"""Bytes of a validation error."""


class PoolAllocations(msgspec.Struct):
    """What claims without admin access use of a pool."""

    devices: set[str] = msgspec.field(default_factory=set)
    consumed: dict[str, Quantity] = msgspec.field(default_factory=dict)
    """By the name of the capacity."""


class PoolContent(msgspec.Struct, frozen=True):
    """The slices of the newest generation of a pool, its devices, and their use."""

    id: PoolId
    slices: Sequence[ResourceSlice]
    devices: Mapping[str, EffectiveDevice]
    use: PoolAllocations


def pool_uses(claims: Iterable[ResourceClaim]) -> dict[PoolId, PoolAllocations]:
    """Return what claims use, by pool; a device that several claims share counts once."""
    uses: dict[PoolId, PoolAllocations] = {}
    for claim in claims:
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation is not None else ():
            if result.admin_access:
                continue
            use = uses.setdefault(PoolId(result.driver, result.pool), PoolAllocations())
            use.devices.add(result.device)
            for name, amount in result.consumed_capacity.items():
                use.consumed[name] = use.consumed.get(name, Quantity(0)) + parse_quantity(amount)
    return uses


def report(
    pools: Iterable[PoolContent],
    spec: ResourcePoolStatusRequestSpec,
    *,
    effects: frozenset[str] = BLOCKING_EFFECTS,
    counts_once: bool = True,
) -> ResourcePoolStatusRequestStatus:
    """Report on pools, by name and up to the limit; the conditions are left to the caller.

    effects: those of taints that make a device unavailable. counts_once: an allocated device is not
    also unavailable, as documented.
    """
    default = spec.default_partition_type_attribute
    statuses = [
        _pool_status(pool, default, effects, counts_once=counts_once) for pool in _by_name(pools)
    ]
    return ResourcePoolStatusRequestStatus(
        pool_count=len(statuses), pools=tuple(statuses[: spec.limit])
    )


def is_incomplete(pools: Iterable[PoolContent], spec: ResourcePoolStatusRequestSpec) -> bool:
    """Report whether a driver is still publishing slices of a pool that is reported on."""
    return any(map(_is_incomplete, _by_name(pools)[: spec.limit]))


def summary(status: ResourcePoolStatusRequestStatus) -> str:
    """Return the message of the condition `Complete`."""
    invalid = sum(pool.validation_error is not None for pool in status.pools)
    suffix = f" ({invalid} incomplete)" if invalid else ""
    return f"Calculated status for {len(status.pools)} pools{suffix}"


def _by_name(pools: Iterable[PoolContent]) -> list[PoolContent]:
    return sorted(pools, key=lambda pool: pool.id)


def _is_incomplete(pool: PoolContent) -> bool:
    return len(pool.slices) < pool.slices[0].spec.pool.resource_slice_count


def _pool_status(
    pool: PoolContent, default: str | None, effects: frozenset[str], *, counts_once: bool
) -> PoolStatus:
    nodes = {slice_.spec.node_name for slice_ in pool.slices}
    newest = pool.slices[0].spec.pool
    status = PoolStatus(
        driver=pool.id.driver,
        pool_name=pool.id.pool,
        generation=newest.generation,
        node_name=(min(nodes, key=str) or None) if len(nodes) == 1 else None,
    )
    if _is_incomplete(pool):
        text = (
            f"PoolIncomplete: pool {pool.id} is incomplete: observed {len(pool.slices)}"
            f"/{newest.resource_slice_count} slices at generation {newest.generation}"
        )
        return replace(status, validation_error=truncated(text, ERROR_MAX))
    devices = tuple(pool.devices.values())
    tainted = {device.id.device for device in devices if untolerated(device.taints, (), effects)}
    used = pool.use.devices
    unavailable = len(tainted - used if counts_once else tainted)
    partitions, problem = partition_summary(pool.id, pool.slices, devices, used, default)
    shareable, shareable_problem = shareable_summary(pool.id, devices, used, pool.use.consumed)
    problem = problem or shareable_problem
    return replace(
        status,
        resource_slice_count=len(pool.slices),
        total_devices=len(devices),
        allocated_devices=len(used),
        available_devices=max(0, len(devices) - len(used) - unavailable),
        unavailable_devices=unavailable,
        partition_summary=() if problem else partitions,
        shareable_summary=shareable,
        validation_error=truncated(problem, ERROR_MAX) if problem else None,
    )

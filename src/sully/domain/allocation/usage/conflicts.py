"""Devices that were allocated twice: two schedulers decided before they saw each other's decision.

A claim holds a device exclusively, or a share of its capacity; admin access holds nothing. Sully's
API server rejects an allocation that conflicts with another (exclusion.py), Kubernetes does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from sully.api.resource.types import (
    AllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from sully.domain.allocation.requests import claim_key
from sully.domain.allocation.usage.capacity import left_of, taken_of
from sully.domain.devices.selectors import Content

Cause = Literal["AllocatedTwice", "CapacityExceeded"]
Held = tuple[str, DeviceRequestAllocationResult]
"""A claim, as namespace/name, and what it was allocated."""


class DeviceConflict(msgspec.Struct, frozen=True):
    """Claims that cannot all use a device."""

    cause: Cause
    claims: tuple[str, ...]
    """All claims that hold the device or a share of it, as namespace/name."""
    exceeded: tuple[str, ...] = ()
    """The capacities of which more is allocated than there is."""


def conflict_of(held: Iterable[Held], content: Content | None) -> DeviceConflict | None:
    """Return the conflict between the allocations of one device; None if there is none.

    `content` is what is published of the device, None if it no longer is.
    """
    holders = [(claim, result) for claim, result in held if not result.admin_access]
    claims = tuple(sorted({claim for claim, _ in holders}))
    if len(claims) > 1 and any(result.share_id is None for _, result in holders):
        return DeviceConflict("AllocatedTwice", claims)
    if content is None:
        return None
    shares = [result for _, result in holders if result.share_id is not None]
    if not shares:
        return None
    taken = taken_of((result.consumed_capacity for result in shares), content.driver)
    exceeded = [name for name, left in left_of(content, taken).items() if left.sign() < 0]
    return DeviceConflict("CapacityExceeded", claims, tuple(sorted(exceeded))) if exceeded else None


def comes_first(claim: ResourceClaim, other: ResourceClaim) -> bool:
    """Report which of two claims keeps a device that both were allocated: the older one."""
    return _age(claim) < _age(other)


def _age(claim: ResourceClaim) -> tuple[float, str]:
    created = claim.metadata.creation_timestamp
    return (created.timestamp() if created is not None else 0.0, claim.metadata.uid)


def results_of(claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
    """Return the devices of a claim that it holds."""
    return held_by(claim.status.allocation)


def held_by(allocation: AllocationResult | None) -> tuple[DeviceRequestAllocationResult, ...]:
    """Return the devices of an allocation, without those with admin access."""
    if allocation is None:
        return ()
    return tuple(result for result in allocation.devices.results if not result.admin_access)


def holdings_of(claims: Iterable[ResourceClaim]) -> list[tuple[ResourceClaim, Held]]:
    """Return every device that claims hold."""
    return [(claim, (claim_key(claim), result)) for claim in claims for result in results_of(claim)]

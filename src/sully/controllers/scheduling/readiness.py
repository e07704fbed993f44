"""May a pod be bound: some devices must first be made ready by their driver.

A device may name conditions that must be true before a pod that uses it goes to its node, and
others that say it will never come to that. Drivers report both in the status of the claim.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import Enum

from sully.api.resource.claim_types import DeviceRequestAllocationResult, ResourceClaim

PATIENCE = timedelta(seconds=600)


class Readiness(Enum):
    """Whether the devices of claims can be used."""

    READY = "ready"
    PENDING = "pending"
    FAILED = "failed"


def readiness(claims: Iterable[ResourceClaim]) -> Readiness:
    """Say whether all devices of claims can be used."""
    found = {_of_result(claim, result) for claim in claims for result in _conditional(claim)}
    if Readiness.FAILED in found:
        return Readiness.FAILED
    return Readiness.PENDING if Readiness.PENDING in found else Readiness.READY


def waits(claim: ResourceClaim) -> bool:
    """Say whether a claim has devices that must be made ready."""
    return any(_conditional(claim))


def deadline(claims: Iterable[ResourceClaim], now: datetime) -> datetime:
    """Return until when it makes sense to wait for devices."""
    since = [
        claim.status.allocation.allocation_timestamp or now
        for claim in claims
        if claim.status.allocation is not None and waits(claim)
    ]
    return min(since, default=now) + PATIENCE


def _conditional(claim: ResourceClaim) -> Iterable[DeviceRequestAllocationResult]:
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    return (each for each in results if each.binding_conditions)


def _of_result(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> Readiness:
    true = {
        condition.type
        for each in claim.status.devices
        if (each.driver, each.pool, each.device, each.share_id)
        == (result.driver, result.pool, result.device, result.share_id)
        for condition in each.conditions or ()
        if condition.status == "True"
    }
    if true.intersection(result.binding_failure_conditions):
        return Readiness.FAILED
    return Readiness.READY if true.issuperset(result.binding_conditions) else Readiness.PENDING

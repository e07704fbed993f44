"""May a pod be bound: some devices must first be made ready by their driver.

A device may name conditions that must be true before a pod that uses it goes to its node, and
others that say it will never come to that. Drivers report both in the status of the claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from enum import Enum
from typing import NamedTuple

from sully.api.resource.claim_types import DeviceRequestAllocationResult, ResourceClaim

PATIENCE = timedelta(seconds=600)


class Readiness(Enum):
    """Whether the devices of claims can be used."""

    READY = "ready"
    PENDING = "pending"
    FAILED = "failed"


class Unready(NamedTuple):
    """A device that cannot be used, or not yet."""

    result: DeviceRequestAllocationResult
    lacks: tuple[str, ...]
    """Conditions that must be true, and are not."""
    failed: tuple[str, ...]
    """Conditions that are true, and say that it will never be ready."""


def readiness(claims: Iterable[ResourceClaim]) -> Readiness:
    """Say whether all devices of claims can be used."""
    found = [each for claim in claims for each in unready(claim)]
    if any(each.failed for each in found):
        return Readiness.FAILED
    return Readiness.PENDING if found else Readiness.READY


def unready(claim: ResourceClaim) -> Iterator[Unready]:
    """Yield the devices of a claim that cannot be used, or not yet."""
    for result in _conditional(claim):
        true = _true(claim, result)
        lacks = tuple(each for each in result.binding_conditions if each not in true)
        failed = tuple(each for each in result.binding_failure_conditions if each in true)
        if lacks or failed:
            yield Unready(result, lacks, failed)


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


def _true(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> set[str]:
    """Return the conditions that the driver reports to be true."""
    return {
        condition.type
        for each in claim.status.devices
        if (each.driver, each.pool, each.device, each.share_id)
        == (result.driver, result.pool, result.device, result.share_id)
        for condition in each.conditions or ()
        if condition.status == "True"
    }

"""Binding conditions: some devices must be made ready by their driver before a pod is bound.

A device may name conditions that must be true before a pod that uses it is bound, and others that
mean it will never be ready. Drivers report both in the status of the claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from enum import Enum
from typing import NamedTuple

from sully.api.resource.types import DeviceRequestAllocationResult, ResourceClaim
from sully.machinery.formats.timestamps import later

TIMEOUT = timedelta(seconds=600)


class Readiness(Enum):
    """Whether the devices of claims are ready."""

    READY = "ready"
    PENDING = "pending"
    FAILED = "failed"


class Unready(NamedTuple):
    """A device that is not ready."""

    result: DeviceRequestAllocationResult
    lacks: tuple[str, ...]
    """Conditions that must be true, and are not."""
    failed: tuple[str, ...]
    """Conditions that are true, and mean that it will never be ready."""


def readiness(claims: Iterable[ResourceClaim]) -> Readiness:
    """Return whether all devices of claims are ready."""
    devices = [device for claim in claims for device in unready(claim)]
    if any(device.failed for device in devices):
        return Readiness.FAILED
    return Readiness.PENDING if devices else Readiness.READY


def unready(claim: ResourceClaim) -> Iterator[Unready]:
    """Yield the devices of a claim that are not ready."""
    for result in _conditional(claim):
        true = _true(claim, result)
        lacks = tuple(name for name in result.binding_conditions if name not in true)
        failed = tuple(name for name in result.binding_failure_conditions if name in true)
        if lacks or failed:
            yield Unready(result, lacks, failed)


def has_binding_conditions(claim: ResourceClaim) -> bool:
    """Report whether a claim has devices that must be made ready."""
    return any(_conditional(claim))


def deadline(claims: Iterable[ResourceClaim], now: datetime) -> datetime:
    """Return when devices that are not ready time out."""
    since = [
        claim.status.allocation.allocation_timestamp or now
        for claim in claims
        if claim.status.allocation is not None and has_binding_conditions(claim)
    ]
    return later(min(since, default=now), TIMEOUT)


def _conditional(claim: ResourceClaim) -> Iterable[DeviceRequestAllocationResult]:
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    return (result for result in results if result.binding_conditions)


def _true(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> set[str]:
    """Return the conditions that the driver reports to be true."""
    return {
        condition.type
        for device in claim.status.devices
        if (device.driver, device.pool, device.device, device.share_id)
        == (result.driver, result.pool, result.device, result.share_id)
        for condition in device.conditions or ()
        if condition.status == "True"
    }

"""Faults that concern other devices: those of a whole device its partitions, and the other way.

Partitions share counters with the device that they are part of. A device contains another one if it
consumes at least as much of every counter that the other one consumes, and more in all. What passes
on is only a device's own fault, so a fault of one partition does not reach the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from sully.api.resource.types import Device
from sully.domain.allocation.usage.counters import draws_of
from sully.domain.devicepolicies.states import Fault, Observation

TO_PARTITIONS: Final = "ToPartitions"
TO_WHOLE: Final = "ToWhole"
BOTH: Final = "Both"

Consumption = Mapping[tuple[str, str], int]
"""Nano units by counter set and counter."""


def consumption_of(device: Device) -> Consumption:
    """Return what a device consumes of shared counters; nothing if it shares none."""
    return {
        (draw.counter_set, counter): amount
        for draw in draws_of(device)
        for counter, amount in draw.amounts
        if amount
    }


def contains(whole: Consumption, part: Consumption) -> bool:
    """Report whether a device contains another one."""
    if not part or whole == part:
        return False
    return all(whole.get(counter, 0) >= amount for counter, amount in part.items())


def propagated(
    direction: str,
    consumptions: Mapping[str, Consumption],
    observed: Mapping[str, Observation],
) -> dict[str, Observation]:
    """Return what is observed of the devices of a pool, with faults of related devices.

    `consumptions` are those of all devices that take part; `observed` has those that are not simply
    healthy. A device that a related one cannot be judged for is unknown, too: a fault that was
    passed on must not end because its source cannot be evaluated.
    """
    merged = dict(observed)
    for source in sorted(observed):
        for device in sorted(_related(direction, source, consumptions)):
            merged[device] = _with(merged.get(device, Observation()), observed[source], source)
    return merged


def _related(direction: str, source: str, consumptions: Mapping[str, Consumption]) -> Iterable[str]:
    own = consumptions.get(source, {})
    for device, other in consumptions.items():
        down = direction in (TO_PARTITIONS, BOTH) and contains(own, other)
        up = direction in (TO_WHOLE, BOTH) and contains(other, own)
        if down or up:
            yield device


def _with(own: Observation, related: Observation, source: str) -> Observation:
    name = source.rpartition("/")[2]
    faults = tuple(
        Fault(fault.source, fault.severity, f"device {name}: {fault.message or fault.source}")
        for fault in related.faults
    )
    return replace(own, faults=(*own.faults, *faults), known=own.known and related.known)

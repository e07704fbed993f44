"""What is left in pools whose devices are partitions of a card, or shared by several claims.

Parts of the state of a pool (pool_status.py). A summary that cannot be calculated is empty, and a
text has the reason, with the prefix that Kubernetes has for the cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

import msgspec
from msgspec.structs import replace

from sully.api.resource.types import (
    PartitionTypeStatus,
    ResourceSlice,
    ShareableCapacityStatus,
    ShareableSummaryStatus,
)
from sully.domain.allocation.usage.counters import (
    Balance,
    Draw,
    InvalidPool,
    Totals,
    dangling,
    draws_of,
    totals_of,
)
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import PoolId
from sully.machinery.formats.quantity import Quantity, parse_quantity

SUMMARY_MAX = 32
"""Types of partitions, and capacities, that one pool may have."""


class _InvalidPartitionsError(Exception):
    """Why the partitions of a pool cannot be counted."""


class _Type(msgspec.Struct):
    """The devices of one type of partition."""

    draws: tuple[Draw, ...]
    total: int = 0
    unused: list[tuple[Draw, ...]] = msgspec.field(default_factory=list)


def partition_summary(
    pool: PoolId,
    slices: Sequence[ResourceSlice],
    devices: Sequence[EffectiveDevice],
    used: Set[str],
    default: str | None,
) -> tuple[tuple[PartitionTypeStatus, ...], str]:
    """Return how many more partitions of each type the counters allow, or what is wrong.

    The type of a device is the value of the attribute that its slice names; `default` is used where
    no slice of the pool names one. Each type is counted as if no other were allocated.
    """
    if any(slice_.spec.partition_type_attribute for slice_ in slices):
        default = None
    attributes = {
        device.id.device: device.published.slice.spec.partition_type_attribute or default
        for device in devices
    }
    if not any(attributes.values()):
        return (), ""
    if not any(slice_.spec.shared_counters for slice_ in slices):
        text = "declares partitionTypeAttribute but publishes no sharedCounters"
        return (), f"PartitionTypeMissing: pool {pool} {text}"
    try:
        types = _types(pool, devices, attributes, used)
    except _InvalidPartitionsError as error:
        return (), str(error)
    if len(types) > SUMMARY_MAX:
        text = f"has {len(types)} partition types, exceeding the maximum of {SUMMARY_MAX}"
        return (), f"PartitionSummaryOverCap: pool {pool} {text}"
    totals = totals_of(slices)
    # Nothing can be allocated from a pool with invalid counters.
    counters = {} if isinstance(totals, InvalidPool) else totals
    in_use = [_draws(device) for device in devices if device.id.device in used]
    return tuple(
        PartitionTypeStatus(
            attribute=attribute,
            type=name,
            total=type_.total,
            allocatable=_allocatable(type_.unused, counters, in_use),
        )
        for (attribute, name), type_ in sorted(types.items())
    ), ""


def _types(
    pool: PoolId,
    devices: Iterable[EffectiveDevice],
    attributes: Mapping[str, str | None],
    used: Set[str],
) -> dict[tuple[str, str], _Type]:
    types: dict[tuple[str, str], _Type] = {}
    for device in devices:
        name, attribute, draws = device.id.device, attributes[device.id.device], _draws(device)
        if not draws or not attribute:
            continue
        value = _string_attribute(device, attribute)
        if value is None:
            raise _InvalidPartitionsError(
                f'PartitionTypeMissing: device "{name}" in pool {pool} does not carry partition'
                f' type attribute "{attribute}"'
            )
        type_ = types.setdefault((attribute, value), _Type(draws))
        if draws != type_.draws:
            raise _InvalidPartitionsError(
                f'PartitionCostMismatch: devices of partition type "{value}" in pool {pool}'
                " consume different counters"
            )
        type_.total += 1
        if name not in used:
            type_.unused.append(draws)
    return types


def _draws(device: EffectiveDevice) -> tuple[Draw, ...]:
    """Return what a device consumes, in a form that can be compared; groups do not count here."""
    draws = (replace(draw, groups=frozenset()) for draw in draws_of(device.published.device))
    return tuple(sorted(draws, key=lambda draw: (draw.counter_set, draw.amounts)))


def _string_attribute(device: EffectiveDevice, name: str) -> str | None:
    """Return an attribute that is a string; one of the driver's own may lack the domain."""
    attribute = device.attributes.get(name)
    domain, _, bare = name.partition("/")
    if attribute is None and domain == device.id.driver:
        attribute = device.attributes.get(bare)
    return attribute.string_value if attribute is not None else None


def _allocatable(
    unused: Iterable[tuple[Draw, ...]], totals: Totals, in_use: Iterable[tuple[Draw, ...]]
) -> int:
    balance = Balance(totals, in_use)
    return sum(not dangling(draws, totals) and balance.take(draws) for draws in unused)


def shareable_summary(
    pool: PoolId,
    devices: Iterable[EffectiveDevice],
    used: Set[str],
    consumed: Mapping[str, Quantity],
) -> tuple[ShareableSummaryStatus | None, str]:
    """Return the capacity of devices that several claims may share; None if there are none."""
    shareable = [device for device in devices if device.shareable]
    if not shareable:
        return None, ""
    totals: dict[str, Quantity] = {}
    for device in shareable:
        for name, capacity in device.capacity.items():
            totals[name] = totals.get(name, Quantity(0)) + parse_quantity(capacity.value)
    if len(totals) > SUMMARY_MAX:
        text = f"has {len(totals)} shareable capacity keys, exceeding the maximum of {SUMMARY_MAX}"
        return None, f"ShareableSummaryOverCap: pool {pool} {text}"
    partial = sum(device.id.device in used for device in shareable)
    return ShareableSummaryStatus(
        fully_available_devices=len(shareable) - partial,
        partially_available_devices=partial,
        capacity=tuple(
            _capacity(name, totals[name], consumed.get(name, Quantity(0)))
            for name in sorted(totals)
        ),
    ), ""


def _capacity(name: str, total: Quantity, consumed: Quantity) -> ShareableCapacityStatus:
    available = max(total - consumed, Quantity(0, total.style))
    return ShareableCapacityStatus(
        name=name, total=str(total), consumed=str(consumed), available=str(available)
    )

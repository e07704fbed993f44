"""Counts the devices of a copy of the cluster by class.

A plan counts all of them several times: before the change, after it, and as they would be without
it. Most pools are the same each time, and are counted once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from sully.api.resource.types import DeviceClass, ResourceSlice
from sully.domain.allocation.rejections.availability import Availability, used_up
from sully.domain.allocation.usage.capacity import left_of
from sully.domain.allocation.usage.ledger import Ledger, PoolUse
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import PoolId
from sully.domain.planning.device_counts import CountedDevice, DeviceCounter, DeviceCounts
from sully.domain.planning.differences import DevicesByPool
from sully.views.devices.inventory import Inventory


class _CountedPool(msgspec.Struct, frozen=True):
    """What decides how the devices of a pool are counted, and the result."""

    slices: tuple[ResourceSlice, ...]
    devices: Mapping[str, EffectiveDevice]
    used: frozenset[str]
    counts: Mapping[str, DeviceCounts]

    def is_of(
        self,
        slices: tuple[ResourceSlice, ...],
        devices: Mapping[str, EffectiveDevice],
        use: PoolUse,
    ) -> bool:
        return (
            self.slices == slices
            and self.devices == devices
            and self.used == use.devices.keys()
            and not use.shares
        )


class PoolCounter:
    """Counts devices by class, pool by pool."""

    def __init__(self, classes: Iterable[DeviceClass]) -> None:
        self.classes = {device_class.metadata.name: device_class for device_class in classes}
        self._counter = DeviceCounter(self.classes)
        self._pools: dict[PoolId, _CountedPool] = {}

    def count(
        self, devices_by_pool: DevicesByPool, inventory: Inventory, ledger: Ledger
    ) -> dict[str, DeviceCounts]:
        """Count devices with their current use; classes come in order of their names."""
        total = {name: DeviceCounts() for name in sorted(self.classes)}
        for id_, devices in devices_by_pool.items():
            pool, use = inventory.pool(id_), ledger.get(id_) or PoolUse()
            slices = tuple(pool.slices.values()) if pool is not None else ()
            for name, counts in self._count_pool(id_, slices, devices, use).items():
                total[name].add(counts)
        return total

    def _count_pool(
        self,
        id_: PoolId,
        slices: tuple[ResourceSlice, ...],
        devices: Mapping[str, EffectiveDevice],
        use: PoolUse,
    ) -> Mapping[str, DeviceCounts]:
        known = self._pools.get(id_)
        if known is not None and known.is_of(slices, devices, use):
            return known.counts
        counts = self._counter.count_selected(_with_use(slices, devices, use))
        if not use.shares:
            self._pools[id_] = _CountedPool(slices, devices, frozenset(use.devices), counts)
        return counts


def _with_use(
    slices: tuple[ResourceSlice, ...], devices: Mapping[str, EffectiveDevice], use: PoolUse
) -> Iterator[CountedDevice]:
    availability = Availability(slices, use.devices.keys() | use.shares.keys())
    if availability.are_plain and not use.shares:
        # Most pools: only allocation makes their devices unavailable.
        yield from (CountedDevice(device, name in use.devices) for name, device in devices.items())
        return
    for name, device in devices.items():
        used = name in use.devices or (name in use.shares and not device.shareable)
        yield CountedDevice(device, used, _is_unavailable(device, use, availability))


def _is_unavailable(device: EffectiveDevice, use: PoolUse, availability: Availability) -> bool:
    """Report whether neither a device nor a share of it can be allocated."""
    published = device.published
    if availability.obstacle(published.slice, published.device) is not None:
        return True
    taken = use.amounts.get(published.device.name) if device.shareable else None
    if not taken:
        return False
    return used_up(device.content, left_of(device.content, taken)) is not None

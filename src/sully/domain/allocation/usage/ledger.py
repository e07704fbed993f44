"""Which devices are allocated, and how much of those that are shared.

A result with admin access allocates nothing, one with a share ID allocates capacity, any other the
whole device. The scheduler (`scheduler/caches/device_cache.py`) updates the ledger with the claims
of the cluster, and with allocations that are being written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Protocol

import msgspec

from sully.api.resource.types import AllocationResult, DeviceRequestAllocationResult
from sully.domain.allocation.usage.capacity import full_name
from sully.domain.devices.pools import PoolId
from sully.machinery.formats.quantity import parse_quantity


class PoolUse(msgspec.Struct, eq=False):
    """What is taken of one pool."""

    devices: Counter[str] = msgspec.field(default_factory=Counter)
    """How many claims hold a device exclusively; more than one is an error of another writer."""
    shares: Counter[str] = msgspec.field(default_factory=Counter)
    """How many shares of a device are held."""
    amounts: dict[str, Counter[str]] = msgspec.field(default_factory=dict)
    """Capacity that shares take: device, full name of the capacity, nano units."""
    holders: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """The claims that hold a device or a share of it, for diagnoses only."""
    version: int = 0
    """Increases with every change."""

    def copy(self) -> PoolUse:
        """Return an independent copy."""
        return PoolUse(
            self.devices.copy(),
            self.shares.copy(),
            {device: amounts.copy() for device, amounts in self.amounts.items()},
            {device: claims.copy() for device, claims in self.holders.items()},
            self.version,
        )

    def __contains__(self, device: str) -> bool:
        """Report whether a device is used at all."""
        return device in self.devices or device in self.shares


class InUse(Protocol):
    """What the allocator needs to know of a ledger."""

    @property
    def releases(self) -> int:
        """Return a number that increases when devices are released."""

    def get(self, pool: PoolId, /) -> PoolUse | None:
        """Return what is taken of a pool, or None if nothing is."""


class Ledger:
    """What is taken of all pools."""

    def __init__(self) -> None:
        self.releases = 0
        """Increases when devices are released; until then, what is full stays full."""
        self.version = 0
        """Increases with every change."""
        self._pools: dict[PoolId, PoolUse] = {}
        self._listeners: list[Callable[[PoolId], None]] = []

    def copy_from(self, other: Ledger) -> None:
        """Take as much as another ledger."""
        self.releases, self.version = other.releases, other.version
        self._pools = {pool: use.copy() for pool, use in other._pools.items()}

    def on_release(self, listener: Callable[[PoolId], None]) -> None:
        """Call a listener with each pool of which devices are released."""
        self._listeners.append(listener)

    def get(self, pool: PoolId, /) -> PoolUse | None:
        """Return what is taken of a pool, or None if nothing is."""
        return self._pools.get(pool)

    def take(self, allocation: AllocationResult, holder: str = "") -> None:
        """Note the devices of an allocation as taken."""
        self.version += 1
        for result in allocation.devices.results:
            if not result.admin_access:
                self._change(result, 1, holder)

    def release(self, allocation: AllocationResult, holder: str = "") -> None:
        """Note the devices of an allocation, taken before by the same holder, as free."""
        self.version += 1
        self.releases += 1
        for result in allocation.devices.results:
            if not result.admin_access:
                pool = self._change(result, -1, holder)
                for listener in self._listeners:
                    listener(pool)

    def _change(self, result: DeviceRequestAllocationResult, by: int, holder: str) -> PoolId:
        pool = PoolId(result.driver, result.pool)
        use = self._pools.get(pool)
        if use is None:
            use = self._pools[pool] = PoolUse()
        use.version = self.version
        if holder:
            _hold(use.holders, result.device, by, holder)
        if result.share_id is None:
            _count(use.devices, result.device, by)
        else:
            _count(use.shares, result.device, by)
            _share(use, result, by)
        if not use.devices and not use.shares:
            del self._pools[pool]
        return pool


def _share(use: PoolUse, result: DeviceRequestAllocationResult, by: int) -> None:
    amounts = use.amounts.setdefault(result.device, Counter())
    for name, text in result.consumed_capacity.items():
        _count(amounts, full_name(name, result.driver), by * parse_quantity(text).nanos)
    if result.device not in use.shares:
        del use.amounts[result.device]


def _hold(holders: dict[str, list[str]], device: str, by: int, holder: str) -> None:
    if by > 0:
        holders.setdefault(device, []).append(holder)
        return
    claims = holders[device]
    claims.remove(holder)
    if not claims:
        del holders[device]


def _count(counter: Counter[str], name: str, by: int) -> None:
    count = counter.get(name, 0) + by
    if count:
        counter[name] = count
    else:
        counter.pop(name, None)

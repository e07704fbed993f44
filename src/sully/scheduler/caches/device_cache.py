"""Devices: what nodes are offered, what is allocated, and which allocations are assumed.

An allocation is assumed from the moment it was decided until the API shows it, or shows that it
was not written; so no device is allocated twice although writes take time.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from sully.api.resource.types import AllocationResult, ResourceClaim, ResourceSlice
from sully.domain.allocation.pools.node_pools import NodePoolsCache
from sully.domain.allocation.requests import claim_key
from sully.domain.allocation.usage.ledger import Ledger
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import DeviceId, PoolId, pool_of
from sully.domain.devices.rules import sourced
from sully.domain.devices.taints import SourcedTaint
from sully.scheduler.options import ExcludeDevice
from sully.views.devices.changes import InventoryChange
from sully.views.devices.inventory import Inventory


class AllocatableDevices:
    """The devices of the inventory that may be allocated, by pool and slice."""

    def __init__(self, inventory: Inventory, exclude: ExcludeDevice | None = None) -> None:
        self._inventory = inventory
        self._exclude = exclude

    def pools_for(self, node: str) -> list[PoolId]:
        """Return the pools with slices that are, or may be, for a node."""
        return self._inventory.pools_for(node)

    def slices(self, pool: PoolId) -> list[ResourceSlice]:
        """Return all slices of a pool, by name."""
        known = self._inventory.pool(pool)
        if known is None:
            return []
        return [known.slices[name] for name in sorted(known.slices)]

    def devices(self, slice_: ResourceSlice) -> Iterable[EffectiveDevice]:
        """Yield the devices of a slice, patched and tainted.

        An outdated generation has none: their taints are unknown.
        """
        id_ = pool_of(slice_)
        pool = self._inventory.pool(id_)
        if pool is None or pool.generation != slice_.spec.pool.generation:
            return
        merged = self._inventory.devices(id_)
        for published in slice_.spec.devices:
            device = merged.get(published.name)
            # A name that two slices have is one device, that of the first.
            if device and device.published.slice is slice_ and not self._is_excluded(device):
                yield device

    def _is_excluded(self, device: EffectiveDevice) -> bool:
        """Report whether a device must not be allocated now, also while its taints are unknown."""
        if self._exclude is not None and self._exclude(device):
            return True
        return self._inventory.choices.is_pending(device)


class _Assumed(msgspec.Struct):
    allocation: AllocationResult
    holder: str
    version: int | None = None
    """The resource version in which it was written, once it was."""


class DeviceCache:
    """Devices that are offered, allocated and assumed."""

    def __init__(self, inventory: Inventory, exclude: ExcludeDevice | None = None) -> None:
        self.inventory = inventory
        self.node_pools = NodePoolsCache(AllocatableDevices(inventory, exclude))
        self.ledger = Ledger()
        self._assumed: dict[str, _Assumed] = {}
        self._versions: dict[str, int] = {}
        """The last version that was seen of claims whose allocation is assumed."""

    def devices_changed(self, change: InventoryChange) -> None:
        """Handle a change of the inventory."""
        self.node_pools.invalidate(change.pools)

    def taints(self, device: DeviceId) -> tuple[SourcedTaint, ...]:
        """Return the taints of a device; of one that is not published, those of rules."""
        known = self.inventory.device(device)
        if known is not None:
            return known.taints
        return tuple(sourced(rule) for rule in self.inventory.rules_for(device))

    def is_assumed(self, claim: ResourceClaim) -> bool:
        """Report whether a claim is being allocated."""
        return claim.metadata.uid in self._assumed

    def assume(self, claim: ResourceClaim, allocation: AllocationResult) -> None:
        """Count an allocation that is going to be written."""
        uid, holder = claim.metadata.uid, claim_key(claim)
        self._assumed[uid] = _Assumed(allocation, holder)
        self._versions[uid] = int(claim.metadata.resource_version or 0)
        self.ledger.take(allocation, holder)

    def created(self, uid: str, claim: ResourceClaim) -> None:
        """Assume an allocation under the uid that its claim got when it was created."""
        if uid in self._assumed:
            self._assumed[claim.metadata.uid] = self._assumed.pop(uid)
            self._versions[claim.metadata.uid] = max(
                self._versions.pop(uid), int(claim.metadata.resource_version)
            )

    def written(self, claim: ResourceClaim) -> None:
        """Note that an allocation was written; it is assumed until an event shows it."""
        entry = self._assumed.get(claim.metadata.uid)
        if entry is not None:
            entry.version = int(claim.metadata.resource_version)
            self._settle(claim.metadata.uid)

    def forget(self, uid: str) -> None:
        """Release an assumed allocation unless it was written: then events show it."""
        entry = self._assumed.get(uid)
        if entry is not None and entry.version is None:
            self._drop(uid)

    def _drop(self, uid: str) -> None:
        entry = self._assumed.pop(uid, None)
        self._versions.pop(uid, None)
        if entry is not None:
            self.ledger.release(entry.allocation, entry.holder)

    def claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> bool:
        """Handle a change of a claim; report whether devices were released."""
        before, after = _allocation(old), _allocation(new)
        if before is None and new is not None and self._is_as_assumed(new):
            self.confirm(new)
            return False
        if before != after:
            if after is not None and new is not None:
                self.ledger.take(after, claim_key(new))
            if before is not None and old is not None:
                self.ledger.release(before, claim_key(old))
        self._confirm(old, new)
        return before is not None and before != after

    def confirm(self, claim: ResourceClaim) -> None:
        """Note that a claim has the allocation that was assumed, which is counted already."""
        del self._assumed[claim.metadata.uid], self._versions[claim.metadata.uid]

    def _is_as_assumed(self, claim: ResourceClaim) -> bool:
        entry, allocation = self._assumed.get(claim.metadata.uid), claim.status.allocation
        return (
            entry is not None
            and allocation is not None
            and entry.allocation.devices == allocation.devices
            and entry.holder == claim_key(claim)
        )

    def _confirm(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """Drop what is assumed once the API shows what became of it."""
        if new is None:
            if old is not None:
                self._drop(old.metadata.uid)
            return
        uid = new.metadata.uid
        if uid not in self._assumed:
            return
        if new.status.allocation is not None:
            self._drop(uid)
            return
        self._versions[uid] = int(new.metadata.resource_version)
        self._settle(uid)

    def _settle(self, uid: str) -> None:
        """Drop what was written and deallocated before an event showed it."""
        version = self._assumed[uid].version
        if version is not None and self._versions[uid] >= version:
            self._drop(uid)


def _allocation(claim: ResourceClaim | None) -> AllocationResult | None:
    return claim.status.allocation if claim is not None else None

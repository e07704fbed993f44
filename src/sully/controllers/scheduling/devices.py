"""Devices as the scheduler keeps them: what is offered, what is taken, what is being written.

An allocation counts from the moment it was decided until the API shows it, or shows that it did
not come about; so no device is given away twice although writes take time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sully.api.resource.claim_types import AllocationResult, ResourceClaim
from sully.api.resource.types import ResourceSlice
from sully.domain.allocation.catalogue import Catalogue
from sully.domain.allocation.ledger import Ledger
from sully.domain.allocation.requests import claim_key
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import DeviceId, PoolId, pool_of
from sully.domain.devices.rules import sourced
from sully.domain.devices.taints import SourcedTaint
from sully.views.devices.changes import Change
from sully.views.devices.inventory import Inventory

Rests = Callable[[EffectiveDevice], bool]
"""Says of a device that it is not to be handed out for now."""


class Shelf:
    """The inventory, in the form in which offers are made from it."""

    def __init__(self, inventory: Inventory, rests: Rests | None = None) -> None:
        self._inventory = inventory
        self._rests = rests

    def pools_for(self, node: str) -> list[PoolId]:
        """Return the pools with slices that are, or may be, for a node."""
        return self._inventory.pools_for(node)

    def slices(self, pool: PoolId) -> list[ResourceSlice]:
        """Return all slices of a pool, by name."""
        found = self._inventory.pool(pool)
        if found is None:
            return []
        return [found.slices[name] for name in sorted(found.slices)]

    def devices(self, slice_: ResourceSlice) -> Iterable[EffectiveDevice]:
        """Yield the devices of a slice, patched and tainted.

        Of a generation that was replaced elsewhere there are none: nobody knows their taints.
        """
        id_ = pool_of(slice_)
        pool = self._inventory.pool(id_)
        if pool is None or pool.generation != slice_.spec.pool.generation:
            return
        merged = self._inventory.devices(id_)
        for device in slice_.spec.devices:
            found = merged.get(device.name)
            # A name that stands in two slices is one device, that of the first.
            if found and found.published.slice is slice_ and not self._is_resting(found):
                yield found

    def _is_resting(self, device: EffectiveDevice) -> bool:
        """Say whether a device is not to be handed out now, also while its taints are unknown."""
        if self._rests is not None and self._rests(device):
            return True
        return self._inventory.choices.is_pending(device)


@dataclass(slots=True)
class _InFlight:
    allocation: AllocationResult
    holder: str
    version: int | None = None
    """The version in which it was written, once it was."""


class Devices:
    """Offers and uses of devices."""

    def __init__(self, inventory: Inventory, rests: Rests | None = None) -> None:
        self.inventory = inventory
        self.catalogue = Catalogue(Shelf(inventory, rests))
        self.ledger = Ledger()
        self._in_flight: dict[str, _InFlight] = {}
        self._versions: dict[str, int] = {}
        """The last version that was seen of claims that are in flight."""

    def changed(self, change: Change) -> None:
        """Take a change of the inventory."""
        self.catalogue.touch(change.pools)

    def taints(self, device: DeviceId) -> tuple[SourcedTaint, ...]:
        """Return the taints of a device; of one that is not published, those of rules."""
        found = self.inventory.device(device)
        if found is not None:
            return found.taints
        return tuple(sourced(rule) for rule in self.inventory.rules_for(device))

    def is_in_flight(self, claim: ResourceClaim) -> bool:
        """Say whether a claim is being allocated."""
        return claim.metadata.uid in self._in_flight

    def assume(self, claim: ResourceClaim, allocation: AllocationResult) -> None:
        """Count an allocation that is going to be written."""
        uid, holder = claim.metadata.uid, claim_key(claim)
        self._in_flight[uid] = _InFlight(allocation, holder)
        self._versions[uid] = int(claim.metadata.resource_version or 0)
        self.ledger.take(allocation, holder)

    def adopt(self, uid: str, claim: ResourceClaim) -> None:
        """Go on counting an allocation under the uid that its claim got when it was created."""
        if uid in self._in_flight:
            self._in_flight[claim.metadata.uid] = self._in_flight.pop(uid)
            self._versions[claim.metadata.uid] = max(
                self._versions.pop(uid), int(claim.metadata.resource_version)
            )

    def written(self, claim: ResourceClaim) -> None:
        """Note that the API has an allocation; it counts as ours until we have seen it there."""
        entry = self._in_flight.get(claim.metadata.uid)
        if entry is not None:
            entry.version = int(claim.metadata.resource_version)
            self._settle(claim.metadata.uid)

    def abandon(self, uid: str) -> None:
        """Drop an allocation if it was not written; one that was is the API's to show."""
        entry = self._in_flight.get(uid)
        if entry is not None and entry.version is None:
            self._drop(uid)

    def _drop(self, uid: str) -> None:
        entry = self._in_flight.pop(uid, None)
        self._versions.pop(uid, None)
        if entry is not None:
            self.ledger.release(entry.allocation, entry.holder)

    def claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> bool:
        """Take a change of a claim; say whether devices became free."""
        before, after = _allocation(old), _allocation(new)
        if before != after:
            if after is not None and new is not None:
                self.ledger.take(after, claim_key(new))
            if before is not None and old is not None:
                self.ledger.release(before, claim_key(old))
        self._saw(old, new)
        return before is not None and before != after

    def _saw(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if new is None:
            if old is not None:
                self._drop(old.metadata.uid)
            return
        uid = new.metadata.uid
        if uid not in self._in_flight:
            return
        if new.status.allocation is not None:
            self._drop(uid)
            return
        self._versions[uid] = int(new.metadata.resource_version)
        self._settle(uid)

    def _settle(self, uid: str) -> None:
        """Drop what was written and taken back before we saw it."""
        version = self._in_flight[uid].version
        if version is not None and self._versions[uid] >= version:
            self._drop(uid)


def _allocation(claim: ResourceClaim | None) -> AllocationResult | None:
    return claim.status.allocation if claim is not None else None

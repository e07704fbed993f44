"""Reports devices that were allocated to claims that cannot all use them, as events and a metric.

Reads claims and the inventory; writes events of the claims. It runs where the API server accepts a
device in two claims, as that of Kubernetes does. What a conflict is, decides
`domain/allocation/usage/conflicts.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sully.api.resource.types import ResourceClaim
from sully.client.events import EventRecorder, reference
from sully.client.informers.informer import Informer
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.controllers.framework.controller import DONE, Result, Watch
from sully.controllers.framework.sources import Channel, same_key
from sully.domain.allocation.usage.conflicts import DeviceConflict, Held, conflict_of, results_of
from sully.domain.devices.pools import DeviceId, PoolId, device_of_result
from sully.runtime.metrics import Metrics
from sully.views.devices.changes import InventoryChange
from sully.views.devices.inventory import Inventory
from sully.views.kinds import CLAIMS

NAME = "device-conflict-controller"
REASON = "DeviceConflict"


class ConflictIndex(Channel[Key]):
    """The devices in conflict, kept up to date; a source of the keys of their claims."""

    def __init__(self, claims: Informer[ResourceClaim], inventory: Inventory) -> None:
        super().__init__(lambda: {key for one in self._conflicts for key in self._claims_of(one)})
        self._inventory = inventory
        self._held: dict[PoolId, dict[str, dict[Key, list[Held]]]] = {}
        self._conflicts: dict[DeviceId, DeviceConflict] = {}
        claims.on_change(self._claim_changed)
        inventory.on_change(self._inventory_changed)

    def __len__(self) -> int:
        """Return how many devices are in conflict."""
        return len(self._conflicts)

    def of(self, claim: ResourceClaim) -> dict[DeviceId, DeviceConflict]:
        """Return the devices of a claim that are in conflict."""
        devices = dict.fromkeys(device_of_result(result) for result in results_of(claim))
        return {
            device: conflict
            for device in devices
            if (conflict := self._conflicts.get(device)) is not None
        }

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        before = results_of(old) if old is not None else ()
        after = results_of(new) if new is not None else ()
        if before == after:
            return
        key = key_of(new if new is not None else old)
        for device in {device_of_result(result) for result in before}:
            claims = self._held[device.pool_id][device.device]
            claims.pop(key, None)
            if not claims:
                self._drop(device)
        for result in after:
            device = device_of_result(result)
            devices = self._held.setdefault(device.pool_id, {})
            devices.setdefault(device.device, {}).setdefault(key, []).append((str(key), result))
        for device in {device_of_result(result) for result in (*before, *after)}:
            self._check(device)

    def _drop(self, device: DeviceId) -> None:
        devices = self._held[device.pool_id]
        del devices[device.device]
        if not devices:
            del self._held[device.pool_id]

    def _inventory_changed(self, change: InventoryChange) -> None:
        if change.rules:
            return  # they add taints, not capacity
        for pool in change.pools:
            for name in list(self._held.get(pool, ())):
                self._check(DeviceId(*pool, name))

    def _check(self, device: DeviceId) -> None:
        held = [one for results in self._holders(device).values() for one in results]
        known = self._inventory.device(device) if held else None
        conflict = conflict_of(held, known.content if known is not None else None)
        if conflict == self._conflicts.get(device):
            return
        if conflict is None:
            del self._conflicts[device]
            return
        self._conflicts[device] = conflict
        for key in self._claims_of(device):
            self.send(key)

    def _holders(self, device: DeviceId) -> dict[Key, list[Held]]:
        return self._held.get(device.pool_id, {}).get(device.device, {})

    def _claims_of(self, device: DeviceId) -> Iterator[Key]:
        yield from self._holders(device)


class ConflictMetrics:
    """The number of devices in conflict."""

    def __init__(self, metrics: Metrics) -> None:
        self._devices = metrics.gauge(
            "sully_devices_in_conflict",
            "Number of devices that are allocated to claims that cannot all use them.",
        )

    def follow(self, conflicts: ConflictIndex) -> None:
        """Export the number, counted on each scrape."""
        self._devices.set_function(lambda: len(conflicts))


class DeviceConflictController:
    """Reports devices in conflict to the users of their claims."""

    name = NAME

    def __init__(
        self,
        *,
        claims: Informer[ResourceClaim],
        conflicts: ConflictIndex,
        recorder: EventRecorder,
        metrics: ConflictMetrics,
    ) -> None:
        self._claims = claims
        self._conflicts = conflicts
        self._recorder = recorder
        self._reported: dict[str, dict[DeviceId, DeviceConflict]] = {}
        """What was reported last about a claim, by its uid."""
        metrics.follow(conflicts)
        claims.on_change(self._claim_changed)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for claims whose devices got into conflict."""
        yield Watch(self._conflicts, same_key)

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if new is None and old is not None:
            self._reported.pop(old.metadata.uid, None)

    async def reconcile(self, key: Key) -> Result:
        """Report each conflict of a claim once."""
        claim = self._claims.get(key)
        if claim is None:
            return DONE
        conflicts = self._conflicts.of(claim)
        before = self._reported.get(claim.metadata.uid, {})
        for device, conflict in conflicts.items():
            if before.get(device) != conflict:
                text = message(device, conflict, str(key))
                self._recorder.event(reference(CLAIMS, claim), "Warning", REASON, text)
        if conflicts:
            self._reported[claim.metadata.uid] = conflicts
        else:
            self._reported.pop(claim.metadata.uid, None)
        return DONE


def message(device: DeviceId, conflict: DeviceConflict, claim: str) -> str:
    """Return the text of the event of one of the claims."""
    others = ", ".join(other for other in conflict.claims if other != claim) or "no other claim"
    if conflict.cause == "CapacityExceeded":
        names = " and ".join(conflict.exceeded)
        return f"more {names} of device {device} is allocated than it has (shared with {others})"
    return f"device {device} is also allocated to {others}: delete all pods that use it"

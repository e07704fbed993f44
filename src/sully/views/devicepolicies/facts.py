"""What sources of policies can see of devices: slices, claims, nodes and reports of health.

Listeners are notified which pools may have changed. Reports also change when time passes; `expire`
has to be called for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from msgspec.structs import replace

from sully.api.resource.types import ResourceClaim
from sully.api.sully.types import DeviceHealth
from sully.client.informers.cache import Cache
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.allocation.usage.conflicts import results_of
from sully.domain.devicepolicies.sources.evaluation import DeviceFacts
from sully.domain.devicepolicies.sources.nodes import PolicyNode
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import DeviceId, PoolId, device_of_result
from sully.domain.devices.suppression import published_taint
from sully.domain.health.matching import HealthIndex, identity_of
from sully.domain.health.reports import next_change
from sully.machinery.meta import Condition
from sully.views.devices.changes import InventoryChange
from sully.views.devices.inventory import Inventory

Listener = Callable[[Iterable[PoolId]], None]


class FactsView:
    """The facts about all devices."""

    def __init__(
        self,
        *,
        inventory: Inventory,
        claims: Cache[ResourceClaim],
        nodes: Cache[PolicyNode],
        health: Cache[DeviceHealth] | None = None,
    ) -> None:
        self.inventory = inventory
        self._nodes = nodes
        self._claims: dict[PoolId, dict[str, dict[Key, tuple[Condition, ...]]]] = {}
        """The claims that are allocated a device, with what its driver reports there."""
        self._health = HealthIndex()
        self._changes: dict[str, datetime] = {}
        """When a report changes next by itself, by its name."""
        self._listeners: list[Listener] = []
        self._facts: dict[PoolId, dict[str, DeviceFacts]] = {}
        """What many policies ask for, until listeners are notified of a change."""
        inventory.on_change(self._inventory_changed)
        claims.on_change(self._claim_changed)
        nodes.on_change(self._node_changed)
        if health is not None:
            health.on_change(self._health_changed)

    def on_change(self, listener: Listener) -> None:
        """Call a listener with the pools that may have changed."""
        self._listeners.append(listener)

    def pools(self) -> set[PoolId]:
        """Return all pools with published or allocated devices."""
        return {*self.inventory.pools(), *self._claims}

    def devices(self, pool: PoolId) -> Iterator[DeviceId]:
        """Yield the devices of a pool, published or allocated, in order."""
        names = {*self.inventory.devices(pool), *self._claims.get(pool, ())}
        for name in sorted(names):
            yield DeviceId(*pool, name)

    def node(self, device: EffectiveDevice | None) -> PolicyNode | None:
        """Return the node of a device; None if it belongs to no single node."""
        name = node_name(device) if device is not None else ""
        return self._nodes.get(Key("", name)) if name else None

    def facts(self, id_: DeviceId, now: datetime) -> DeviceFacts:
        """Return what is known about a device."""
        known = self._facts.setdefault(id_.pool_id, {})
        facts = known.get(id_.device)
        if facts is None:
            facts = known[id_.device] = self._find(id_, now)
        return facts

    def _find(self, id_: DeviceId, now: datetime) -> DeviceFacts:
        device = self.inventory.device(id_)
        claims = self._claims.get(id_.pool_id, {}).get(id_.device, {})
        conditions = tuple(one for reported in claims.values() for one in reported)
        if device is None:
            return DeviceFacts(allocated=bool(claims), conditions=conditions)
        identity = identity_of(device, node_name(device))
        reports = self._health.health(identity, now=now) if self._health.reports else ()
        return DeviceFacts(
            content=device.content,
            taints=tuple(
                published_taint(taint)
                for taint in device.taints
                if taint.origin.kind != "DeviceTaintRule"
            ),
            slice_taints=tuple(
                published_taint(taint)
                for taint in device.taints
                if taint.origin.kind == "ResourceSlice"
            ),
            allocated=bool(claims),
            conditions=conditions,
            node=self.node(device),
            health=tuple(health for _, health in reports),
            identity=identity,
        )

    def expire(self, now: datetime) -> datetime | None:
        """Notify of reports that changed because time passed; return when the next one does."""
        for name in [name for name, time in self._changes.items() if time <= now]:
            del self._changes[name]
            report = self._health.reports.get(name)
            if report is not None:
                self._schedule(report, now)
                self._notify(self._pools_of(report))
        return min(self._changes.values(), default=None)

    def _schedule(self, report: DeviceHealth, now: datetime) -> None:
        time = next_change(report, now=now)
        if time is not None:
            self._changes[report.metadata.name] = time

    def _notify(self, pools: Iterable[PoolId]) -> None:
        changed = set(pools)
        for pool in changed:
            self._facts.pop(pool, None)
        for listener in list(self._listeners) if changed else ():
            listener(changed)

    def _inventory_changed(self, change: InventoryChange) -> None:
        # Rules add taints that no source reads.
        if not change.rules:
            self._notify(change.pools)

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        before, after = _reported(old), _reported(new)
        if before == after:
            return
        key = key_of(new if new is not None else old)
        for device in before:
            claims = self._claims[device.pool_id][device.device]
            claims.pop(key, None)
            if not claims:
                self._drop(device)
        for device, conditions in after.items():
            devices = self._claims.setdefault(device.pool_id, {})
            devices.setdefault(device.device, {})[key] = conditions
        self._notify(device.pool_id for device in (*before, *after))

    def _drop(self, device: DeviceId) -> None:
        devices = self._claims[device.pool_id]
        del devices[device.device]
        if not devices:
            del self._claims[device.pool_id]

    def _node_changed(self, old: PolicyNode | None, new: PolicyNode | None) -> None:
        if old is not None and new is not None and _same(old, new):
            return
        names = {node.metadata.name for node in (old, new) if node is not None}
        self._notify(pool for name in names for pool in self.inventory.pools_for(name))

    def _health_changed(self, old: DeviceHealth | None, new: DeviceHealth | None) -> None:
        for report in (old,) if new is None else (new,):
            if report is not None:
                self._health.remove(report.metadata.name)
                self._changes.pop(report.metadata.name, None)
        if new is not None:
            self._health.put(new)
            self._schedule(new, new.spec.renew_time)
        if old is None or new is None or not _is_renewal(old, new):
            self._notify(self._pools_of(new if new is not None else old))

    def _pools_of(self, report: DeviceHealth | None) -> set[PoolId]:
        node = report.spec.node_name if report is not None else ""
        return set(self.inventory.pools_for(node)) if node else self.pools()


def node_name(device: EffectiveDevice) -> str:
    """Return the node that a device belongs to; empty if there is not one."""
    published = device.published
    return published.slice.spec.node_name or published.device.node_name or ""


def _reported(claim: ResourceClaim | None) -> dict[DeviceId, tuple[Condition, ...]]:
    if claim is None:
        return {}
    devices: dict[DeviceId, tuple[Condition, ...]] = {
        device_of_result(result): () for result in results_of(claim)
    }
    for status in claim.status.devices:
        device = device_of_result(status)
        if device in devices:
            devices[device] = (*devices[device], *(status.conditions or ()))
    return devices


def _same(old: PolicyNode, new: PolicyNode) -> bool:
    return (old.metadata.labels, old.taints, old.conditions) == (
        new.metadata.labels,
        new.taints,
        new.conditions,
    )


def _is_renewal(old: DeviceHealth, new: DeviceHealth) -> bool:
    """Report whether a valid report was only confirmed."""
    same = replace(old.spec, renew_time=new.spec.renew_time) == new.spec
    valid = next_change(old, now=new.spec.renew_time) is not None
    return same and (valid or old.spec.lease_duration_seconds is None)

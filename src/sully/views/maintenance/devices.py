"""The devices of one maintenance: which it selects, and which are worked on together.

Kept up to date pool by pool, so that an event costs what it affects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sully.api.sully.types import DeviceMaintenance
from sully.client.informers.cache import Cache
from sully.client.transport import Key
from sully.domain.devicepolicies.selection import PolicySelector
from sully.domain.devicepolicies.sources.nodes import PolicyNode
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import DeviceId, PoolId, device_id
from sully.domain.maintenance.settings import settings_of
from sully.machinery.meta import find_condition
from sully.views.devicepolicies.facts import node_name
from sully.views.devices.exact_device import exact_device_expression
from sully.views.devices.inventory import Inventory
from sully.views.devices.pools.pending import PendingPools


class MaintenanceDevices:
    """The devices of one generation of a maintenance."""

    def __init__(
        self, maintenance: DeviceMaintenance, inventory: Inventory, nodes: Cache[PolicyNode]
    ) -> None:
        self._inventory = inventory
        self._nodes = nodes
        self._selector = PolicySelector(maintenance)
        self._identity = maintenance.spec.identity_attribute or "uuid"
        self._by_node = settings_of(maintenance).by_node
        self._units: dict[PoolId, dict[str, str]] = {}
        """The unit of each selected device, by pool."""
        self.problems: dict[str, str] = {}
        """Why it cannot be decided whether a device is selected."""
        self._pending = PendingPools(self._selector.names)
        self.changed(inventory.pools())

    def changed(self, pools: Iterable[PoolId]) -> bool:
        """Queue pools to evaluate again; report whether there is one that was not known."""
        return self._pending.add(pools)

    def units(self) -> Mapping[str, tuple[str, ...]]:
        """Return the selected devices, by the unit in which they are worked on."""
        self._update()
        units: dict[str, list[str]] = {}
        for pool, devices in sorted(self._units.items()):
            for name, unit in devices.items():
                units.setdefault(unit, []).append(f"{pool}/{name}")
        return {unit: tuple(devices) for unit, devices in units.items()}

    def _update(self) -> None:
        for pool in self._pending.take():
            self._units.pop(pool, None)
            for name, device in sorted(self._inventory.devices(pool).items()):
                self._evaluate(DeviceId(*pool, name), device)

    def _evaluate(self, id_: DeviceId, device: EffectiveDevice) -> None:
        node = node_name(device)
        choice = self._selector.choose(
            id_, device.content, self._node(node), self._inventory.class_
        )
        self.problems.pop(str(id_), None)
        if choice.problem:
            self.problems[str(id_)] = choice.problem
        elif choice.selected:
            unit = node if self._by_node and node else str(id_)
            self._units.setdefault(id_.pool_id, {})[id_.device] = unit

    def _node(self, name: str) -> PolicyNode | None:
        return self._nodes.get(Key("", name)) if name else None

    def exact_expression(self, device: str) -> str:
        """Return what selects exactly this device in a claim, or raise NotSelectableError."""
        return exact_device_expression(self._inventory, device_id(device), self._identity)

    def not_ready(self, devices: Iterable[str]) -> str:
        """Return what is not ready of devices; empty if they can be used."""
        for name in devices:
            device = self._inventory.device(device_id(name))
            if device is None:
                return f"{name} is not published"
            if node := node_name(device):
                body = self._node(node)
                ready = find_condition(body.status.conditions, "Ready") if body else None
                if body is None or (ready is not None and ready.status != "True"):
                    return f"node {node} is not Ready"
        return ""

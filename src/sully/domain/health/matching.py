"""Which reports are about which devices: by UUID, by PCI address on a node, or by name.

A report knows the hardware, a ResourceSlice what its driver publishes about it. Partitions match
the UUID of their parent, so the fault of a GPU is a fault of all its partitions; the fault of a
partition is not one of the GPU.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import msgspec

from sully.api.sully.types import DeviceHealth, ReportedDevice
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.identity import Attributes, index_of, normal_pci, pci_addresses, uuids
from sully.domain.devices.pools import DeviceId
from sully.domain.health.reports import Health, health_of


class Identity(msgspec.Struct, frozen=True):
    """Everything by which a device in a ResourceSlice can be recognized."""

    id: DeviceId
    node: str = ""
    """Empty for devices that belong to no node."""
    uuids: frozenset[str] = frozenset()
    pci_addresses: frozenset[str] = frozenset()
    index: int | None = None
    """The one that the driver publishes; vendors' tools and exporters show it."""


class DeviceReport(NamedTuple):
    """What one report states about one device."""

    report: DeviceHealth
    device: ReportedDevice


def identity_of(device: EffectiveDevice, node: str) -> Identity:
    """Return how a device that is published for a node can be recognized."""
    return identity(device.id, node, device.attributes)


def identity(id: DeviceId, node: str, attributes: Attributes) -> Identity:  # noqa: A002 -- as Identity
    """Return how a device with these attributes can be recognized."""
    return Identity(id, node, uuids(attributes), pci_addresses(attributes), index_of(attributes))


def is_about(entry: DeviceReport, device: Identity) -> bool:
    """Report whether an entry is about a device.

    The UUID decides where both have one: an address or a name may by now belong to hardware that
    was swapped.
    """
    reported, node = entry.device, entry.report.spec.node_name
    if node and device.node and node != device.node:
        return False
    if reported.uuid and device.uuids:
        return reported.uuid.lower() in device.uuids
    if reported.device:
        return reported.device == str(device.id)
    # Every node has the same addresses.
    on_node = bool(node) and node == device.node
    return on_node and normal_pci(reported.pci_address) in device.pci_addresses


class HealthIndex(msgspec.Struct):
    """Reports by what identifies their devices, so that each device looks at few of them."""

    reports: dict[str, DeviceHealth] = msgspec.field(default_factory=dict)
    _entries: dict[str, dict[tuple[str, int], DeviceReport]] = msgspec.field(
        default_factory=lambda: defaultdict(dict)
    )

    @classmethod
    def of(cls, reports: Iterable[DeviceHealth]) -> HealthIndex:
        """Return an index of these reports."""
        index = cls()
        for report in reports:
            index.put(report)
        return index

    def put(self, report: DeviceHealth) -> None:
        """Add a report, or replace it."""
        name = report.metadata.name
        self.remove(name)
        self.reports[name] = report
        for position, device in enumerate(report.spec.devices):
            for key in _keys(device, report.spec.node_name):
                self._entries[key][name, position] = DeviceReport(report, device)

    def remove(self, name: str) -> None:
        """Remove a report."""
        old = self.reports.pop(name, None)
        for position, device in enumerate(old.spec.devices if old is not None else ()):
            for key in _keys(device, old.spec.node_name if old is not None else ""):
                self._entries[key].pop((name, position), None)

    def entries(self, device: Identity) -> tuple[DeviceReport, ...]:
        """Return what reports state about a device, by the name of the report."""
        addresses = (f"{device.node}/{address}" for address in device.pci_addresses)
        merged: dict[tuple[str, int], DeviceReport] = {}
        for key in (*device.uuids, *addresses, str(device.id)):
            merged |= self._entries.get(key, {})
        return tuple(entry for _, entry in sorted(merged.items()) if is_about(entry, device))

    def health(self, device: Identity, *, now: datetime) -> tuple[tuple[DeviceReport, Health], ...]:
        """Return the health of a device according to every report about it."""
        judged = ((entry, health_of(*entry, now=now)) for entry in self.entries(device))
        return tuple((entry, health) for entry, health in judged if health is not None)


def _keys(device: ReportedDevice, node: str) -> tuple[str, ...]:
    address = f"{node}/{normal_pci(device.pci_address)}" if device.pci_address and node else ""
    return tuple(filter(None, (device.uuid.lower(), address, device.device)))

"""Which device a signal is about: by UUID, by PCI address or index on a node, or by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from sully.api.sully.types import DeviceHealth, ReportedDevice
from sully.domain.devices.identity import normal_pci
from sully.domain.health.matching import Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Identifiers of a device; what is empty is not set."""

    uuid: str = ""
    pci_address: str = ""
    index: int | None = None
    node: str = ""
    device: str = ""
    """Written `driver/pool/device`."""

    def __str__(self) -> str:
        """Return the reference for messages."""
        parts = {
            "UUID": self.uuid,
            "PCI address": self.pci_address,
            "index": "" if self.index is None else str(self.index),
            "device": self.device,
            "node": self.node,
        }
        return ", ".join(f"{name} {value}" for name, value in parts.items() if value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A device that exists, as a report identifies it."""

    node: str = ""
    uuid: str = ""
    pci_address: str = ""
    index: int | None = None
    device: str = ""

    def is_entry(self, reported: ReportedDevice) -> bool:
        """Report whether an entry of a report is about this device."""
        if self.uuid or reported.uuid:
            return self.uuid.lower() == reported.uuid.lower()
        if self.device or reported.device:
            return self.device == reported.device
        return self.pci_address == reported.pci_address


class UnknownDeviceError(LookupError):
    """No device, or more than one, matches the target."""


def find(
    reference: Reference, devices: Iterable[Identity], reports: Iterable[DeviceHealth]
) -> Target:
    """Return the device that is referenced; raise UnknownDeviceError if that is not one.

    Devices of slices and those that only an agent reports are found alike.
    """
    if reference == Reference() or reference == Reference(node=reference.node):
        raise UnknownDeviceError("no device given (one of: uuid, pciAddress, index, name)")
    known = (*map(_of_slice, devices), *_reported(reports))
    referenced = [(owner, target) for owner, target in known if _is_referenced(reference, owner)]
    if reference.uuid:
        # It names the hardware, also where only partitions of it are published.
        uuid = reference.uuid.lower()
        targets = {Target(node=owner.node, uuid=uuid) for owner, _ in referenced}
    else:
        targets = {target for _, target in referenced}
    merged = _merged(targets)
    if not merged:
        raise UnknownDeviceError(f"unknown device ({reference})")
    if len(merged) > 1:
        nodes = sorted({target.node for target in merged if target.node})
        where = f" on nodes {', '.join(nodes[:5])}" if len(nodes) > 1 else ""
        raise UnknownDeviceError(f"{len(merged)} devices match ({reference}){where}: name the node")
    return merged[0]


class _Known(msgspec.Struct, frozen=True):
    uuids: frozenset[str]
    pci_addresses: frozenset[str]
    index: int | None
    node: str
    device: str


def target_of(device: Identity) -> Target:
    """Return a device of a slice as a report identifies it."""
    own = sorted(device.uuids)
    if len(own) == 1:
        return Target(node=device.node, uuid=own[0])
    # A partition has the UUID of its parent, too; then only its name is its own.
    return Target(node=device.node, device=str(device.id))


def _of_slice(device: Identity) -> tuple[_Known, Target]:
    known = _Known(device.uuids, device.pci_addresses, device.index, device.node, str(device.id))
    return known, target_of(device)


def _reported(reports: Iterable[DeviceHealth]) -> Iterable[tuple[_Known, Target]]:
    for report in reports:
        # A component that passes on events does not know which devices exist.
        if report.spec.lease_duration_seconds is None:
            continue
        for device in report.spec.devices:
            known = _Known(
                frozenset(filter(None, (device.uuid.lower(),))),
                frozenset(filter(None, (device.pci_address,))),
                device.index,
                report.spec.node_name,
                device.device,
            )
            target = Target(
                node=report.spec.node_name,
                uuid=device.uuid.lower(),
                pci_address="" if device.uuid else device.pci_address,
                device="" if device.uuid else device.device,
            )
            yield known, target


def _is_referenced(reference: Reference, known: _Known) -> bool:
    checks = (
        (reference.node, reference.node == known.node),
        (reference.uuid, reference.uuid.lower() in known.uuids),
        (reference.device, reference.device == known.device),
        (reference.pci_address, normal_pci(reference.pci_address) in known.pci_addresses),
        (reference.index is not None, reference.index == known.index),
    )
    return all(matches for is_set, matches in checks if is_set)


def _merged(targets: Iterable[Target]) -> list[Target]:
    """Return each device once: partitions with the UUID of a whole one are not referenced by it."""
    ordered = sorted(targets, key=lambda target: (target.node, target.uuid == "", target.device))
    whole = [target for target in ordered if target.uuid]
    return whole or ordered

"""By what hardware is recognized: the UUIDs and PCI addresses that drivers publish as attributes.

Names of devices belong to a driver; monitors and people know the hardware.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sully.api.resource.types import DeviceAttribute

Attributes = Mapping[str, DeviceAttribute]


def uuids(attributes: Attributes) -> frozenset[str]:
    """Return the UUIDs of a device and of what it is a partition of, in lower case."""
    return frozenset(value.lower() for name, value in _texts(attributes) if name.endswith("uuid"))


def pci_addresses(attributes: Attributes) -> frozenset[str]:
    """Return the PCI address of a device and its PCIe root, in lower case.

    The attributes are resource.kubernetes.io/pciBusID and pcieRoot, and those of vendors, such as
    pcieBusID, pciAddress and pciAddr.
    """
    return frozenset(
        normal_pci(value) for name, value in _texts(attributes) if name.startswith("pci")
    )


def index_of(attributes: Attributes) -> int | None:
    """Return the index of a device on its node, as vendors' tools show it; None without one."""
    for name, attribute in sorted(attributes.items()):
        if name.rpartition("/")[2] == "index" and attribute.int_value is not None:
            return attribute.int_value
    return None


def normal_pci(text: str) -> str:
    """Return a PCI address in lower case, with its domain of four digits.

    3B:00.0 is 0000:3b:00.0, as is 00000000:3B:00.0 of NVML.
    """
    address = text.lower()
    if address.count(":") == 1 and "." in address:
        return f"0000:{address}"
    domain, colon, rest = address.partition(":")
    return f"{domain[4:]}{colon}{rest}" if len(domain) == 8 and domain[:4] == "0000" else address


def _texts(attributes: Attributes) -> Iterator[tuple[str, str]]:
    for name, attribute in attributes.items():
        if attribute.string_value:
            yield name.rpartition("/")[2].lower(), attribute.string_value

"""How a claim selects exactly one of all published devices."""

from __future__ import annotations

from sully.domain.devices.pools import DeviceId
from sully.domain.proofs.selection import NotSelectableError, check_unique, exact_expression
from sully.views.devices.inventory import Inventory


def exact_device_expression(inventory: Inventory, device: DeviceId, attribute: str) -> str:
    """Return what selects exactly this device in a claim, or raise NotSelectableError."""
    effective = inventory.device(device)
    if effective is None:
        raise NotSelectableError("no ResourceSlice has the device")
    expression = exact_expression(effective.content, attribute)
    others = (
        (other.id, other.content)
        for pool in inventory.pools()
        if pool.driver == device.driver
        for other in inventory.devices(pool).values()
    )
    check_unique(device, effective.content, attribute, others)
    return expression

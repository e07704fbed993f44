"""Which devices a claim holds exclusively, whatever number of schedulers there is.

A scheduler knows what it allocated and what it has seen; two of them may choose the same device at
the same time. The server therefore checks this before it stores an allocation
(`server/admission/devices.py`), on objects as they are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sully.domain.devices.pools import DeviceId

IN_USE = "DeviceInUse"
"""The cause in the server's answer: for schedulers it is not a conflict of the claim."""

Holdings = Mapping[DeviceId, bool]
"""The devices of a claim; True if it holds the device, False if it holds a share of it."""


def holdings(claim: Mapping[str, Any]) -> Holdings:
    """Return the devices that a claim holds; admin access holds nothing."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    exclusive: dict[DeviceId, bool] = {}
    for result in results:
        if not result.get("adminAccess"):
            device = DeviceId(*(result.get(part, "") for part in DeviceId._fields))
            exclusive[device] = exclusive.get(device, False) or result.get("shareID") is None
    return exclusive


def excludes(device: DeviceId, first: Holdings, second: Holdings) -> bool:
    """Report whether two claims cannot both hold a device; any number may have shares of it."""
    return device in first and device in second and (first[device] or second[device])

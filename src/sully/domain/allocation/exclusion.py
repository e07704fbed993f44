"""Which devices a claim keeps others from: the rule that holds however many schedulers there are.

A scheduler knows what it gave away itself and what it has seen; two of them may choose the same
device at the same moment. The server therefore asks here before it stores an allocation
(`server/admission/devices.py`), on objects as they are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sully.domain.devices.pools import DeviceId

IN_USE = "DeviceInUse"
"""The cause in the server's answer: a scheduler must tell it from a claim that has changed."""

Holdings = Mapping[DeviceId, bool]
"""The devices of a claim; true for those it has for itself, false for those it has a share of."""


def holdings(claim: Mapping[str, Any]) -> Holdings:
    """Return the devices that a claim holds; admin access holds nothing."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    found: dict[DeviceId, bool] = {}
    for result in results:
        if not result.get("adminAccess"):
            device = DeviceId(*(result.get(part, "") for part in DeviceId._fields))
            found[device] = found.get(device, False) or result.get("shareID") is None
    return found


def excludes(device: DeviceId, first: Holdings, second: Holdings) -> bool:
    """Report whether two claims cannot both hold a device; any number may have shares of it."""
    return device in first and device in second and (first[device] or second[device])

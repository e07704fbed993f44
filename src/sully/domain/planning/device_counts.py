"""Counts the devices of each class, and how many of them a new pod could be allocated.

A device is free if a request without tolerations could be allocated it: it has no taint that
prevents scheduling, it is not allocated, and its pool makes it available
(`domain/allocation/rejections/availability.py`). One that can be shared is free while it has
capacity left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from sully.api.resource.types import DeviceClass
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.selectors import Content, DeviceSelectorError, matches
from sully.domain.devices.taints import blocks
from sully.machinery.cel import CostBudget, CostBudgetExceededError


class CountedDevice(NamedTuple):
    """A device, and what decides how it is counted."""

    device: EffectiveDevice
    used: bool = False
    unavailable: bool = False
    """Whether it cannot be allocated although it is not in use."""


class DeviceCounts(msgspec.Struct):
    """The devices of one class."""

    devices: int = 0
    tainted: int = 0
    """With a taint that prevents scheduling, in use or not."""
    used: int = 0
    free: int = 0

    def add(self, other: DeviceCounts) -> None:
        """Add the devices of other pools."""
        self.devices += other.devices
        self.tainted += other.tainted
        self.used += other.used
        self.free += other.free


class DeviceCounter(msgspec.Struct):
    """Counts devices by class; selectors are evaluated once for all devices with equal content."""

    classes: Mapping[str, DeviceClass]
    _by_content: dict[Content, tuple[str, ...]] = msgspec.field(default_factory=dict)
    budget: CostBudget = msgspec.field(default_factory=CostBudget)
    """What expressions may cost; a class whose selectors cost more selects nothing."""

    def count(self, devices: Iterable[CountedDevice]) -> dict[str, DeviceCounts]:
        """Count devices; classes come in order of their names."""
        counts = self.count_selected(devices)
        return {name: counts.get(name) or DeviceCounts() for name in sorted(self.classes)}

    def count_selected(self, devices: Iterable[CountedDevice]) -> dict[str, DeviceCounts]:
        """Count devices of the classes that select any."""
        counts: dict[str, DeviceCounts] = {}
        for device, used, unavailable in devices:
            tainted = bool(device.taints) and any(blocks(taint.taint) for taint in device.taints)
            for name in self.classes_of(device):
                count = counts.get(name)
                if count is None:
                    count = counts[name] = DeviceCounts()
                count.devices += 1
                count.tainted += tainted
                count.used += used
                count.free += not tainted and not used and not unavailable
        return counts

    def classes_of(self, device: EffectiveDevice) -> tuple[str, ...]:
        """Return the classes that select a device, by name."""
        content = device.content
        names = self._by_content.get(content)
        if names is None:
            names = self._by_content[content] = tuple(
                name for name in sorted(self.classes) if self._selects(name, content)
            )
        return names

    def _selects(self, name: str, content: Content) -> bool:
        try:
            return matches(self.classes[name].spec.selectors, content, self.budget)
        except (DeviceSelectorError, CostBudgetExceededError):
            # The scheduler rejects such a request, so no device is allocated by this class.
            return False

"""How many devices of each class there are, and how many of them a new pod could get.

A device is free when nothing keeps a request without tolerations off it and nobody has it for
himself; one that can be shared counts as free as long as something is left of it. What its pool
keeps from everybody (`domain/allocation/availability.py`) is not free either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sully.api.resource.types import DeviceClass
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.selectors import Content, SelectorError, matches
from sully.domain.devices.taints import blocks
from sully.machinery.cel import CostBudget, CostBudgetExceededError


class Counted(NamedTuple):
    """A device, to be counted."""

    device: EffectiveDevice
    used: bool = False
    closed: bool = False
    """Whether nobody could get it, although nobody has it for himself."""


@dataclass(slots=True)
class Supply:
    """The devices of one class."""

    devices: int = 0
    tainted: int = 0
    """Kept from whoever does not tolerate it, in use or not."""
    used: int = 0
    free: int = 0


@dataclass(slots=True)
class Counter:
    """Counts devices by class; what a class selects is asked once for all that look alike."""

    classes: Mapping[str, DeviceClass]
    _known: dict[Content, tuple[str, ...]] = field(default_factory=dict)
    _budget: CostBudget = field(default_factory=CostBudget)

    def count(self, devices: Iterable[Counted]) -> dict[str, Supply]:
        """Count devices; classes come in order of their names."""
        found = {name: Supply() for name in sorted(self.classes)}
        for device, used, closed in devices:
            tainted = bool(device.taints) and any(blocks(each.taint) for each in device.taints)
            for name in self._classes_of(device):
                supply = found[name]
                supply.devices += 1
                supply.tainted += tainted
                supply.used += used
                supply.free += not tainted and not used and not closed
        return found

    def _classes_of(self, device: EffectiveDevice) -> tuple[str, ...]:
        content = device.content
        known = self._known.get(content)
        if known is None:
            known = self._known[content] = tuple(
                name for name in sorted(self.classes) if self._selects(name, content)
            )
        return known

    def _selects(self, name: str, content: Content) -> bool:
        try:
            return matches(self.classes[name].spec.selectors, content, self._budget)
        except (SelectorError, CostBudgetExceededError):
            # The scheduler fails such a request; nobody gets the device by this class.
            return False

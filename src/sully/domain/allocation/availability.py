"""What keeps a device from being given away, besides its taints and whoever has it.

A pool counts only when it is whole and without contradictions, devices that draw on the same
counters keep each other busy, and capacity that is shared out is gone. The scheduler finds this out
while it searches (offers.py, state.py); people ask device by device, and want to be told why
(`views/devices/device_views.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal

from sully.api.resource.types import Device, ResourceSlice, ResourceSliceSpec
from sully.domain.allocation.capacity import is_used_up
from sully.domain.allocation.counters import Balance, Draw, Lack
from sully.domain.allocation.offers import counters_of, only_counts
from sully.domain.devices.pools import Standing, current, standing
from sully.domain.devices.selectors import Content
from sully.machinery.quantity import Quantity, parse_quantity

Cause = Literal["PoolIncomplete", "PoolInvalid", "CountersUsed", "CapacityUsed"]
MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why nobody can get a device."""

    cause: Cause
    text: str


@dataclass(slots=True)
class _View:
    """A pool as the nodes see it that a slice is for."""

    problem: Obstacle | None = None
    balance: Balance | None = None
    draws: Mapping[str, tuple[Draw, ...]] = field(default_factory=dict)


class Availability:
    """Which devices of one pool could be given away, as far as the pool decides that.

    `slices` are all of the pool, of every generation; `used` are the devices that somebody has,
    other than to look at them.
    """

    def __init__(self, slices: Sequence[ResourceSlice], used: Set[str]) -> None:
        self._slices = slices
        self._current = current(slices)
        self._used = used
        self._views: dict[str, _View] = {}
        self.are_plain = _is_plain(self._current)
        """Whether nothing is in the way of any of them."""

    def obstacle(self, slice_: ResourceSlice, device: Device) -> Obstacle | None:
        """Return what is in the way of a device of the newest generation, besides its user."""
        if self.are_plain:
            # Most pools; then there is nothing to work out for each of a hundred thousand devices.
            return None
        name = slice_.metadata.name
        view = self._views.get(name)
        if view is None:
            view = self._views[name] = self._view(slice_)
        if view.balance is None or device.name in self._used:
            return view.problem
        lack = view.balance.lack(view.draws.get(device.name, ()))
        return None if lack is None else self._counters_used(view, lack, device)

    def _view(self, slice_: ResourceSlice) -> _View:
        seen = [each for each in self._current if _seen_with(each.spec, slice_.spec)]
        if standing(seen, self._slices) is not Standing.COMPLETE:
            there, wanted = len(self._current), slice_.spec.pool.resource_slice_count
            text = f"pool incomplete: {there} of {wanted} slices"
            return _View(Obstacle("PoolIncomplete", text))
        counters = counters_of(seen, self._current)
        if isinstance(counters, str):
            return _View(Obstacle("PoolInvalid", f"pool invalid: {counters}"))
        totals, draws = counters
        in_use = [each for name, each in draws.items() if name in self._used]
        return _View(balance=Balance(totals, in_use), draws=draws)

    def _counters_used(self, view: _View, lack: Lack, device: Device) -> Obstacle:
        users = _listed(
            name
            for name, draws in view.draws.items()
            if name in self._used and any(each.counter_set == lack.counter_set for each in draws)
        )
        if not lack.counter:
            text = f"does not go together with {users} on {lack.counter_set}"
            return Obstacle("CountersUsed", text)
        style = _style(device, lack)
        needed, left = (str(Quantity(each, style)) for each in (lack.needed, max(0, lack.left)))
        text = f"takes {needed} {lack.counter} of {lack.counter_set}, of which {left} is left"
        return Obstacle("CountersUsed", f"{text} by {users}" if users else text)


def used_up(content: Content, left: Mapping[str, Quantity]) -> Obstacle | None:
    """Return what is in the way of another share of a device of which this much is left."""
    gone = [name for name, amount in left.items() if is_used_up(content.capacity[name], amount)]
    if not gone:
        return None
    return Obstacle("CapacityUsed", f"no {_listed(gone)} left")


def _is_plain(slices: Sequence[ResourceSlice]) -> bool:
    """Report whether a pool is whole and its devices have nothing to do with each other."""
    if not slices or len(slices) != slices[0].spec.pool.resource_slice_count:
        return False
    names: set[str] = set()
    for slice_ in slices:
        devices = slice_.spec.devices
        if slice_.spec.shared_counters or any(each.consumes_counters for each in devices):
            return False
        if len(slices) > 1:
            before = len(names)
            names.update(each.name for each in devices)
            if len(names) < before + len(devices):
                return False
    return True


def _seen_with(other: ResourceSliceSpec, mine: ResourceSliceSpec) -> bool:
    """Report whether the nodes that see one slice see another one, too."""
    if only_counts(other) or other.all_nodes or other.per_device_node_selection:
        return True
    return other.node_name == mine.node_name and other.node_selector == mine.node_selector


def _style(device: Device, lack: Lack) -> str:
    """Return the manner in which a driver writes a counter."""
    for each in device.consumes_counters:
        if each.counter_set == lack.counter_set and lack.counter in each.counters:
            return parse_quantity(each.counters[lack.counter].value).style
    return parse_quantity("0").style


def _listed(names: Iterable[str]) -> str:
    known = sorted(names)
    more = len(known) - MOST_NAMED
    shown = ", ".join(known[:MOST_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown

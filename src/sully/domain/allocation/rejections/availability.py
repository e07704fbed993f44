"""Why a device cannot be allocated, apart from its taints and the claims that hold it.

A pool is used only if it is complete and valid, devices that consume the same counters exclude each
other, and capacity that is allocated is not available. The scheduler finds this out while it
searches (../pools/node_pools.py); here it is reported for each device
(`views/devices/device_views.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Literal

import msgspec

from sully.api.resource.types import Device, ResourceSlice, ResourceSliceSpec
from sully.domain.allocation.pools.node_pools import counters_of, has_only_counters
from sully.domain.allocation.usage.capacity import is_used_up
from sully.domain.allocation.usage.counters import Balance, Draw, InvalidPool, Lack
from sully.domain.devices.pools import Standing, current, standing
from sully.domain.devices.selectors import Content
from sully.machinery.formats.quantity import Quantity, parse_quantity

Cause = Literal[
    "PoolIncomplete", "PoolInvalid", "CountersUsed", "CapacityUsed", "NodeUnschedulable"
]
MOST_NAMED = 3


class Obstacle(msgspec.Struct, frozen=True):
    """Why a device cannot be allocated."""

    cause: Cause
    text: str


class _View(msgspec.Struct):
    """A pool as the nodes of a slice see it."""

    problem: Obstacle | None = None
    balance: Balance | None = None
    draws: Mapping[str, tuple[Draw, ...]] = msgspec.field(default_factory=dict)


class Availability:
    """Which devices of one pool could be allocated, as far as the pool decides that.

    `slices` are all of the pool, of every generation; `used` are the devices that are allocated
    without admin access.
    """

    def __init__(self, slices: Sequence[ResourceSlice], used: Set[str]) -> None:
        self._slices = slices
        self._current = current(slices)
        self._used = used
        self._views: dict[str, _View] = {}
        self.are_plain = are_plain(self._current)
        """Whether all of them can be allocated."""

    def obstacle(self, slice_: ResourceSlice, device: Device) -> Obstacle | None:
        """Return why a device of the newest generation, if it were free, cannot be allocated."""
        if self.are_plain:
            # Most pools; then nothing is computed for each of a hundred thousand devices.
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
        visible = [other for other in self._current if _seen_with(other.spec, slice_.spec)]
        if standing(visible, self._slices) is not Standing.COMPLETE:
            expected = slice_.spec.pool.resource_slice_count
            text = f"pool incomplete: {len(self._current)} of {expected} slices"
            return _View(Obstacle("PoolIncomplete", text))
        counters = counters_of(visible, self._current)
        if isinstance(counters, InvalidPool):
            return _View(Obstacle("PoolInvalid", f"pool invalid: {counters.message}"))
        totals, draws = counters
        in_use = [consumed for name, consumed in draws.items() if name in self._used]
        return _View(balance=Balance(totals, in_use), draws=draws)

    def _counters_used(self, view: _View, lack: Lack, device: Device) -> Obstacle:
        users = _listed(
            name
            for name, draws in view.draws.items()
            if name in self._used and any(draw.counter_set == lack.counter_set for draw in draws)
        )
        if not lack.counter:
            text = f"does not go together with {users} on {lack.counter_set}"
            return Obstacle("CountersUsed", text)
        style = _style(device, lack)
        needed, left = (str(Quantity(amount, style)) for amount in (lack.needed, max(0, lack.left)))
        text = f"takes {needed} {lack.counter} of {lack.counter_set}, of which {left} is left"
        return Obstacle("CountersUsed", f"{text} by {users}" if users else text)


def used_up(content: Content, left: Mapping[str, Quantity]) -> Obstacle | None:
    """Return why no other share of a device can be allocated, if this much of it is left."""
    gone = [name for name, amount in left.items() if is_used_up(content.capacity[name], amount)]
    if not gone:
        return None
    return Obstacle("CapacityUsed", f"no {_listed(gone)} left")


def are_plain(slices: Sequence[ResourceSlice]) -> bool:
    """Report whether slices are a complete pool whose devices are independent of each other.

    Then all that are free can be allocated.
    """
    if not slices or len(slices) != slices[0].spec.pool.resource_slice_count:
        return False
    names: set[str] = set()
    for slice_ in slices:
        devices = slice_.spec.devices
        if slice_.spec.shared_counters or any(device.consumes_counters for device in devices):
            return False
        if len(slices) > 1:
            before = len(names)
            names.update(device.name for device in devices)
            if len(names) < before + len(devices):
                return False
    return True


def _seen_with(other: ResourceSliceSpec, mine: ResourceSliceSpec) -> bool:
    """Report whether the nodes that see one slice see another one as well."""
    if has_only_counters(other) or other.all_nodes or other.per_device_node_selection:
        return True
    return other.node_name == mine.node_name and other.node_selector == mine.node_selector


def _style(device: Device, lack: Lack) -> str:
    """Return the format in which a driver writes a counter."""
    for consumed in device.consumes_counters:
        if consumed.counter_set == lack.counter_set and lack.counter in consumed.counters:
            return parse_quantity(consumed.counters[lack.counter].value).style
    return parse_quantity("0").style


def _listed(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = len(ordered) - MOST_NAMED
    shown = ", ".join(ordered[:MOST_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown

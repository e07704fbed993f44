"""Counts the devices of one pool: by taint, allocation and class, and what keeps them unused.

One pool is counted at a time, because a change affects few pools. views keep the sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping
from datetime import datetime
from typing import NamedTuple

import msgspec

from sully.api.resource.types import DeviceTaint
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.taints import BLOCKING_EFFECTS, SourcedTaint, strongest_effect


class DeviceStatus(NamedTuple):
    """How a device is counted."""

    effect: str
    """The strongest effect of its taints; empty if it has none."""
    allocated: bool


class Blocker(NamedTuple):
    """What sets a taint, as people know it: a policy rather than its rule for one device."""

    kind: str
    name: str


class BlockingTaint(NamedTuple):
    """A taint of devices that are not allocated, and its source."""

    blocker: Blocker
    taint: DeviceTaint


class PoolCounts(msgspec.Struct):
    """The devices of a pool."""

    devices: Counter[DeviceStatus] = msgspec.field(default_factory=Counter)
    classes: Counter[tuple[str, DeviceStatus]] = msgspec.field(default_factory=Counter)
    """By class; a device may be in several."""
    blocked: dict[str, set[BlockingTaint]] = msgspec.field(default_factory=dict)
    """By class: the taints that keep devices unused which are not allocated."""
    tainted_since: dict[str, datetime | None] = msgspec.field(default_factory=dict)
    """When the devices that have taints got the first of them; None if nobody noted it."""


ClassesOf = Callable[[EffectiveDevice], tuple[str, ...]]
BlockerOf = Callable[[SourcedTaint], Blocker]


def count_pool(
    devices: Mapping[str, EffectiveDevice],
    *,
    allocated: Container[str],
    classes_of: ClassesOf,
    blocker_of: BlockerOf,
) -> PoolCounts:
    """Count the devices of a pool; `allocated` has the names of those that claims hold."""
    counts = PoolCounts()
    for name, device in devices.items():
        effect = strongest_effect({sourced.taint.effect for sourced in device.taints})
        status = DeviceStatus(effect, name in allocated)
        counts.devices[status] += 1
        classes = classes_of(device)
        counts.classes.update((class_, status) for class_ in classes)
        if device.taints:
            counts.tainted_since[name] = _since(device)
        if not status.allocated:
            for class_ in classes if effect in BLOCKING_EFFECTS else ():
                counts.blocked.setdefault(class_, set()).update(_blocking(device, blocker_of))
    return counts


def repaired(before: PoolCounts, after: PoolCounts, devices: Container[str]) -> list[datetime]:
    """Return since when the devices were tainted that no longer are, in order.

    A device that is no longer published was removed, not repaired.
    """
    return sorted(
        since
        for name, since in before.tainted_since.items()
        if since is not None and name in devices and name not in after.tainted_since
    )


def _since(device: EffectiveDevice) -> datetime | None:
    times = (sourced.taint.time_added for sourced in device.taints)
    return min((time for time in times if time is not None), default=None)


def _blocking(device: EffectiveDevice, blocker_of: BlockerOf) -> set[BlockingTaint]:
    return {
        # Without the time: taints of one source that differ only in it are one.
        BlockingTaint(blocker_of(sourced), _without_time(sourced.taint))
        for sourced in device.taints
        if sourced.taint.effect in BLOCKING_EFFECTS
    }


def _without_time(taint: DeviceTaint) -> DeviceTaint:
    return DeviceTaint(key=taint.key, value=taint.value, effect=taint.effect)

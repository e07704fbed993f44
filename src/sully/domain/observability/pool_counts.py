"""Counts the devices of one pool: by taint, allocation and class, and what keeps them unused.

One pool is counted at a time, because a change affects few pools. views keep the sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Mapping
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
    """When the devices that have taints got the first of them; None if it is not recorded."""


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
    summaries: dict[int, _TaintSummary] = {}
    for name, device in devices.items():
        # Most devices of a pool share the tuple of their taints.
        summary = summaries.get(id(device.taints))
        if summary is None:
            summary = _TaintSummary.of(device.taints, blocker_of)
            summaries[id(device.taints)] = summary
        status = DeviceStatus(summary.effect, name in allocated)
        counts.devices[status] += 1
        classes = classes_of(device)
        for class_ in classes:
            counts.classes[class_, status] += 1
        if device.taints:
            counts.tainted_since[name] = summary.since
        if not status.allocated and summary.effect in BLOCKING_EFFECTS:
            for class_ in classes:
                counts.blocked.setdefault(class_, set()).update(summary.blocking)
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


class _TaintSummary(NamedTuple):
    """What the taints of a device mean for its counts."""

    effect: str
    since: datetime | None
    blocking: set[BlockingTaint]

    @classmethod
    def of(cls, taints: Collection[SourcedTaint], blocker_of: BlockerOf) -> _TaintSummary:
        times = (sourced.taint.time_added for sourced in taints)
        return cls(
            effect=strongest_effect({sourced.taint.effect for sourced in taints}),
            since=min((time for time in times if time is not None), default=None),
            blocking={
                # Without the time: taints of one source that differ only in it are one.
                BlockingTaint(blocker_of(sourced), _without_time(sourced.taint))
                for sourced in taints
                if sourced.taint.effect in BLOCKING_EFFECTS
            },
        )


def _without_time(taint: DeviceTaint) -> DeviceTaint:
    return DeviceTaint(key=taint.key, value=taint.value, effect=taint.effect)

"""When the taints were added that make pods leave, over all objects that can say so.

The scheduler asks, to know whether tolerationSeconds are over (`toleration_expiry.py`).
A taint that is on no device counts too: it only makes the answer finer than need be.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

from sully.api.resource.types import (
    DeviceTaint,
    DeviceTaintRule,
    ResourceSlice,
    ResourceSlicePatch,
)
from sully.domain.devices.taints import EVICTING_EFFECTS

Source = DeviceTaintRule | ResourceSlice | ResourceSlicePatch


class TaintTimes:
    """The times of all taints that make pods leave."""

    def __init__(self) -> None:
        self._known: Counter[tuple[str, datetime]] = Counter()
        self._ordered: dict[str, list[datetime]] | None = {}
        """The times of each key, and under no key those of all."""

    def change(self, old: Source | None, new: Source | None) -> None:
        """Take another state of an object."""
        before, after = list(_times(old)), list(_times(new))
        if before == after:
            return
        self._known.update(after)
        for each in before:
            self._known[each] -= 1
            if not self._known[each]:
                del self._known[each]
        self._ordered = None

    def newest(self, until: datetime, key: str) -> datetime | None:
        """Return the last time of taints with a key that is not after another; None if all are.

        No key stands for every one, as it does in tolerations.
        """
        if self._ordered is None:
            self._ordered = self._in_order()
        times = self._ordered.get(key, [])
        place = bisect_right(times, until)
        return times[place - 1] if place else None

    def _in_order(self) -> dict[str, list[datetime]]:
        found: dict[str, list[datetime]] = {"": sorted(time for _, time in self._known)}
        for key, time in sorted(self._known):
            found.setdefault(key, []).append(time)
        return found


def _times(source: Source | None) -> Iterator[tuple[str, datetime]]:
    for each in _taints(source):
        if each.time_added is not None and each.effect in EVICTING_EFFECTS:
            yield each.key, each.time_added


def _taints(source: Source | None) -> Iterable[DeviceTaint]:
    match source:
        case DeviceTaintRule():
            yield source.spec.taint
        case ResourceSlicePatch():
            yield from source.spec.devices.taints
        case ResourceSlice():
            for device in source.spec.devices:
                if device.taints:
                    yield from device.taints
            yield from (each.taint for each in source.spec.taints)
        case None:
            pass

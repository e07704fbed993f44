"""The `timeAdded` of all taints that evict pods, in rules, slices and patches.

The scheduler uses them to decide whether tolerationSeconds are over (`toleration_expiry.py`).
Taints that are on no device are included: they only make the result more precise than necessary.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from itertools import chain

from sully.api.resource.types import (
    DeviceTaint,
    DeviceTaintRule,
    ResourceSlice,
    ResourceSlicePatch,
)
from sully.domain.devices.taints import EVICTING_EFFECTS

Source = DeviceTaintRule | ResourceSlice | ResourceSlicePatch


class TaintTimes:
    """The times of all taints that evict pods."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, datetime]] = Counter()
        self._ordered: dict[str, list[datetime]] | None = {}
        """The times of each key, and under the empty key those of all."""

    def __bool__(self) -> bool:
        """Report whether there are such taints."""
        return bool(self._counts)

    def change(self, old: Source | None, new: Source | None) -> None:
        """Update the times after an event of an object."""
        before = _times(old) if old is not None else []
        after = _times(new) if new is not None else []
        if before == after:
            return
        self._counts.update(after)
        for key_and_time in before:
            self._counts[key_and_time] -= 1
            if not self._counts[key_and_time]:
                del self._counts[key_and_time]
        self._ordered = None

    def newest(self, until: datetime, key: str) -> datetime | None:
        """Return the latest time of taints with a key that is not after `until`, or None.

        An empty key matches every key, as in tolerations.
        """
        times = self._with(key)
        index = bisect_right(times, until)
        return times[index - 1] if index else None

    def next(self, after: datetime, key: str) -> datetime | None:
        """Return the first time of taints with a key that is later than `after`, or None."""
        times = self._with(key)
        index = bisect_right(times, after)
        return times[index] if index < len(times) else None

    def _with(self, key: str) -> list[datetime]:
        if self._ordered is None:
            self._ordered = self._sort()
        return self._ordered.get(key, [])

    def _sort(self) -> dict[str, list[datetime]]:
        times: dict[str, list[datetime]] = {"": sorted(time for _, time in self._counts)}
        for key, time in sorted(self._counts):
            times.setdefault(key, []).append(time)
        return times


def _times(source: Source) -> list[tuple[str, datetime]]:
    return [
        (taint.key, taint.time_added)
        for taint in _taints(source)
        if taint.time_added is not None and taint.effect in EVICTING_EFFECTS
    ]


def _taints(source: Source) -> Iterable[DeviceTaint]:
    match source:
        case ResourceSlice():
            own = [device.taints for device in source.spec.devices if device.taints]
            if not own and not source.spec.taints:
                return ()
            return [*chain(*own), *(entry.taint for entry in source.spec.taints)]
        case DeviceTaintRule():
            return (source.spec.taint,)
        case ResourceSlicePatch():
            return source.spec.devices.taints

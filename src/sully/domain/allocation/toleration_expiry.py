"""Tolerations that end: may a new pod still count on one?

`tolerationSeconds` say how long a pod may stay where a taint makes others leave. Kubernetes 1.37
goes on giving such devices to new pods when those seconds are over, and each of them has to leave
at once; where an owner replaces them, that never ends. Here a toleration that is over tolerates
nothing, and one that will be over comes after devices that need none.

Whether it is over depends on when the taint was added, so seconds are read as the newest time of a
taint for which they are over now. That is the same for most requests, changes rarely, and knows
nothing of clocks: what was found out about devices once stays true for it (candidates.py), as do
results (scheduler/equivalence.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

import msgspec

from sully.api.resource.types import DeviceTaint, DeviceToleration
from sully.domain.devices.taints import EVICTING_EFFECTS, SourcedTaint
from sully.domain.tolerations import tolerates

Expiries = tuple[datetime | None, ...]
"""For each toleration the newest time of a taint for which it is over; None if it has no end."""
NOT_YET: Final = datetime.min.replace(tzinfo=UTC)
"""It has an end, and is over for no taint that there is."""


class Times(Protocol):
    """When the taints were added that make pods leave."""

    def newest(self, until: datetime, key: str) -> datetime | None:
        """Return the last time of taints with a key that is not after another; None if all are."""


class AsOf(msgspec.Struct, frozen=True):
    """A moment, and the taints there are at it."""

    now: datetime
    times: Times

    def ends(self, tolerations: Sequence[DeviceToleration]) -> Expiries:
        """Return for which taints tolerations are over; nothing if none of them has an end."""
        found = tuple(map(self._end, tolerations))
        return found if any(each is not None for each in found) else ()

    def _end(self, toleration: DeviceToleration) -> datetime | None:
        if not expires(toleration):
            return None
        try:
            over = self.now - timedelta(seconds=max(0, toleration.toleration_seconds or 0))
        except OverflowError:
            return NOT_YET
        return self.times.newest(over, toleration.key) or NOT_YET


def expires(toleration: DeviceToleration) -> bool:
    """Report whether a toleration expires; seconds mean nothing without an evicting effect."""
    limited = toleration.toleration_seconds is not None
    return limited and toleration.effect in EVICTING_EFFECTS


def is_temporary(
    taint: DeviceTaint, tolerations: Sequence[DeviceToleration], ends: Expiries
) -> bool:
    """Report whether a taint is tolerated, but not indefinitely."""
    return bool(_limits(taint, tolerations, ends))


def is_expired(taint: DeviceTaint, tolerations: Sequence[DeviceToleration], ends: Expiries) -> bool:
    """Report whether the toleration of a taint expired; as in eviction, the shortest time counts.

    A taint without a time is new: the server always stamps one.
    """
    known = _limits(taint, tolerations, ends)
    return bool(known) and taint.time_added is not None and max(known) >= taint.time_added


def _limits(
    taint: DeviceTaint, tolerations: Sequence[DeviceToleration], ends: Expiries
) -> list[datetime]:
    """Return the ends of the tolerations that cover a taint; nothing if one of them has none."""
    found = [end for each, end in zip(tolerations, ends, strict=True) if tolerates(each, taint)]
    known = [end for end in found if end is not None]
    return known if len(known) == len(found) else []


def expired(
    taints: Iterable[SourcedTaint], tolerations: Sequence[DeviceToleration], ends: Expiries
) -> tuple[SourcedTaint, ...]:
    """Return the taints of a device that a request tolerated until some time ago, in order."""
    return tuple(each for each in taints if is_expired(each.taint, tolerations, ends))


def tolerated_temporarily(
    taints: Iterable[SourcedTaint], tolerations: Sequence[DeviceToleration]
) -> int:
    """Count the taints of a device that a request tolerates only for a time."""
    ends = tuple(NOT_YET if expires(each) else None for each in tolerations)
    return sum(is_temporary(each.taint, tolerations, ends) for each in taints)

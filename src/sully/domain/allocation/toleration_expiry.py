"""Tolerations that expire, when devices are allocated to new pods.

When the toleration of a running pod expires, or that of a pod whose claim is allocated already,
`eviction_time` in eviction/judge.py decides. Kubernetes 1.37 still allocates such devices to new
pods after `tolerationSeconds`, and each of them is evicted immediately and replaced, without end.
Here an expired toleration does not tolerate the taint, and devices with a toleration that will
expire come after those without.

Whether a toleration has expired depends on when the taint was added, so seconds are converted to
the newest time of a taint for which they have passed now. That is the same for most requests,
changes rarely and needs no clock, so cached candidates (candidates.py) and results
(scheduler/equivalence/classes.py) remain valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

import msgspec

from sully.api.resource.types import DeviceTaint, DeviceToleration
from sully.domain.devices.taints import SourcedTaint, expires
from sully.domain.tolerations import tolerates
from sully.machinery.formats.timestamps import later

Expiries = tuple[datetime | None, ...]
"""For each toleration the newest time of a taint for which it expired; None if it never does."""
NOT_YET: Final = datetime.min.replace(tzinfo=UTC)
"""It expires, but has not for any taint in the cluster."""


class Times(Protocol):
    """When the taints that evict were added."""

    def newest(self, until: datetime, key: str) -> datetime | None:
        """Return the last time of taints with a key that is not after another; None if all are."""

    def next(self, after: datetime, key: str) -> datetime | None:
        """Return the first time of taints with a key that is after another; None if none is."""


class AsOf(msgspec.Struct):
    """A time, and the taints in the cluster at that time."""

    now: datetime
    times: Times
    _until: datetime | None = None
    """The first time at which any of the `expiries` that were returned changes."""

    def advance(self, now: datetime) -> bool:
        """Move to another time; report whether `expiries` may return something else then."""
        changed = now < self.now or (self._until is not None and now >= self._until)
        self.now = now
        if changed:
            self._until = None
        return changed

    def expiries(self, tolerations: Sequence[DeviceToleration]) -> Expiries:
        """Return for which taints tolerations have expired; nothing if none of them expires."""
        expiries = tuple(map(self._expiry, tolerations))
        return expiries if any(expiry is not None for expiry in expiries) else ()

    def _expiry(self, toleration: DeviceToleration) -> datetime | None:
        if not expires(toleration):
            return None
        try:
            lasts = timedelta(seconds=max(0, toleration.toleration_seconds or 0))
            over = self.now - lasts
        except OverflowError:
            return NOT_YET
        added = self.times.next(over, toleration.key)
        until = later(added, lasts) if added is not None else None
        if until is not None and (self._until is None or until < self._until):
            self._until = until
        return self.times.newest(over, toleration.key) or NOT_YET


def is_temporarily_tolerated(
    taint: DeviceTaint, tolerations: Sequence[DeviceToleration], expiries: Expiries
) -> bool:
    """Report whether a taint is tolerated, but not indefinitely."""
    return bool(_limits(taint, tolerations, expiries))


def is_expired(
    taint: DeviceTaint, tolerations: Sequence[DeviceToleration], expiries: Expiries
) -> bool:
    """Report whether the toleration of a taint expired; as in eviction, the shortest counts.

    A taint without a time is new: the server always stamps one.
    """
    limits = _limits(taint, tolerations, expiries)
    return bool(limits) and taint.time_added is not None and max(limits) >= taint.time_added


def _limits(
    taint: DeviceTaint, tolerations: Sequence[DeviceToleration], expiries: Expiries
) -> list[datetime]:
    """Return the expiries of the tolerations of a taint; nothing if one of them never expires."""
    matching = [
        expiry
        for toleration, expiry in zip(tolerations, expiries, strict=True)
        if tolerates(toleration, taint)
    ]
    limits = [expiry for expiry in matching if expiry is not None]
    return limits if len(limits) == len(matching) else []


def with_expired_toleration(
    taints: Iterable[SourcedTaint],
    tolerations: Sequence[DeviceToleration],
    expiries: Expiries,
    effects: frozenset[str],
) -> tuple[SourcedTaint, ...]:
    """Return the taints with these effects for which the toleration of a request expired."""
    return tuple(
        taint
        for taint in taints
        if taint.taint.effect in effects and is_expired(taint.taint, tolerations, expiries)
    )


def count_temporarily_tolerated(
    taints: Iterable[SourcedTaint], tolerations: Sequence[DeviceToleration]
) -> int:
    """Count the taints of a device that a request tolerates only temporarily."""
    expiries = tuple(NOT_YET if expires(toleration) else None for toleration in tolerations)
    return sum(is_temporarily_tolerated(taint.taint, tolerations, expiries) for taint in taints)

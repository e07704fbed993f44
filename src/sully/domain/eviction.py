"""When must a pod leave its devices: Keep, Wait or Evict, with the taints that say so.

A pod is judged by its exposures: one per allocated device, with the taints of that device and the
tolerations that were copied into *its* allocation result. What a rule's status says about all this
is in evictionstatus.py; who fetches and acts is `controllers/eviction`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sully.api.resource.claim_types import DeviceToleration
from sully.api.resource.types import DeviceTaint
from sully.domain.pools import DeviceId
from sully.domain.taints import NO_EXECUTE, Origin, SourcedTaint, tolerates_eviction

EVICTING = frozenset((NO_EXECUTE,))
"""Effects that make pods leave."""

_END_OF_TIME = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Exposure:
    """One allocated device: the taints it carries, and what its holder tolerates."""

    device: DeviceId
    taints: tuple[SourcedTaint, ...]
    tolerations: tuple[DeviceToleration, ...] = ()


@dataclass(frozen=True, slots=True)
class Reason:
    """A taint on a device that makes its holder leave."""

    device: DeviceId
    taint: SourcedTaint

    @property
    def rule(self) -> str | None:
        """Return the uid of the rule that set the taint, if a rule did."""
        origin = self.taint.origin
        return origin.uid if origin.kind == "DeviceTaintRule" else None

    def _order(self) -> tuple[object, ...]:
        origin = self.taint.origin
        if origin.kind == "DeviceTaintRule":
            # Which device a rule hit does not matter for its place.
            return 0, origin.name, *self.device
        return 1, *self.device, origin.kind, origin.name, origin.index


@dataclass(frozen=True, slots=True)
class Keep:
    """Nothing makes the pod leave."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The pod must leave, but not yet."""

    until: datetime
    because: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Evict:
    """The pod must leave now; it has been due since then."""

    since: datetime
    because: tuple[Reason, ...]


Verdict = Keep | Wait | Evict
KEEP = Keep()


def judge(exposures: Iterable[Exposure], *, now: datetime, strict: bool = False) -> Verdict:
    """Decide whether and when a pod must leave its devices.

    The earliest taint decides when. All taints that would make it leave are reasons, also those
    whose time has not come.
    """
    at = _END_OF_TIME
    because: dict[tuple[DeviceId, Origin], Reason] = {}
    for exposure in exposures:
        for taint in exposure.taints:
            due = leaves_at(taint.taint, exposure.tolerations, now=now, strict=strict)
            if due is not None:
                at = min(at, due)
                because[exposure.device, taint.origin] = Reason(exposure.device, taint)
    if not because:
        return KEEP
    reasons = tuple(sorted(because.values(), key=Reason._order))
    return Evict(at, reasons) if at <= now else Wait(at, reasons)


def leaves_at(
    taint: DeviceTaint,
    tolerations: Sequence[DeviceToleration],
    *,
    now: datetime,
    strict: bool = False,
) -> datetime | None:
    """Return when one taint makes the holder of a device leave, or None for never.

    The shortest of the tolerations that match counts, unless one of them has no end.
    """
    if taint.effect not in EVICTING:
        return None
    # The server always stamps a taint; one without a time is new.
    added = taint.time_added or now
    matching = [
        _seconds(each) for each in tolerations if tolerates_eviction(each, taint, strict=strict)
    ]
    if None in matching:
        return None
    shortest = min((seconds for seconds in matching if seconds is not None), default=0)
    return _later(added, max(0, shortest))


def _seconds(toleration: DeviceToleration) -> int | None:
    # Seconds are defined only for tolerations that name an evicting effect.
    return toleration.toleration_seconds if toleration.effect else None


def _later(moment: datetime, seconds: int) -> datetime:
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return _END_OF_TIME

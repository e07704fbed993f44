"""When is a pod evicted from its devices: Keep, Hold, Wait or Evict, with the taints that decide.

A pod is judged by its exposures: one per allocated device, with the taints of that device and the
tolerations that were copied into *its* allocation result. Evictions per second are in rates.py,
what a rule's status reports in status.py and preview.py. `sully.evictor` asks, and adds what
delays an eviction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from sully.api.resource.types import DeviceTaint, DeviceToleration
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.taints import (
    NO_EXECUTE,
    NO_EXECUTE_WITH_BUDGET,
    Origin,
    SourcedTaint,
    tolerates_eviction,
)
from sully.machinery.compat import Compat
from sully.machinery.timestamps import later

EVICTING = frozenset((NO_EXECUTE,))
"""Effects that evict pods."""
EVICTING_WITH_BUDGETS = EVICTING | {NO_EXECUTE_WITH_BUDGET}
"""The same with the effect that asks budgets, which is behind a gate."""


class Exposure(msgspec.Struct, frozen=True):
    """One allocated device: the taints it carries, and what its holder tolerates."""

    device: DeviceId
    taints: tuple[SourcedTaint, ...]
    tolerations: tuple[DeviceToleration, ...] = ()


class Reason(msgspec.Struct, frozen=True):
    """A taint on a device that evicts the pods on it."""

    device: DeviceId
    taint: SourcedTaint
    due: datetime | None = None
    """When this taint alone would evict them."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How eviction works in a control plane."""

    compat: Compat = Compat.SULLY
    effects: frozenset[str] = EVICTING


USUAL = Terms()


@dataclass(frozen=True, slots=True)
class Keep:
    """Nothing evicts the pod."""


class Hold(msgspec.Struct, frozen=True):
    """The pod is to be evicted, but all rules that want it are paused."""

    because: tuple[Reason, ...]


class Wait(msgspec.Struct, frozen=True):
    """The pod is to be evicted, but not yet."""

    until: datetime
    because: tuple[Reason, ...]
    paused: tuple[Reason, ...] = ()
    """What also evicts it, but is paused."""


class Evict(msgspec.Struct, frozen=True):
    """The pod is to be evicted now; it has been due since then."""

    since: datetime
    because: tuple[Reason, ...]
    paused: tuple[Reason, ...] = ()

    def due(self, now: datetime) -> tuple[Reason, ...]:
        """Return the reasons that are due."""
        return tuple(each for each in self.because if each.due is None or each.due <= now)


Verdict = Keep | Hold | Wait | Evict
KEEP = Keep()


def _none_paused(_: Origin) -> bool:
    return False


def judge(
    exposures: Iterable[Exposure],
    *,
    now: datetime,
    terms: Terms = USUAL,
    paused: Callable[[Origin], bool] = _none_paused,
) -> Verdict:
    """Decide whether and when a pod is evicted from its devices.

    The earliest taint decides when. All taints that would evict it are reasons, also those that are
    not due. Taints that are paused decide nothing.
    """
    found: dict[tuple[DeviceId, Origin], Reason] = {}
    for exposure in exposures:
        for taint in exposure.taints:
            due = leaves_at(taint.taint, exposure.tolerations, now=now, terms=terms)
            if due is not None:
                found[exposure.device, taint.origin] = Reason(exposure.device, taint, due)
    if not found:
        return KEEP
    reasons = sorted(found.values(), key=Reason._order)
    held = tuple(each for each in reasons if paused(each.taint.origin))
    because = tuple(reasons) if not held else tuple(each for each in reasons if each not in held)
    if not because:
        return Hold(held)
    at = min(each.due or now for each in because)
    return Evict(at, because, held) if at <= now else Wait(at, because, held)


def leaves_at(
    taint: DeviceTaint,
    tolerations: Sequence[DeviceToleration],
    *,
    now: datetime,
    terms: Terms = USUAL,
) -> datetime | None:
    """Return when one taint evicts the pods on a device, or None for never.

    The shortest of the tolerations that match counts, unless one of them has no end.
    """
    if taint.effect not in terms.effects:
        return None
    # The server always stamps a taint; one without a time is new.
    added = taint.time_added or now
    matching = [
        _seconds(each) for each in tolerations if tolerates_eviction(each, taint, terms.compat)
    ]
    if None in matching:
        return None
    shortest = min((seconds for seconds in matching if seconds is not None), default=0)
    return later(added, max(0, shortest))


def needs_budget(reasons: Iterable[Reason]) -> bool:
    """Report whether a pod that is due for these reasons is evicted only as its budgets allow."""
    return all(each.taint.taint.effect == NO_EXECUTE_WITH_BUDGET for each in reasons)


Rules = frozenset[tuple[str, str]]
"""Rules by name and uid."""


def rules_in(reasons: Iterable[Reason]) -> Rules:
    """Return the rules among the reasons why a pod is evicted."""
    return frozenset(
        (reason.taint.origin.name, reason.rule) for reason in reasons if reason.rule is not None
    )


def _seconds(toleration: DeviceToleration) -> int | None:
    # Seconds are defined only for tolerations that name an evicting effect.
    return toleration.toleration_seconds if toleration.effect else None

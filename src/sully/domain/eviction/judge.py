"""When a pod is evicted from its devices: Keep, Hold, Wait or Evict, and because of which taints.

A pod is judged by its exposures: one per allocated device, with the taints of that device and the
tolerations that were copied into *its* allocation result. `eviction_time` decides when a taint
evicts, and so what happens when a toleration expires. Evictions per second are in rates.py, the
status of rules in status.py and preview.py. `sully.evictor` adds what delays an eviction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import msgspec

from sully.api.resource.types import AllocationResult, DeviceTaint, DeviceToleration
from sully.domain.devices.pools import DeviceId, device_of_result
from sully.domain.devices.taints import (
    BUDGET_EFFECTS,
    EVICTING_EFFECTS,
    KUBERNETES_EFFECTS,
    Origin,
    SourcedTaint,
    expires,
    tolerates_eviction,
)
from sully.machinery.compat import Compat
from sully.machinery.formats.timestamps import later


class Exposure(msgspec.Struct, frozen=True):
    """One allocated device: its taints, and the tolerations of the claim that holds it."""

    device: DeviceId
    taints: tuple[SourcedTaint, ...]
    tolerations: tuple[DeviceToleration, ...] = ()


class EvictingTaint(msgspec.Struct, frozen=True):
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
            # Reasons are sorted by rule first, and by device only within a rule.
            return 0, origin.name, *self.device
        return 1, *self.device, origin.kind, origin.name, origin.index


class EvictionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Which taints evict pods in a control plane."""

    compat: Compat = Compat.SULLY
    effects: frozenset[str] = EVICTING_EFFECTS & KUBERNETES_EFFECTS
    """The effects that evict; others need a feature gate."""


DEFAULT_POLICY = EvictionPolicy()


class Keep(msgspec.Struct, frozen=True):
    """Nothing evicts the pod."""


class Hold(msgspec.Struct, frozen=True):
    """The pod is to be evicted, but all rules that evict it are paused."""

    because: tuple[EvictingTaint, ...]


class Wait(msgspec.Struct, frozen=True):
    """The pod is to be evicted, but not yet."""

    until: datetime
    because: tuple[EvictingTaint, ...]
    paused: tuple[EvictingTaint, ...] = ()
    """What also evicts it, but is paused."""


class Evict(msgspec.Struct, frozen=True):
    """The pod is to be evicted now; it has been due since then."""

    since: datetime
    because: tuple[EvictingTaint, ...]
    paused: tuple[EvictingTaint, ...] = ()

    def due(self, now: datetime) -> tuple[EvictingTaint, ...]:
        """Return the reasons that are due."""
        return tuple([x for x in self.because if x.due is None or x.due <= now])


Verdict = Keep | Hold | Wait | Evict
KEEP = Keep()


def _none_paused(_: Origin) -> bool:
    return False


def judge(
    exposures: Iterable[Exposure],
    *,
    now: datetime,
    policy: EvictionPolicy = DEFAULT_POLICY,
    paused: Callable[[Origin], bool] = _none_paused,
) -> Verdict:
    """Decide whether and when a pod is evicted from its devices.

    The earliest taint decides when. All taints that would evict it are reasons, also those that are
    not due. Taints that are paused decide nothing.
    """
    reasons: dict[tuple[DeviceId, Origin], EvictingTaint] = {}
    for exposure in exposures:
        for taint in exposure.taints:
            due = eviction_time(taint.taint, exposure.tolerations, now=now, policy=policy)
            if due is not None:
                reasons[exposure.device, taint.origin] = EvictingTaint(exposure.device, taint, due)
    if not reasons:
        return KEEP
    ordered = sorted(reasons.values(), key=EvictingTaint._order)
    on_hold = tuple([reason for reason in ordered if paused(reason.taint.origin)])
    because = tuple([reason for reason in ordered if reason not in on_hold])
    if not because:
        return Hold(on_hold)
    at = min(reason.due or now for reason in because)
    return Evict(at, because, on_hold) if at <= now else Wait(at, because, on_hold)


def eviction_time(
    taint: DeviceTaint,
    tolerations: Sequence[DeviceToleration],
    *,
    now: datetime,
    policy: EvictionPolicy = DEFAULT_POLICY,
) -> datetime | None:
    """Return when a taint evicts the pods on a device; None if it never does.

    That is when their toleration of it expires, or when the taint was added.
    """
    delay = eviction_delay(taint, tolerations, policy)
    if delay is None:
        return None
    # The server always stamps a taint; one without a time is new.
    added = taint.time_added or now
    return later(added, delay) if delay else added


def eviction_delay(
    taint: DeviceTaint, tolerations: Sequence[DeviceToleration], policy: EvictionPolicy
) -> int | None:
    """Return how many seconds after a taint was added it evicts the pods on a device.

    A toleration expires `tolerationSeconds` after the taint was added, and from then on does not
    prevent the eviction. Of several that match the shortest decides, unless one never expires;
    then the result is None, as for an effect that does not evict.
    """
    if taint.effect not in policy.effects:
        return None
    shortest: int | None = None
    for toleration in tolerations:
        if not tolerates_eviction(toleration, taint, policy.compat):
            continue
        seconds = toleration.toleration_seconds if expires(toleration) else None
        if seconds is None:
            return None
        shortest = seconds if shortest is None else min(shortest, seconds)
    return max(0, shortest or 0)


def evicting_taints(
    allocation: AllocationResult,
    taints: Callable[[DeviceId], Iterable[SourcedTaint]],
    *,
    now: datetime,
    policy: EvictionPolicy = DEFAULT_POLICY,
) -> tuple[tuple[DeviceId, SourcedTaint], ...]:
    """Return the taints that would immediately evict a pod that starts to use an allocation.

    Kubernetes 1.37 does not ask, against its documentation: the pod is scheduled and evicted. A
    taint that only prevents scheduling does not count, because the devices are allocated already,
    nor does one whose toleration has not expired.
    """
    evicting = []
    for result in allocation.devices.results:
        device = device_of_result(result)
        for taint in taints(device):
            due = eviction_time(taint.taint, result.tolerations, now=now, policy=policy)
            if due is not None and due <= now:
                evicting.append((device, taint))
    return tuple(evicting)


def needs_budget(reasons: Iterable[EvictingTaint]) -> bool:
    """Report whether a pod that is due for these reasons is evicted only as its budgets allow."""
    return all(reason.taint.taint.effect in BUDGET_EFFECTS for reason in reasons)


Rules = frozenset[tuple[str, str]]
"""Rules by name and uid."""


def rules_in(reasons: Iterable[EvictingTaint]) -> Rules:
    """Return the rules among the reasons why a pod is evicted."""
    return frozenset(
        (reason.taint.origin.name, reason.rule) for reason in reasons if reason.rule is not None
    )

"""Eviction loops: pods whose replacements are scheduled on tainted devices and evicted again.

Kubernetes schedules pods by other rules than it evicts them. kube-scheduler accepts a toleration
that has expired, or that names no effect, and does not look at the taints of a claim that is
already allocated; the eviction controller evicts the pod from there immediately. Its owner
recreates it, and nothing ends that. Plans find loops before they start, and `sully explain`
recognizes one that runs (running_loops.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Final

import msgspec

from sully.api.resource.types import (
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceTaintSelector,
    DeviceToleration,
    ResourceClaim,
)
from sully.domain.claims.pods import Pod, claim_references
from sully.domain.devices.pools import DeviceId, device_of_result
from sully.domain.devices.taints import NO_SCHEDULE
from sully.domain.eviction.judge import EvictingTaint
from sully.domain.tolerations import taint_text, tolerates

KUBERNETES_PER_MINUTE: Final = 400
"""The evictions that kube-controller-manager makes at most with its default flags.

A client may send 20 requests per second (`--kube-api-qps`), and an eviction takes three.
"""
_MAX_KEY_NAME: Final = 63
_SUFFIX: Final = "-no-schedule"


class LoopCause(Enum):
    """Why the replacement of an evicted pod is scheduled on a tainted device again."""

    TOLERATION_EXPIRES = "TolerationExpires"
    """It tolerates NoExecute for some seconds, which have passed."""
    TOLERATES_NO_SCHEDULE = "TolerationExpiresNoScheduleTolerated"
    """The same, and it tolerates NoSchedule of that key as well."""
    TOLERATION_WITHOUT_EFFECT = "TolerationWithoutEffect"
    """Its toleration names no effect: it allows scheduling, and does not prevent eviction."""
    NAMED_CLAIM = "NamedClaim"
    """Its claim is allocated: other pods, or the one before it, still have it reserved."""
    UNKNOWN = "Unknown"


class EvictedAgain(msgspec.Struct, frozen=True, kw_only=True):
    """How one pod is evicted from where it has just been scheduled."""

    cause: LoopCause
    device: str = ""
    taint: str = ""
    """As `key=value:effect`."""
    origin: str = ""
    claim: str = ""
    """Kind and name of what its device request is in: a ResourceClaim or ResourceClaimTemplate."""
    blocking_key: str = ""
    """The key of a NoSchedule taint that it would not tolerate; empty if it tolerates all."""


def evicted_again(
    pod: Pod, claims: Iterable[ResourceClaim], reasons: Iterable[EvictingTaint]
) -> EvictedAgain:
    """Return why a pod is evicted from a device that it was just scheduled to."""
    for reason in reasons:
        for claim, result in _results(claims, reason.device):
            named, text = _claim_text(pod, claim)
            taint = reason.taint.taint
            return EvictedAgain(
                cause=loop_cause(taint, result.tolerations, named_claim=named),
                device=str(reason.device),
                taint=taint_text(taint),
                origin=str(reason.taint.origin),
                claim=text,
                blocking_key=blocking_key(taint, result.tolerations),
            )
    return EvictedAgain(cause=LoopCause.UNKNOWN)


def _results(
    claims: Iterable[ResourceClaim], device: DeviceId
) -> Iterator[tuple[ResourceClaim, DeviceRequestAllocationResult]]:
    for claim in claims:
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation is not None else ():
            if device_of_result(result) == device:
                yield claim, result


def _claim_text(pod: Pod, claim: ResourceClaim) -> tuple[bool, str]:
    """Return whether a pod names its claim, and kind and name of the claim or its template."""
    for reference in claim_references(pod):
        if reference.name != claim.metadata.name:
            continue
        if not reference.generated:
            return True, f"ResourceClaim/{reference.name}"
        return False, f"ResourceClaimTemplate/{reference.template}" if reference.template else ""
    return False, ""


def loop_cause(
    taint: DeviceTaint, tolerations: Sequence[DeviceToleration], *, named_claim: bool
) -> LoopCause:
    """Return why a pod was scheduled on a device from which this taint evicts it."""
    if named_claim:
        return LoopCause.NAMED_CLAIM
    matching = [toleration for toleration in tolerations if tolerates(toleration, taint)]
    if any(toleration.effect for toleration in matching):
        if any(tolerates(toleration, _no_schedule(taint.key, taint)) for toleration in tolerations):
            return LoopCause.TOLERATES_NO_SCHEDULE
        return LoopCause.TOLERATION_EXPIRES
    return LoopCause.TOLERATION_WITHOUT_EFFECT if matching else LoopCause.UNKNOWN


def blocking_key(taint: DeviceTaint, tolerations: Sequence[DeviceToleration]) -> str:
    """Return the key of a NoSchedule taint that would prevent scheduling; empty if there is none.

    It is the key of the taint itself if its tolerations are only for NoExecute.
    """
    domain, _, name = taint.key.rpartition("/")
    other = f"{name[: _MAX_KEY_NAME - len(_SUFFIX)]}{_SUFFIX}"
    for key in (taint.key, f"{domain}/{other}" if domain else other):
        blocking = _no_schedule(key, taint)
        if not any(tolerates(toleration, blocking) for toleration in tolerations):
            return key
    return ""


def _no_schedule(key: str, taint: DeviceTaint) -> DeviceTaint:
    return DeviceTaint(key=key, value=taint.value, effect=NO_SCHEDULE)


def evictions_per_minute(
    pods: int,
    *,
    replaced_after: float = 0.0,
    rates: Iterable[float | None] = (),
    by_kubernetes: bool,
    max_per_minute: int | None = None,
) -> int | None:
    """Return how many evictions a loop of this many pods makes per minute; None: nothing limits it.

    `replaced_after`: seconds until an evicted pod is replaced; `rates`: the evictions per second of
    the rules, of which the highest counts unless one has none.
    """
    limits: list[float] = []
    if by_kubernetes:
        limits.append(KUBERNETES_PER_MINUTE)
    else:
        known = list(rates)
        limits += [60 * max(rate for rate in known if rate)] if known and all(known) else []
        limits += [max_per_minute] if max_per_minute is not None else []
    if replaced_after > 0:
        limits.append(60 * pods / replaced_after)
    return max(1, round(min(limits))) if limits else None


def selector_pattern(selector: DeviceTaintSelector | None) -> str:
    """Return the devices of a rule as an argument of `sully taint device`; empty if it has none."""
    if selector is None or selector.selectors:
        return ""
    if selector.device_class_name:
        names = (selector.driver, selector.pool, selector.device)
        return "" if any(names) else f"--class {selector.device_class_name}"
    names = (selector.driver or "*", selector.pool or "*", selector.device or "*")
    pattern = "/".join(names)
    return f"'{pattern}'" if "*" in pattern else pattern

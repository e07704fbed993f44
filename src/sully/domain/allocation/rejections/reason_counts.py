"""Counts why devices are rejected, pool by pool, for one alternative of a request.

The counts of a pool are cached in it until its use changes, so a diagnosis costs little more than
one pass over the pools. survey.py adds up the counts of pools.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from sully.domain.allocation.candidates import Slot, as_seen, candidates
from sully.domain.allocation.plans import RequestPlan
from sully.domain.allocation.pools.node_pools import Pool
from sully.domain.allocation.requests import DeviceRequirements
from sully.domain.allocation.state import AllocationState
from sully.domain.allocation.toleration_expiry import is_expired
from sully.domain.allocation.verdicts import (
    HolderCount,
    RejectionReason,
    RequestDiagnosis,
    SelectorCount,
    TaintCount,
)
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import PoolId
from sully.domain.devices.taints import Origin, SourcedTaint
from sully.domain.tolerations import taint_text

_BY_DISTANCE: Final = (
    RejectionReason.CONSTRAINT,
    RejectionReason.COUNTERS,
    RejectionReason.CAPACITY,
    RejectionReason.TAINT,
    RejectionReason.IN_USE,
    RejectionReason.SELECTOR_ERROR,
    RejectionReason.REQUEST_SELECTOR,
    RejectionReason.CLASS_SELECTOR,
    RejectionReason.NODE,
)
"""From closest to a device that fits; the closest counts where nodes see a device differently."""


class DeviceFinding(NamedTuple):
    """Why one device is rejected; None if it is available."""

    device: EffectiveDevice
    reason: RejectionReason | None
    taints: tuple[SourcedTaint, ...] = ()
    selector: int = 0
    holders: tuple[str, ...] = ()

    def distance(self) -> int:
        """Return how far the device is from one that fits."""
        return 0 if self.reason is None else 1 + _BY_DISTANCE.index(self.reason)


class ReasonCounts(msgspec.Struct):
    """Counts over any number of devices."""

    available: int = 0
    refused: Counter[RejectionReason] = msgspec.field(default_factory=Counter)
    taints: dict[tuple[Origin, str], TaintCount] = msgspec.field(default_factory=dict)
    selectors: Counter[tuple[str, int]] = msgspec.field(default_factory=Counter)
    holders: Counter[str] = msgspec.field(default_factory=Counter)

    def add(self, finding: DeviceFinding, requirements: DeviceRequirements) -> None:
        """Count one device."""
        if finding.reason is None:
            self.available += 1
            return
        self.refused[finding.reason] += 1
        match finding.reason:
            case RejectionReason.TAINT:
                for taint in finding.taints:
                    self._add_taint(TaintCount(taint, 1, expired=_is_expired(taint, requirements)))
            case RejectionReason.CLASS_SELECTOR:
                self.selectors[requirements.class_name, finding.selector] += 1
            case RejectionReason.REQUEST_SELECTOR:
                self.selectors["", finding.selector] += 1
            case RejectionReason.IN_USE | RejectionReason.CAPACITY:
                self.holders.update(finding.holders)
            case _:
                pass

    def merge(self, other: ReasonCounts, *, reachable: bool = True) -> None:
        """Add the counts of another; devices that are not reachable are not available."""
        if reachable:
            self.available += other.available
        elif other.available:
            self.refused[RejectionReason.NODE] += other.available
        self.refused.update(other.refused)
        self.selectors.update(other.selectors)
        self.holders.update(other.holders)
        for count in other.taints.values():
            self._add_taint(count)

    def _add_taint(self, count: TaintCount) -> None:
        origin = count.taint.origin
        if origin.index:
            # The index differs between devices of a slice, which are counted together.
            origin = replace(origin, index=0)
        key = origin, taint_text(count.taint.taint)
        before = self.taints.get(key)
        if before is not None:
            expired = before.expired or count.expired
            count = replace(before, devices=before.devices + count.devices, expired=expired)
        self.taints[key] = count

    def diagnosis(self, claim: str, plan: RequestPlan) -> RequestDiagnosis:
        """Return the counts as a diagnosis, in the order in which they were added."""
        alternative = plan.alternative
        return RequestDiagnosis(
            claim,
            alternative.full_name,
            alternative.count,
            self.available,
            dict(self.refused),
            tuple(self.taints.values()),
            tuple(SelectorCount(*key, count) for key, count in self.selectors.items()),
            tuple(HolderCount(claim, count) for claim, count in self.holders.items()),
            alternative.admin_access,
        )


def count_reasons(
    plan: RequestPlan,
    pools: Sequence[Pool],
    before: AllocationState,
    unfit: AbstractSet[EffectiveDevice],
) -> ReasonCounts:
    """Count the devices of one pool, given in all the ways in which nodes see it."""
    requirements = as_seen(plan.alternative.requirements, pools)
    if len(pools) > 1 or unfit:
        return _count_reasons(_best(plan, pools, before, unfit), requirements)
    pool = pools[0]
    use = before.use.get(pool.id)
    version = use.version if use is not None else 0
    key = ("reason counts", requirements, plan.alternative.admin_access)
    cached = pool.cache.get(key)
    if isinstance(cached, _CachedCounts) and cached.version == version:
        return cached.counts
    counts = _count_reasons(findings(plan, pool, before, unfit), requirements)
    pool.cache[key] = _CachedCounts(version, counts)
    return counts


def _is_expired(taint: SourcedTaint, requirements: DeviceRequirements) -> bool:
    return bool(requirements.expiries) and is_expired(
        taint.taint, requirements.tolerations, requirements.expiries
    )


class _CachedCounts(NamedTuple):
    version: int
    counts: ReasonCounts


def _count_reasons(
    findings: Iterator[DeviceFinding], requirements: DeviceRequirements
) -> ReasonCounts:
    counts = ReasonCounts()
    for finding in findings:
        counts.add(finding, requirements)
    return counts


def _best(
    plan: RequestPlan,
    pools: Sequence[Pool],
    before: AllocationState,
    unfit: AbstractSet[EffectiveDevice],
) -> Iterator[DeviceFinding]:
    best: dict[str, DeviceFinding] = {}
    for pool in pools:
        for finding in findings(plan, pool, before, unfit):
            name = finding.device.published.device.name
            if name not in best or finding.distance() < best[name].distance():
                best[name] = finding
    yield from best.values()


def findings(
    plan: RequestPlan, pool: Pool, before: AllocationState, unfit: AbstractSet[EffectiveDevice]
) -> Iterator[DeviceFinding]:
    """Yield why devices of a pool are rejected.

    Selectors come before use: for a request of a GPU it does not matter that a network card is in
    use. Use comes before taints: without them the device would still be in use.
    """
    judged = candidates(pool, plan.alternative.requirements, before.budget)
    for rejected in judged.rejected:
        holders = _held_by(plan, pool.id, rejected.device, before)
        if rejected.reason is RejectionReason.TAINT and holders is not None:
            yield DeviceFinding(rejected.device, RejectionReason.IN_USE, holders=holders)
        else:
            yield DeviceFinding(
                rejected.device, rejected.reason, rejected.taints, rejected.selector
            )
    for slot in judged.eligible:
        reason = _reason(plan, slot, before, unfit)
        yield DeviceFinding(slot.device, reason, holders=_holders(plan, slot, before, reason))


def _holders(
    plan: RequestPlan, slot: Slot, before: AllocationState, reason: RejectionReason | None
) -> tuple[str, ...]:
    """Return the claims without which a device would be available."""
    if reason is RejectionReason.IN_USE:
        return _held_by(plan, slot.pool, slot.device, before) or ()
    held = before.use.get(slot.pool)
    # It is large enough, or it would not be a candidate: others hold the rest of it.
    return (
        tuple(held.holders.get(slot.name, ()))
        if reason is RejectionReason.CAPACITY and held
        else ()
    )


def _held_by(
    plan: RequestPlan, pool: PoolId, device: EffectiveDevice, before: AllocationState
) -> tuple[str, ...] | None:
    held, name = before.use.get(pool), device.published.device.name
    if plan.alternative.admin_access or held is None or name not in held.devices:
        return None
    return tuple(held.holders.get(name, ()))


def _reason(
    plan: RequestPlan, slot: Slot, before: AllocationState, unfit: AbstractSet[EffectiveDevice]
) -> RejectionReason | None:
    if slot.failure is not None:
        return RejectionReason.SELECTOR_ERROR
    held = before.use.get(slot.pool)
    if before.is_busy(plan, slot, held):
        return RejectionReason.IN_USE
    if (reason := before.lacks(plan, slot, held)) is not None:
        return reason
    return RejectionReason.CONSTRAINT if slot.device in unfit else None

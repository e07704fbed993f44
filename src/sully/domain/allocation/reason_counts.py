"""Counts what speaks against devices, pool by pool, for one alternative of a request.

A pool's counts are remembered with its offer until its use changes, so that diagnosing a pod
costs little more than looking at the pools once. diagnosis.py puts the counts of pools together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from sully.domain.allocation.candidates import Slot, as_seen, candidates
from sully.domain.allocation.node_pools import Pool
from sully.domain.allocation.plans import Plan
from sully.domain.allocation.requests import Shape
from sully.domain.allocation.state import State
from sully.domain.allocation.toleration_expiry import is_expired
from sully.domain.allocation.verdicts import (
    HolderCount,
    Reason,
    RequestDiagnosis,
    SelectorCount,
    TaintCount,
    written,
)
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.taints import Origin, SourcedTaint

_BY_MERIT: Final = (
    Reason.CONSTRAINT,
    Reason.COUNTERS,
    Reason.CAPACITY,
    Reason.TAINT,
    Reason.IN_USE,
    Reason.SELECTOR_ERROR,
    Reason.REQUEST_SELECTOR,
    Reason.CLASS_SELECTOR,
    Reason.NODE,
)
"""What comes closest to a device that fits; it counts where nodes see a device differently."""


class Finding(NamedTuple):
    """What speaks against one device; nothing, if there is no reason."""

    device: EffectiveDevice
    reason: Reason | None
    taints: tuple[SourcedTaint, ...] = ()
    selector: int = 0
    holders: tuple[str, ...] = ()

    def merit(self) -> int:
        """Return how far the device is from one that fits."""
        return 0 if self.reason is None else 1 + _BY_MERIT.index(self.reason)


@dataclass(slots=True)
class ReasonCounts:
    """Counts over any number of devices."""

    available: int = 0
    refused: Counter[Reason] = field(default_factory=Counter)
    taints: dict[tuple[Origin, str], TaintCount] = field(default_factory=dict)
    selectors: Counter[tuple[str, int]] = field(default_factory=Counter)
    holders: Counter[str] = field(default_factory=Counter)

    def add(self, found: Finding, shape: Shape) -> None:
        """Count one device."""
        if found.reason is None:
            self.available += 1
            return
        self.refused[found.reason] += 1
        match found.reason:
            case Reason.TAINT:
                for each in found.taints:
                    self._add_taint(TaintCount(each, 1, expired=_is_expired(each, shape)))
            case Reason.CLASS_SELECTOR:
                self.selectors[shape.class_name, found.selector] += 1
            case Reason.REQUEST_SELECTOR:
                self.selectors["", found.selector] += 1
            case Reason.IN_USE | Reason.CAPACITY:
                self.holders.update(found.holders)
            case _:
                pass

    def merge(self, other: ReasonCounts, *, reachable: bool = True) -> None:
        """Add the counts of another; what nobody can reach is not available."""
        if reachable:
            self.available += other.available
        elif other.available:
            self.refused[Reason.NODE] += other.available
        self.refused.update(other.refused)
        self.selectors.update(other.selectors)
        self.holders.update(other.holders)
        for each in other.taints.values():
            self._add_taint(each)

    def _add_taint(self, each: TaintCount) -> None:
        origin = each.taint.origin
        if origin.index:
            # The place in the slice tells devices apart, which is what must not happen here.
            origin = replace(origin, index=0)
        key = origin, written(each.taint.taint)
        known = self.taints.get(key)
        if known is not None:
            both = known.expired or each.expired
            each = replace(known, devices=known.devices + each.devices, expired=both)
        self.taints[key] = each

    def diagnosis(self, claim: str, plan: Plan) -> RequestDiagnosis:
        """Return the counts as a diagnosis; the order is that of what was met first."""
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
    plan: Plan, offers: Sequence[Pool], before: State, unfit: AbstractSet[EffectiveDevice]
) -> ReasonCounts:
    """Count the devices of one pool, in all the ways in which nodes see it."""
    shape = as_seen(plan.alternative.shape, offers)
    if len(offers) > 1 or unfit:
        return _count_reasons(_best(plan, offers, before, unfit), shape)
    pool = offers[0]
    use = before.use.get(pool.id)
    version = use.version if use is not None else 0
    key = ("tally", shape, plan.alternative.admin_access)
    known = pool.cache.get(key)
    if isinstance(known, _Remembered) and known.version == version:
        return known.counts
    counted = _count_reasons(findings(plan, pool, before, unfit), shape)
    pool.cache[key] = _Remembered(version, counted)
    return counted


def _is_expired(each: SourcedTaint, shape: Shape) -> bool:
    return bool(shape.ends) and is_expired(each.taint, shape.tolerations, shape.ends)


class _Remembered(NamedTuple):
    version: int
    counts: ReasonCounts


def _count_reasons(found: Iterator[Finding], shape: Shape) -> ReasonCounts:
    counted = ReasonCounts()
    for each in found:
        counted.add(each, shape)
    return counted


def _best(
    plan: Plan, offers: Sequence[Pool], before: State, unfit: AbstractSet[EffectiveDevice]
) -> Iterator[Finding]:
    best: dict[str, Finding] = {}
    for pool in offers:
        for found in findings(plan, pool, before, unfit):
            name = found.device.published.device.name
            if name not in best or found.merit() < best[name].merit():
                best[name] = found
    yield from best.values()


def findings(
    plan: Plan, pool: Pool, before: State, unfit: AbstractSet[EffectiveDevice]
) -> Iterator[Finding]:
    """Say about every device of a pool what speaks against it.

    What a device is comes before who uses it: a network card in use is no news to a request for a
    GPU. That it is in use comes before its taints: they are somebody else's trouble.
    """
    judged = candidates(pool, plan.alternative.shape, before.budget)
    for closed in judged.closed:
        holders = _held_by(plan, pool, closed.device, before)
        if closed.reason is Reason.TAINT and holders is not None:
            yield Finding(closed.device, Reason.IN_USE, holders=holders)
        else:
            yield Finding(closed.device, closed.reason, closed.taints, closed.selector)
    for slot in judged.open:
        reason = _against(plan, slot, before, unfit)
        yield Finding(slot.device, reason, holders=_keepers(plan, slot, before, reason))


def _keepers(plan: Plan, slot: Slot, before: State, reason: Reason | None) -> tuple[str, ...]:
    """Return the claims without which nothing would speak against a device."""
    if reason is Reason.IN_USE:
        return _held_by(plan, slot.pool, slot.device, before) or ()
    held = before.use.get(slot.pool.id)
    # It is large enough, or it were no candidate: others have the rest of it.
    return tuple(held.holders.get(slot.name, ())) if reason is Reason.CAPACITY and held else ()


def _held_by(
    plan: Plan, pool: Pool, device: EffectiveDevice, before: State
) -> tuple[str, ...] | None:
    held, name = before.use.get(pool.id), device.published.device.name
    if plan.alternative.admin_access or held is None or name not in held.devices:
        return None
    return tuple(held.holders.get(name, ()))


def _against(
    plan: Plan, slot: Slot, before: State, unfit: AbstractSet[EffectiveDevice]
) -> Reason | None:
    if slot.failure is not None:
        return Reason.SELECTOR_ERROR
    held = before.use.get(slot.pool.id)
    if before.is_busy(plan, slot, held):
        return Reason.IN_USE
    if (reason := before.lacks(plan, slot, held)) is not None:
        return reason
    return Reason.CONSTRAINT if slot.device in unfit else None

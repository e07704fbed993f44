"""Which devices can serve a request at all, whatever else is in use.

Class, selectors, node, size and taints do not depend on other allocations, so a pool is judged
once for equal requirements and the result is cached in `Pool` and `NodePools`. A selector that
fails for a device is an error only if the search reaches that device, as in Kubernetes; so it is in
the list of candidates, at the position of the device. An attempt that exceeds its cost budget keeps
the results of expressions, and the next one starts from those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from sully.api.resource.types import DeviceSelector
from sully.domain.allocation.derived import DerivedError, derive
from sully.domain.allocation.failures import DerivedFailure, SelectorFailure
from sully.domain.allocation.pools.node_pools import NO_COUNTERS, NodePools, Pool, PoolCounters
from sully.domain.allocation.requests import DeviceRequirements
from sully.domain.allocation.toleration_expiry import (
    is_temporarily_tolerated,
    with_expired_toleration,
)
from sully.domain.allocation.usage.capacity import Need, need_of
from sully.domain.allocation.usage.counters import Draw
from sully.domain.allocation.usage.ledger import InUse, PoolUse
from sully.domain.allocation.verdicts import RejectionReason
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import PoolId
from sully.domain.devices.selectors import Content, DeviceSelectorError, mismatch
from sully.domain.devices.taints import (
    EVICTING_EFFECTS,
    SourcedTaint,
    SourcedTaints,
    untolerated,
    untolerated_preferences,
)
from sully.machinery.cel import CostBudget
from sully.machinery.memo import Memo

_EVICTS = "a taint evicts"
"""The key in the cache of a pool for whether any of its devices has such a taint."""
_MOST_REQUIREMENTS = 512
"""Cached per pool and node; a cluster has few, and a flood must not fill the memory."""

_MOST_JUDGED = 4096
"""Taints and contents that are judged once for all devices that share them."""


class Slot(msgspec.Struct, frozen=True, eq=False):
    """A device as a candidate for requests with equal requirements."""

    device: EffectiveDevice
    # Not the pool, which caches this: they would be garbage that only the collector can free.
    pool: PoolId
    name: str
    content: Content
    counters: PoolCounters = NO_COUNTERS
    draws: tuple[Draw, ...] = ()
    is_shareable: bool = False
    need: Need | None = None
    """What a share of it takes."""
    taints: tuple[SourcedTaint, ...] = ()
    """Those that prevent a request with these requirements from getting it."""
    penalty: int = 0
    """How many taints advise against it, or are tolerated only temporarily."""
    failure: SelectorFailure | DerivedFailure | None = None


class RejectedDevice(NamedTuple):
    """A device that does not meet requirements."""

    device: EffectiveDevice
    reason: RejectionReason
    taints: tuple[SourcedTaint, ...] = ()
    selector: int = 0
    """Which of the selectors of the class, or of the request, does not match it."""


class _Judged(NamedTuple):
    """What taints mean for requests with equal requirements."""

    taints: SourcedTaints
    """Kept, so that no others get their identity."""
    blocking: SourcedTaints = ()
    penalty: int = 0


_UNTAINTED = _Judged(())
_judged: Memo[tuple[DeviceRequirements, int], _Judged] = Memo(_MOST_JUDGED)
"""By requirements and the identity of the taints: devices with the same taints share them."""


_matching: Memo[tuple[DeviceRequirements, Content], None] = Memo(_MOST_JUDGED)
"""Contents that match all selectors of requirements: devices that are alike share theirs."""


class Candidates(msgspec.Struct, frozen=True):
    """The devices of one pool, judged by the same requirements."""

    eligible: tuple[Slot, ...]
    """Those that may be allocated, and those for which a selector fails."""
    selected: tuple[Slot, ...]
    """Those that match all selectors, tainted or not: `All` requests these."""
    rejected: tuple[RejectedDevice, ...]
    """Those that are rejected, and why."""


class PoolCandidates(msgspec.Struct, frozen=True, eq=False):
    """The candidates of one pool."""

    pool: PoolId
    slots: tuple[Slot, ...]
    names: frozenset[str]

    def is_full(self, held: PoolUse | None) -> bool:
        """Report whether all of these devices are allocated."""
        return held is not None and held.devices.keys() >= self.names


@dataclass(slots=True, eq=False)
class NodeCandidates:
    """All candidates of a node for equal requirements, pool by pool, in the order of the search.

    Pools without candidates are omitted, and pools without a free device are skipped until one is
    released.
    """

    groups: tuple[PoolCandidates, ...]
    has_failures: bool = False
    is_plain: bool = False
    """Its devices are not shared and consume no counters: any that is free can be allocated."""
    _members: frozenset[EffectiveDevice] | None = field(default=None, repr=False)
    _full: tuple[InUse | None, int, int] = field(default=(None, 0, 0), repr=False)
    """How many of the first groups are full: by ledger, and its number of releases."""

    def members(self) -> frozenset[EffectiveDevice]:
        """Return its devices; computed when backtracking needs it first."""
        if self._members is None:
            self._members = frozenset(slot.device for group in self.groups for slot in group.slots)
        return self._members

    def start(self, use: InUse) -> int:
        """Return the first group that is not full."""
        known, releases, full = self._full
        at = full if known is use and releases == use.releases else 0
        while at < len(self.groups) and self.groups[at].is_full(use.get(self.groups[at].pool)):
            at += 1
        self._full = use, use.releases, at
        return at

    def free(self, use: InUse) -> int:
        """Count the devices that are not allocated."""
        free = 0
        for group in self.groups[self.start(use) :]:
            held = use.get(group.pool)
            free += len(group.names) if held is None else len(group.names - held.devices.keys())
        return free

    def first(self, count: int, use: InUse) -> list[Slot] | None:
        """Return free devices, fewer if there are not enough; None if a search is needed."""
        slots: list[Slot] = []
        for group in self.groups[self.start(use) :]:
            held = use.get(group.pool)
            if held is not None and held.shares:
                return None
            for slot in group.slots:
                if held is None or slot.name not in held.devices:
                    slots.append(slot)
                    if len(slots) == count:
                        return slots
        return slots


def candidates(pool: Pool, requirements: DeviceRequirements, budget: CostBudget) -> Candidates:
    """Return the devices of a pool as candidates for requirements, from the cache if possible."""
    requirements = as_seen(requirements, (pool,))
    cached = pool.cache.get(requirements)
    if not isinstance(cached, Candidates):
        cached = _judge_all(pool, requirements, budget)
        _keep(pool.cache, requirements, cached)
    return cached


def node_candidates(
    node_pools: NodePools, requirements: DeviceRequirements, budget: CostBudget
) -> NodeCandidates:
    """Return a node's candidates for requirements."""
    known = node_pools.cache.get(requirements)
    if isinstance(known, NodeCandidates):
        return known
    requested, requirements = requirements, as_seen(requirements, node_pools.pools)
    cached = node_pools.cache.get(requirements)
    if not isinstance(cached, NodeCandidates):
        groups = tuple(_groups(node_pools.pools, requirements, budget))
        slots = [slot for group in groups for slot in group.slots]
        cached = NodeCandidates(
            groups,
            has_failures=any(slot.failure for slot in slots),
            is_plain=not any(slot.failure or slot.is_shareable or slot.draws for slot in slots),
        )
        _keep(node_pools.cache, requirements, cached)
    if requested is not requirements:
        _keep(node_pools.cache, requested, cached)
    return cached


def as_seen(requirements: DeviceRequirements, pools: Iterable[Pool]) -> DeviceRequirements:
    """Return the requirements for these pools: expiries matter only where a taint evicts."""
    if requirements.lasting is None or any(map(_evicts, pools)):
        return requirements
    return requirements.lasting


def _evicts(pool: Pool) -> bool:
    evicts = pool.cache.get(_EVICTS)
    if not isinstance(evicts, bool):
        evicts = pool.cache[_EVICTS] = any(
            taint.taint.effect in EVICTING_EFFECTS
            for device in pool.devices
            for taint in device.taints
        )
    return evicts


def _groups(
    pools: Iterable[Pool], requirements: DeviceRequirements, budget: CostBudget
) -> Iterator[PoolCandidates]:
    """Yield the candidates pool by pool; those that taints advise against follow all others."""
    judged = [
        (pool, candidates(pool, requirements, budget).eligible) for pool in pools if pool.is_usable
    ]
    levels = sorted({slot.penalty for _, slots in judged for slot in slots})
    for level in levels:
        for pool, slots in judged:
            chosen = slots
            if len(levels) > 1:
                chosen = tuple(slot for slot in slots if slot.penalty == level)
            if chosen:
                yield PoolCandidates(pool.id, chosen, frozenset(slot.name for slot in chosen))


def _keep(cache: dict[object, object], requirements: DeviceRequirements, value: object) -> None:
    if len(cache) >= _MOST_REQUIREMENTS:
        cache.clear()
    cache[requirements] = value


def _judge_all(pool: Pool, requirements: DeviceRequirements, budget: CostBudget) -> Candidates:
    eligible: list[Slot] = []
    selected: list[Slot] = []
    rejected: list[RejectedDevice] = []
    for index, device in enumerate(pool.devices):
        judged = _judge(pool, index, device, requirements, budget)
        if isinstance(judged, RejectedDevice):
            rejected.append(judged)
            continue
        selected.append(judged)
        if judged.taints:
            rejected.append(RejectedDevice(device, RejectionReason.TAINT, judged.taints))
        else:
            eligible.append(judged)
    return Candidates(tuple(eligible), tuple(selected), tuple(rejected))


def _judge(
    pool: Pool,
    index: int,
    device: EffectiveDevice,
    requirements: DeviceRequirements,
    budget: CostBudget,
) -> Slot | RejectedDevice:
    content, name = device.content, device.published.device.name
    if (requirements, content) not in _matching:
        rejection = _rejection(pool.id, device, requirements, budget)
        if rejection is not None:
            return rejection
        _matching.keep((requirements, content), None)
    if index in pool.elsewhere:
        return RejectedDevice(device, RejectionReason.NODE)
    shareable = bool(content.allow_multiple_allocations)
    need = need_of(requirements.capacity, content) if shareable or requirements.capacity else None
    if need is None and (shareable or requirements.capacity):
        return RejectedDevice(device, RejectionReason.CAPACITY)
    try:
        content = derive(requirements.derived, content, budget)
    except DerivedError as error:
        failure = DerivedFailure(
            error.name, device.id, error.phase, error.error, error.reads_missing_key
        )
        return Slot(device, pool.id, name, content, failure=failure)
    judged = _judge_taints(device.taints, requirements)
    return Slot(
        device,
        pool.id,
        name,
        content,
        pool.counters,
        draws=pool.counters.draws.get(name, ()),
        is_shareable=shareable,
        need=need if shareable else None,
        taints=judged.blocking,
        penalty=judged.penalty,
    )


def _rejection(
    pool: PoolId, device: EffectiveDevice, requirements: DeviceRequirements, budget: CostBudget
) -> Slot | RejectedDevice | None:
    """Return how selectors reject a device, or fail for it; None if all match."""
    for reason, owner, selectors in (
        (RejectionReason.CLASS_SELECTOR, requirements.class_name, requirements.class_selectors),
        (RejectionReason.REQUEST_SELECTOR, None, requirements.selectors),
    ):
        if not selectors:
            continue
        rejected_by = _rejecting_selector(owner, selectors, device, budget)
        if isinstance(rejected_by, SelectorFailure):
            name = device.published.device.name
            return Slot(device, pool, name, device.content, failure=rejected_by)
        if rejected_by is not None:
            return RejectedDevice(device, reason, selector=rejected_by)
    return None


def _judge_taints(taints: SourcedTaints, requirements: DeviceRequirements) -> _Judged:
    """Decide what taints mean for requirements, once for all devices that share them."""
    if not taints:
        return _UNTAINTED
    key = requirements, id(taints)
    known = _judged.get(key)
    if known is None:
        blocking = _blocking(taints, requirements)
        # Of devices that are rejected no order is needed.
        penalty = _penalty(taints, requirements) if not blocking else 0
        known = _judged.keep(key, _Judged(taints, blocking, penalty))
    return known


def _blocking(taints: SourcedTaints, requirements: DeviceRequirements) -> SourcedTaints:
    blocking = untolerated(taints, requirements.tolerations, requirements.blocking)
    if requirements.expiries:
        blocking += with_expired_toleration(
            taints, requirements.tolerations, requirements.expiries, requirements.blocking
        )
    if requirements.ignored_origins:
        return tuple(
            taint for taint in blocking if taint.origin.kind not in requirements.ignored_origins
        )
    return blocking


def _penalty(taints: SourcedTaints, requirements: DeviceRequirements) -> int:
    penalty = 0
    if requirements.honors_preference:
        penalty = untolerated_preferences(taints, requirements.tolerations)
    if requirements.expiries:
        penalty += sum(
            is_temporarily_tolerated(taint.taint, requirements.tolerations, requirements.expiries)
            for taint in taints
        )
    return penalty


def _rejecting_selector(
    owner: str | None,
    selectors: Sequence[DeviceSelector],
    device: EffectiveDevice,
    budget: CostBudget,
) -> int | SelectorFailure | None:
    """Return which selector does not match a device, or fails; None if all match."""
    try:
        return mismatch(selectors, device.content, budget)
    except DeviceSelectorError as error:
        missing = error.missing_key is not None
        return SelectorFailure(owner, error.index, device.id, error.phase, error.error, missing)

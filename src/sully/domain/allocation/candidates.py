"""Which devices can serve a request at all, whatever else is in use.

Class, selectors, node, size and taints do not depend on other allocations, so a pool is judged
once per shape of request and the result is cached in `Pool` and `NodePools`. A selector that fails
for a device is an error only if the search reaches that device, as in Kubernetes; so it is in the
list of candidates, at the position of the device. An attempt that exceeds its cost budget keeps
the results of expressions, and the next one starts from those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from sully.api.resource.types import DeviceSelector
from sully.domain.allocation.capacity import Need, need_of
from sully.domain.allocation.counters import Draw
from sully.domain.allocation.derived import DerivedError, derive
from sully.domain.allocation.ledger import InUse, PoolUse
from sully.domain.allocation.node_pools import NodePools, Pool
from sully.domain.allocation.requests import Shape
from sully.domain.allocation.toleration_expiry import expired, is_temporary
from sully.domain.allocation.verdicts import FailureCause, Reason
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import PoolId
from sully.domain.devices.selectors import Content, SelectorError, mismatch
from sully.domain.devices.taints import (
    EVICTING_EFFECTS,
    SourcedTaint,
    untolerated,
    untolerated_preferences,
)
from sully.machinery.cel import CostBudget

_MISSING_KEY = "no such key:"
_ADVICE = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check"
    " with has() for optional fields"
)
_LEAVING = "taints make pods leave"
"""Where a pool's memory says whether any of its devices has such a taint."""
_MOST_SHAPES = 512
"""Shapes cached per pool and node; a cluster has few, and a flood must not fill the memory."""

_PHASES = {"compile": FailureCause.CEL_COMPILE, "runtime": FailureCause.CEL_RUNTIME}


@dataclass(frozen=True, slots=True)
class DerivedFailure:
    """An attribute that cannot be worked out for a device."""

    error: DerivedError
    device: EffectiveDevice

    def text(self, claim: str) -> str:
        """Say what is wrong."""
        error = self.error
        place = f"claim {claim}: derived attribute {error.name}"
        if error.phase == "compile":
            return f"{place}: CEL compile error: {error.error}"
        advice = _ADVICE if _MISSING_KEY in error.error else ""
        return f"{place} on device {self.device.id}: CEL runtime error: {error.error}{advice}"

    @property
    def cause(self) -> FailureCause:
        """Return the phase in which the expression fails."""
        return _PHASES[self.error.phase]


@dataclass(frozen=True, slots=True)
class SelectorFailure:
    """A selector that cannot tell about a device."""

    device_class: str | None
    """The class it stands in; None for the claim's own."""
    error: SelectorError
    device: EffectiveDevice

    def text(self, claim: str) -> str:
        """Say what is wrong, as Kubernetes does."""
        place = f"claim {claim}" if self.device_class is None else f"class {self.device_class}"
        error = self.error
        if error.phase == "compile":
            return f"{place}: selector #{error.index}: CEL compile error: {error.error}"
        advice = _ADVICE if _MISSING_KEY in error.error else ""
        where = f"selector #{error.index} on device {self.device.id}"
        return f"{place}: {where}: CEL runtime error: {error.error}{advice}"

    @property
    def cause(self) -> FailureCause:
        """Return the phase in which the expression fails."""
        return _PHASES[self.error.phase]


class Slot(msgspec.Struct, frozen=True, eq=False):
    """A device as a candidate for requests of one shape."""

    device: EffectiveDevice
    pool: Pool
    name: str
    content: Content
    draws: tuple[Draw, ...] = ()
    is_shareable: bool = False
    need: Need | None = None
    """What a share of it takes."""
    taints: tuple[SourcedTaint, ...] = ()
    """Those that keep the shape off it."""
    dislikes: int = 0
    """How many taints advise against it, or are tolerated only for a time."""
    failure: SelectorFailure | DerivedFailure | None = None


class Closed(NamedTuple):
    """A device that a shape may not have."""

    device: EffectiveDevice
    reason: Reason
    taints: tuple[SourcedTaint, ...] = ()
    selector: int = 0
    """Which of the selectors of the class, or of the request, does not choose it."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The devices of one pool, judged for one shape."""

    open: tuple[Slot, ...]
    """Those it may have, and those a selector cannot tell about."""
    selected: tuple[Slot, ...]
    """Those that all its selectors choose, tainted or not: they are what `All` means."""
    closed: tuple[Closed, ...]
    """Those it may not have, and why."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The candidates of one pool."""

    pool: PoolId
    slots: tuple[Slot, ...]
    names: frozenset[str]

    def is_full(self, held: PoolUse | None) -> bool:
        """Report whether others have every one of these devices for themselves."""
        return held is not None and held.devices.keys() >= self.names


@dataclass(slots=True, eq=False)
class Lane:
    """All candidates of a node for one shape, pool by pool, in the order in which they are tried.

    Pools without candidates are left out, and pools that were found full are not looked at again
    until something becomes free: neither costs more than a first look.
    """

    groups: tuple[Group, ...]
    has_failures: bool = False
    is_plain: bool = False
    """Its devices are for one user each and draw on nothing: whichever nobody has can be taken."""
    _members: frozenset[EffectiveDevice] | None = field(default=None, repr=False)
    _full: tuple[InUse | None, int, int] = field(default=(None, 0, 0), repr=False)
    """How many groups at the beginning are full, to which ledger, after how many releases."""

    def members(self) -> frozenset[EffectiveDevice]:
        """Return the devices in it; the first question costs, and only backtracking asks."""
        if self._members is None:
            self._members = frozenset(slot.device for each in self.groups for slot in each.slots)
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
        """Count the devices that nobody has for himself."""
        found = 0
        for each in self.groups[self.start(use) :]:
            held = use.get(each.pool)
            found += len(each.names) if held is None else len(each.names - held.devices.keys())
        return found

    def first(self, count: int, use: InUse) -> list[Slot] | None:
        """Return so many devices that nobody has, or fewer; None if only a search can tell."""
        found: list[Slot] = []
        for each in self.groups[self.start(use) :]:
            held = use.get(each.pool)
            if held is not None and held.shares:
                return None
            for slot in each.slots:
                if held is None or slot.name not in held.devices:
                    found.append(slot)
                    if len(found) == count:
                        return found
        return found


def candidates(pool: Pool, shape: Shape, budget: CostBudget) -> Candidates:
    """Judge the devices of a pool for a shape, or remember how they were judged."""
    shape = as_seen(shape, (pool,))
    found = pool.cache.get(shape)
    if not isinstance(found, Candidates):
        found = _judge_all(pool, shape, budget)
        _remember(pool.cache, shape, found)
    return found


def lane(node_pools: NodePools, shape: Shape, budget: CostBudget) -> Lane:
    """Return a node's candidates for a shape."""
    shape = as_seen(shape, node_pools.pools)
    found = node_pools.cache.get(shape)
    if not isinstance(found, Lane):
        groups = tuple(_groups(node_pools.pools, shape, budget))
        slots = [slot for each in groups for slot in each.slots]
        found = Lane(
            groups,
            has_failures=any(slot.failure for slot in slots),
            is_plain=not any(slot.failure or slot.is_shareable or slot.draws for slot in slots),
        )
        _remember(node_pools.cache, shape, found)
    return found


def as_seen(shape: Shape, pools: Iterable[Pool]) -> Shape:
    """Return what a shape is to these pools: ends matter only where taints make pods leave."""
    if shape.lasting is None or any(map(_makes_leave, pools)):
        return shape
    return shape.lasting


def _makes_leave(pool: Pool) -> bool:
    found = pool.cache.get(_LEAVING)
    if not isinstance(found, bool):
        found = pool.cache[_LEAVING] = any(
            taint.taint.effect in EVICTING_EFFECTS
            for device in pool.devices
            for taint in device.taints
        )
    return found


def _groups(pools: Iterable[Pool], shape: Shape, budget: CostBudget) -> Iterator[Group]:
    """Yield the candidates pool by pool; those that taints advise against follow all others."""
    judged = [(pool, candidates(pool, shape, budget).open) for pool in pools if pool.is_usable]
    levels = sorted({slot.dislikes for _, slots in judged for slot in slots})
    for level in levels:
        for pool, slots in judged:
            chosen = slots
            if len(levels) > 1:
                chosen = tuple(slot for slot in slots if slot.dislikes == level)
            if chosen:
                yield Group(pool.id, chosen, frozenset(slot.name for slot in chosen))


def _remember(memory: dict[object, object], shape: Shape, found: object) -> None:
    if len(memory) >= _MOST_SHAPES:
        memory.clear()
    memory[shape] = found


def _judge_all(pool: Pool, shape: Shape, budget: CostBudget) -> Candidates:
    open_: list[Slot] = []
    selected: list[Slot] = []
    closed: list[Closed] = []
    for place, device in enumerate(pool.devices):
        found = _judge(pool, place, device, shape, budget)
        if isinstance(found, Closed):
            closed.append(found)
            continue
        selected.append(found)
        if found.taints:
            closed.append(Closed(device, Reason.TAINT, found.taints))
        else:
            open_.append(found)
    return Candidates(tuple(open_), tuple(selected), tuple(closed))


def _judge(
    pool: Pool, place: int, device: EffectiveDevice, shape: Shape, budget: CostBudget
) -> Slot | Closed:
    content, name = device.content, device.published.device.name
    for reason, owner, selectors in (
        (Reason.CLASS_SELECTOR, shape.class_name, shape.class_selectors),
        (Reason.REQUEST_SELECTOR, None, shape.selectors),
    ):
        against = _against(owner, selectors, device, budget)
        if isinstance(against, SelectorFailure):
            return Slot(device, pool, name, content, failure=against)
        if against is not None:
            return Closed(device, reason, selector=against)
    if place in pool.elsewhere:
        return Closed(device, Reason.NODE)
    shareable = bool(content.allow_multiple_allocations)
    need = need_of(shape.capacity, content) if shareable or shape.capacity else None
    if need is None and (shareable or shape.capacity):
        return Closed(device, Reason.CAPACITY)
    try:
        content = derive(shape.derived, content, budget)
    except DerivedError as error:
        return Slot(device, pool, name, content, failure=DerivedFailure(error, device))
    taints = _in_the_way(device, shape)
    return Slot(
        device,
        pool,
        name,
        content,
        draws=pool.draws.get(name, ()),
        is_shareable=shareable,
        need=need if shareable else None,
        taints=taints,
        # Of what it may not have, nobody asks how much it is disliked.
        dislikes=_dislikes(device, shape) if not taints else 0,
    )


def _in_the_way(device: EffectiveDevice, shape: Shape) -> tuple[SourcedTaint, ...]:
    if not device.taints:
        return ()
    found = untolerated(device.taints, shape.tolerations, shape.blocking)
    if shape.ends and shape.blocking:
        found += expired(device.taints, shape.tolerations, shape.ends)
    return found


def _dislikes(device: EffectiveDevice, shape: Shape) -> int:
    if not device.taints:
        return 0
    found = (
        untolerated_preferences(device.taints, shape.tolerations) if shape.honors_preference else 0
    )
    if shape.ends:
        found += sum(
            is_temporary(each.taint, shape.tolerations, shape.ends) for each in device.taints
        )
    return found


def _against(
    owner: str | None,
    selectors: Sequence[DeviceSelector],
    device: EffectiveDevice,
    budget: CostBudget,
) -> int | SelectorFailure | None:
    """Return which selector does not choose a device, or cannot tell; None if all choose it."""
    try:
        return mismatch(selectors, device.content, budget)
    except SelectorError as error:
        return SelectorFailure(owner, error, device)

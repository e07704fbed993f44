"""Searches devices depth first; the first complete solution wins, as in Kubernetes.

Claims in the order of the pod, requests and alternatives as written, devices in the order of the
pools; within a request in increasing order, so that sets are tried and not their permutations.
The result is that of Kubernetes in fewer steps: of equivalent devices only the first is tried again
after a failure, and a request for which too few devices fit ends the search immediately.

A long search is charged to the cost budget of the attempt (`machinery/cel/costs/budget.py`). Where
that has slices, the search stops between two choices, and continues when the attempt does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from sully.domain.allocation.candidates import Slot
from sully.domain.allocation.constraints import attribute_values
from sully.domain.allocation.failures import (
    AllocationError,
    AllocationFailure,
    ConstraintUnmet,
    ExpressionFailed,
    TimedOut,
)
from sully.domain.allocation.plans import MOST_RESULTS, Plans, RequestPlan
from sully.domain.allocation.plans import plan as plan_on
from sully.domain.allocation.pools.node_pools import NodePools
from sully.domain.allocation.requests import Demand
from sully.domain.allocation.results import Chosen
from sully.domain.allocation.state import AllocationState
from sully.domain.allocation.usage.ledger import InUse
from sully.domain.allocation.verdicts import RejectionReason
from sully.domain.devices.device import EffectiveDevice
from sully.machinery.cel import UnfinishedError
from sully.machinery.compat import Compat

MOST_STEPS: Final = 200_000
"""Devices tried before an attempt fails, after about a second; Kubernetes takes ten."""
_STEP_UNITS: Final = 30
"""Cost units of trying a device."""
_CONSTRAINT_UNITS: Final = 12
"""Cost units of comparing it with a constraint."""
_DEVICES_PER_UNIT: Final = 2
"""Devices that are passed over for one cost unit."""
_FREE_UNITS: Final = 640
"""A search that is shorter costs nothing: it takes about as long as preparing it."""


Level: TypeAlias = "Iterator[Level | None]"
"""The choices at one point of the search: each leads to the next point, or to the end (None).

A choice is made before it is handed out, and taken back when the next one is asked for.
"""
_NO_CHOICE: Final[Level] = iter(())
"""Yielded where nothing was chosen, so that the search can stop there."""


class UnsolvableError(Exception):
    """Too few devices fit a request, whatever is chosen for the others."""


class SearchResult(NamedTuple):
    """The result of a search."""

    chosen: Sequence[Chosen] | None
    """The devices of each claim; None without a solution."""
    unfit: Mapping[RequestPlan, set[EffectiveDevice]]
    """Devices that a constraint rejected, for the diagnosis."""
    failure: AllocationFailure | None = None


class _CachedOutcome(NamedTuple):
    basis: object
    work: Search | SearchResult


def search(
    demand: Demand,
    node_pools: NodePools,
    use: InUse,
    *,
    compat: Compat = Compat.SULLY,
    most_steps: int = MOST_STEPS,
) -> SearchResult:
    """Look for devices on a node; continue where the same attempt was interrupted.

    Raises AllocationError if a request can never be served, UnfinishedError at the end of a slice,
    CostBudgetExceededError.
    """
    memory, key = demand.budget.memory, (node_pools, compat, most_steps)
    known = memory.get(key) if memory else None
    if isinstance(known, _CachedOutcome) and known.basis == _basis(demand, node_pools, use):
        work = known.work
    else:
        work = Search(
            demand,
            plan_on(demand, node_pools, use),
            use,
            node=node_pools.node.name,
            compat=compat,
            most_steps=most_steps,
        )
    if isinstance(work, SearchResult):
        return work
    try:
        outcome = work.run()
    except UnfinishedError:
        memory[key] = _CachedOutcome(_basis(demand, node_pools, use), work)
        raise
    if work.is_long and demand.budget.is_sliced:
        memory[key] = _CachedOutcome(_basis(demand, node_pools, use), outcome)
    return outcome


def _basis(demand: Demand, node_pools: NodePools, use: InUse) -> object:
    """Return what a search on a node depends on: what is requested, and what is in use."""
    requested = [
        (claim.claim, alternative.requirements, alternative.device_class)
        for claim in demand.claims
        for request in claim.requests
        for alternative in request.alternatives
    ]
    held = [use.get(pool.id) for pool in node_pools.pools]
    return use, requested, [pool.version if pool is not None else 0 for pool in held]


class Search:
    """One attempt on one node."""

    def __init__(
        self,
        demand: Demand,
        plans: Plans,
        use: InUse,
        *,
        node: str,
        compat: Compat,
        most_steps: int,
    ) -> None:
        self.is_long = False
        self._state = AllocationState(demand, use, compat)
        self._unfit: dict[RequestPlan, set[EffectiveDevice]] = {}
        self._demand = demand
        self._plans = plans
        self._use = use
        self._node = node
        self._steps = most_steps
        constraints = max((len(claim.constraints) for claim in demand.claims), default=0)
        self._step_units = _STEP_UNITS + _CONSTRAINT_UNITS * constraints
        self._charged = most_steps
        """How many steps were left when the budget was charged last."""
        self._passed = 0
        """Devices that were evaluated since then."""
        self._free: dict[RequestPlan, int] = {}
        self._equivalences: dict[EffectiveDevice, object] = {}
        self._stack: list[Level | None] = [self._next_request(0, 0)]
        """Our own: a pod may ask for more devices than Python nests calls."""

    @cached_property
    def _may_fail(self) -> bool:
        return any(plan.candidates.has_failures for plan in _flat(self._plans))

    @cached_property
    def _derives(self) -> bool:
        return any(plan.alternative.requirements.derived for plan in _flat(self._plans))

    def run(self) -> SearchResult:
        """Look for a solution; what was interrupted by UnfinishedError continues."""
        choices = max(_FREE_UNITS // self._step_units, 1)
        failure = None
        try:
            while self._advance(choices):
                self._charge()
        except UnsolvableError:
            self._stack.clear()
        except AllocationError as error:
            self._stack.clear()
            failure = error.failure
        chosen = self._state.chosen if self._stack else None
        # The generators refer to the search.
        self._stack.clear()
        return SearchResult(chosen, self._unfit, failure)

    def _advance(self, choices: int) -> bool:
        """Make so many choices; report whether there are more."""
        stack = self._stack
        for _ in range(choices):
            if not stack:
                return False
            level = stack[-1]
            if level is None:
                return False
            try:
                stack.append(next(level))
            except StopIteration:
                stack.pop()
        return True

    def _charge(self) -> None:
        units = (self._charged - self._steps) * self._step_units
        units += self._passed // _DEVICES_PER_UNIT
        self.is_long, self._charged, self._passed = True, self._steps, 0
        self._demand.budget.spend(units)

    def _next_request(self, claim: int, request: int) -> Level | None:
        while claim < len(self._plans) and request == len(self._plans[claim]):
            claim, request = claim + 1, 0
        return self._alternatives(claim, request) if claim < len(self._plans) else None

    def _alternatives(self, claim: int, request: int) -> Level:
        """Try the alternatives of a request that fit into an allocation."""
        requests = self._plans[claim]
        room = MOST_RESULTS - len(self._state.chosen[claim])
        room -= sum(
            min(plan.needed for plan in plans) for plans in requests[request + 1 :] if plans
        )
        for plan in requests[request]:
            if not 0 < plan.needed <= room:
                continue
            if plan.everything is not None:
                yield self._pick_all(plan, plan.everything)
            else:
                yield self._pick(plan, 0, self._start(plan), 0)

    def _pick_all(self, plan: RequestPlan, slots: tuple[Slot, ...]) -> Level:
        """Take all of these devices, or none."""
        taken: list[Slot] = []
        for slot in slots:
            if not self._take_one_of_all(plan, slot):
                break
            taken.append(slot)
        else:
            yield self._next_request(plan.claim, plan.request + 1)
        for slot in reversed(taken):
            self._state.give(plan, slot, self._use.get(slot.pool))
        self._stop_if_unsolvable(plan)

    def _take_one_of_all(self, plan: RequestPlan, slot: Slot) -> bool:
        held = self._use.get(slot.pool)
        state = self._state
        if slot.taints or state.is_busy(plan, slot, held) or state.lacks(plan, slot, held):
            return False
        if self._take(plan, slot) is None:
            return True
        claim, request = self._demand.claims[plan.claim].key, plan.alternative.name
        raise AllocationError(ConstraintUnmet(claim, request, slot.device.id))

    def _pick(self, plan: RequestPlan, picked: int, group: int, place: int) -> Level:
        """Choose the next device of a request, from this place on."""
        tried: set[object] = set()
        state, groups = self._state, plan.candidates.groups
        for at in range(group, len(groups)):
            slots = groups[at].slots
            held = self._use.get(groups[at].pool)
            self._passed += len(slots)
            for index in range(place if at == group else 0, len(slots)):
                slot = slots[index]
                if state.is_busy(plan, slot, held):
                    continue
                if slot.failure is not None:
                    claim = self._demand.claims[plan.claim].key
                    raise AllocationError(ExpressionFailed(claim, slot.failure))
                if tried and self._equivalence(slot) in tried:
                    continue
                if self._take(plan, slot) is not None:
                    yield _NO_CHOICE
                    continue
                if picked + 1 < plan.needed:
                    yield self._pick(plan, picked + 1, at, index + 1)
                else:
                    yield self._next_request(plan.claim, plan.request + 1)
                state.give(plan, slot, held)
                tried.add(self._equivalence(slot))
        self._stop_if_unsolvable(plan)

    def _start(self, plan: RequestPlan) -> int:
        # Admin access is possible to devices in use.
        return 0 if plan.alternative.admin_access else plan.candidates.start(self._use)

    def _take(self, plan: RequestPlan, slot: Slot) -> RejectionReason | None:
        self._steps -= 1
        if self._steps < 0:
            raise AllocationError(TimedOut(self._node))
        reason = self._state.take(plan, slot, self._use.get(slot.pool))
        if reason is RejectionReason.CONSTRAINT:
            self._unfit.setdefault(plan, set()).add(slot.device)
        return reason

    def _stop_if_unsolvable(self, plan: RequestPlan) -> None:
        # A selector that fails for a device must be reported, so all devices are tried then.
        if not plan.is_only or self._may_fail:
            return
        if plan not in self._free:
            self._free[plan] = self._count_free(plan)
        if self._free[plan] < plan.needed:
            raise UnsolvableError

    def _count_free(self, plan: RequestPlan) -> int:
        if plan.everything is not None:
            initial = AllocationState(self._demand, self._use)
            return sum(
                not slot.taints and not initial.is_busy(plan, slot, self._use.get(slot.pool))
                for slot in plan.everything
            )
        if plan.alternative.admin_access:
            return sum(len(group.names) for group in plan.candidates.groups)
        return plan.candidates.free(self._use)

    def _equivalence(self, slot: Slot) -> object:
        """Return a key that is equal for devices that are equivalent in this attempt."""
        device = slot.device
        # Derived attributes differ between requests, so then no devices are equivalent.
        if slot.is_shareable or self._derives or self._state.is_held(device):
            return device
        key = self._equivalences.get(device)
        if key is None:
            held = self._use.get(slot.pool)
            key = self._equivalences[device] = (
                held is not None and slot.name in held.devices,
                (slot.pool, slot.draws) if slot.draws else None,
                tuple(self._roles(device)),
                tuple(
                    attribute_values(slot.content, constraint.attribute)
                    for constraints in self._state.constraints
                    for constraint in constraints
                ),
            )
        return key

    def _roles(self, device: EffectiveDevice) -> Iterator[bool]:
        """Yield for each alternative of the pod whether a device is a candidate."""
        for plan in _flat(self._plans):
            if plan.everything is None:
                yield device in plan.candidates.members()
            else:
                yield any(slot.device is device for slot in plan.everything)


def _flat(plans: Plans) -> Iterable[RequestPlan]:
    return (plan for requests in plans for alternatives in requests for plan in alternatives)

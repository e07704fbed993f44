"""The plan of an alternative on one node: how many devices, and the candidates.

Plans are made before the search, because some requests fail whatever it would find: `All` while a
pool is incomplete, or more devices than an allocation can hold.
"""

from __future__ import annotations

from typing import Final

import msgspec

from sully.domain.allocation.candidates import NodeCandidates, Slot, candidates, node_candidates
from sully.domain.allocation.failures import (
    AllocationError,
    ExpressionFailed,
    PoolNotUsable,
    TooManyDevices,
)
from sully.domain.allocation.pools.node_pools import NodePools
from sully.domain.allocation.requests import Alternative, Demand
from sully.domain.allocation.usage.ledger import InUse

MOST_RESULTS: Final = 32
"""Devices that one allocation can hold."""


class RequestPlan(msgspec.Struct, frozen=True, eq=False):
    """One alternative on one node."""

    claim: int
    request: int
    choice: int
    alternative: Alternative
    needed: int
    candidates: NodeCandidates
    everything: tuple[Slot, ...] | None = None
    """The devices it must get, if it requests all."""
    is_only: bool = True
    """The request has no other alternative."""


Plans = tuple[tuple[tuple[RequestPlan, ...], ...], ...]
"""By claim, request and alternative."""

NO_CANDIDATES = NodeCandidates(())


def quick_result(
    demand: Demand, node_pools: NodePools, use: InUse
) -> list[tuple[RequestPlan, Slot]] | None:
    """Return the result of a search for the only request of a pod; empty if too few are left.

    None if a search is needed. Most pods have one request, and most nodes that are tried are full.
    """
    alternative = _only_alternative(demand)
    if alternative is None:
        return None
    count = 0 if alternative.admin_access else alternative.count or 0
    if not 0 < count <= MOST_RESULTS:
        return None
    devices = node_candidates(node_pools, alternative.requirements, demand.budget)
    if devices.is_plain and not demand.claims[0].constraints:
        slots = devices.first(count, use)
        if slots is not None:
            plan = RequestPlan(0, 0, 0, alternative, count, devices)
            return [(plan, slot) for slot in slots] if len(slots) == count else []
    # A selector that fails for a device must be reported.
    return [] if not devices.has_failures and devices.free(use) < count else None


def _only_alternative(demand: Demand) -> Alternative | None:
    """Return the alternative of a pod if it has only one request with only one."""
    if len(demand.claims) != 1 or len(demand.claims[0].requests) != 1:
        return None
    alternatives = demand.claims[0].requests[0].alternatives
    return alternatives[0] if len(alternatives) == 1 else None


def plan(demand: Demand, node_pools: NodePools, use: InUse) -> Plans:
    """Plan all claims of a pod on a node; raise AllocationError if one can never be served."""
    return tuple(_plan_claim(demand, index, node_pools, use) for index in range(len(demand.claims)))


def _plan_claim(
    demand: Demand, index: int, node_pools: NodePools, use: InUse
) -> tuple[tuple[RequestPlan, ...], ...]:
    claim = demand.claims[index]
    planned = tuple(
        tuple(
            _plan(demand, (index, place, choice), alternative, node_pools, use)
            for choice, alternative in enumerate(request.alternatives)
        )
        for place, request in enumerate(claim.requests)
    )
    least = sum(min(plan.needed for plan in plans) for plans in planned if plans)
    if least > MOST_RESULTS:
        raise AllocationError(TooManyDevices(claim.key, least, MOST_RESULTS))
    return planned


def _plan(
    demand: Demand,
    place: tuple[int, int, int],
    alternative: Alternative,
    node_pools: NodePools,
    use: InUse,
) -> RequestPlan:
    claim = demand.claims[place[0]]
    only = not alternative.is_choice or len(claim.requests[place[1]].alternatives) == 1
    if alternative.count is not None:
        devices = node_candidates(node_pools, alternative.requirements, demand.budget)
        return RequestPlan(*place, alternative, alternative.count, devices, is_only=only)
    everything = _everything(demand, claim.key, alternative, node_pools, use)
    return RequestPlan(
        *place, alternative, len(everything), NO_CANDIDATES, everything, is_only=only
    )


def _everything(
    demand: Demand, claim: str, alternative: Alternative, node_pools: NodePools, use: InUse
) -> tuple[Slot, ...]:
    """Return all devices that an alternative selects, also those in use or tainted.

    As in Kubernetes, without those that are too small or have too little left.
    """
    slots: list[Slot] = []
    for pool in node_pools.pools:
        if not pool.is_usable:
            raise AllocationError(
                PoolNotUsable(claim, alternative.name, pool.id, pool.is_incomplete)
            )
        for slot in candidates(pool, alternative.requirements, demand.budget).selected:
            if slot.failure is not None:
                raise AllocationError(ExpressionFailed(claim, slot.failure))
            if _has_capacity(slot, use):
                slots.append(slot)
    return tuple(slots)


def _has_capacity(slot: Slot, use: InUse) -> bool:
    if slot.need is None:
        return True
    held = use.get(slot.pool)
    return held is None or slot.need.fits_into(held.amounts.get(slot.name, {}))

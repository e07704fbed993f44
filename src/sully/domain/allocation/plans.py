"""What an alternative comes to on one node: how many devices, and out of which.

Made before the search, because some requests are in error whatever the search would find: `All`
while a pool is being written, or more devices than an allocation can hold.
"""

from __future__ import annotations

from typing import Final

import msgspec

from sully.domain.allocation.candidates import Lane, Slot, candidates, lane
from sully.domain.allocation.ledger import InUse
from sully.domain.allocation.node_pools import NodePools
from sully.domain.allocation.requests import Alternative, Demand
from sully.domain.allocation.verdicts import FailureCause

MOST_RESULTS: Final = 32
"""Devices that one allocation can hold."""


class AllocationError(Exception):
    """Ends the attempt on all nodes; the text is what the user sees."""

    def __init__(self, text: str, cause: FailureCause | None = None) -> None:
        super().__init__(text)
        self.cause = cause


class TooLongError(AllocationError):
    """The search took more steps than it was given."""


class Plan(msgspec.Struct, frozen=True, eq=False):
    """One alternative on one node."""

    claim: int
    request: int
    choice: int
    alternative: Alternative
    needed: int
    lane: Lane
    everything: tuple[Slot, ...] | None = None
    """The devices it must have, when it asks for all."""
    is_only: bool = True
    """The request has no other alternative."""


Plans = tuple[tuple[tuple[Plan, ...], ...], ...]
"""By claim, request and alternative."""

NO_LANE = Lane(())


def at_a_glance(
    demand: Demand, node_pools: NodePools, use: InUse
) -> list[tuple[Plan, Slot]] | None:
    """Return what a search would find for the only request of a pod; nothing if too little is left.

    None where a glance is not enough. A pod that asks for one thing only is the usual one, and most
    nodes that it asks are full.
    """
    asked = _only(demand)
    count = 0 if asked is None or asked.admin_access else asked.count or 0
    if asked is None or not 0 < count <= MOST_RESULTS:
        return None
    found = lane(node_pools, asked.shape, demand.budget)
    if found.is_plain and not demand.claims[0].constraints:
        slots = found.first(count, use)
        if slots is not None:
            only = Plan(0, 0, 0, asked, count, found)
            return [(only, slot) for slot in slots] if len(slots) == count else []
    # A selector that fails on a device must be found out.
    return [] if not found.has_failures and found.free(use) < count else None


def _only(demand: Demand) -> Alternative | None:
    """Return what a pod asks for if there is nothing besides it, nor in its place."""
    if len(demand.claims) != 1 or len(demand.claims[0].requests) != 1:
        return None
    found = demand.claims[0].requests[0].alternatives
    return found[0] if len(found) == 1 else None


def plan(demand: Demand, node_pools: NodePools, use: InUse) -> Plans:
    """Plan all claims of a pod on a node; raise AllocationError if one can never be served."""
    return tuple(_plan_claim(demand, index, node_pools, use) for index in range(len(demand.claims)))


def _plan_claim(
    demand: Demand, index: int, node_pools: NodePools, use: InUse
) -> tuple[tuple[Plan, ...], ...]:
    claim = demand.claims[index]
    planned = tuple(
        tuple(
            _plan(demand, (index, place, choice), each, node_pools, use)
            for choice, each in enumerate(request.alternatives)
        )
        for place, request in enumerate(claim.requests)
    )
    least = sum(min(each.needed for each in plans) for plans in planned if plans)
    if least > MOST_RESULTS:
        raise AllocationError(
            f"claim {claim.key}: number of requested devices {least}"
            f" exceeds the claim limit of {MOST_RESULTS}",
            FailureCause.TOO_MANY_DEVICES,
        )
    return planned


def _plan(
    demand: Demand,
    place: tuple[int, int, int],
    alternative: Alternative,
    node_pools: NodePools,
    use: InUse,
) -> Plan:
    claim = demand.claims[place[0]]
    only = not alternative.is_choice or len(claim.requests[place[1]].alternatives) == 1
    if alternative.count is not None:
        found = lane(node_pools, alternative.shape, demand.budget)
        return Plan(*place, alternative, alternative.count, found, is_only=only)
    everything = _everything(demand, claim.key, alternative, node_pools, use)
    return Plan(*place, alternative, len(everything), NO_LANE, everything, is_only=only)


def _everything(
    demand: Demand, claim: str, alternative: Alternative, node_pools: NodePools, use: InUse
) -> tuple[Slot, ...]:
    """Return all devices that an alternative selects, in use, tainted or not.

    What is too small, or has too little left, is not meant, though: that is how Kubernetes has it.
    """
    found: list[Slot] = []
    for pool in node_pools.pools:
        if not pool.is_usable:
            state, cause = (
                ("being updated", FailureCause.POOL_INCOMPLETE)
                if pool.is_incomplete
                else ("invalid", FailureCause.POOL_INVALID)
            )
            raise AllocationError(
                f"claim {claim}, request {alternative.name}: asks for all devices,"
                f" but resource pool {pool.id} is currently {state}",
                cause,
            )
        for slot in candidates(pool, alternative.shape, demand.budget).selected:
            if slot.failure is not None:
                raise AllocationError(slot.failure.text(claim), slot.failure.cause)
            if _has_room(slot, use):
                found.append(slot)
    return tuple(found)


def _has_room(slot: Slot, use: InUse) -> bool:
    if slot.need is None:
        return True
    held = use.get(slot.pool.id)
    return held is None or slot.need.fits_into(held.amounts.get(slot.name, {}))

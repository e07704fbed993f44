"""Why nodes could not serve a pod: every device, and what spoke against it.

Counts are those before the attempt, so a device that an earlier request of the same pod would have
taken still counts as available. A device that several nodes see is counted once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from sully.domain.allocation.ledger import InUse
from sully.domain.allocation.node_pools import NodePools, Pool
from sully.domain.allocation.plans import NO_LANE, AllocationError, Plan
from sully.domain.allocation.reason_counts import ReasonCounts, count_reasons
from sully.domain.allocation.requests import Demand
from sully.domain.allocation.search import search
from sully.domain.allocation.state import State
from sully.domain.allocation.verdicts import (
    CANNOT_ALLOCATE,
    INVALID_POOLS,
    RequestDiagnosis,
    Unallocatable,
)
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import PoolId

MOST_NODES: Final = 1000
"""Nodes whose devices are counted for one pod."""
MOST_SEARCHES: Final = 16
"""Nodes on which it is found out what a constraint spoke against: each is a search of its own."""
_SEARCH_STEPS: Final = 2000

Unfit = Mapping[tuple[int, int, int], set[EffectiveDevice]]
"""Devices that a constraint spoke against, by claim, request and alternative."""


@dataclass(slots=True)
class Survey:
    """The nodes that a diagnosis is made for."""

    reached: list[NodePools] = field(default_factory=list)
    """Those that would take the pod, but for devices."""
    others: list[NodePools] = field(default_factory=list)
    """Those that do not take it for other reasons; devices only they have are out of reach."""

    def __len__(self) -> int:
        """Return how many nodes there are in it."""
        return len(self.reached) + len(self.others)


def unallocatable(node_pools: NodePools) -> Unallocatable:
    """Return that a node cannot serve the claims, without a diagnosis."""
    reason = INVALID_POOLS if node_pools.invalid else CANNOT_ALLOCATE
    return Unallocatable(reason, incomplete=node_pools.incomplete, invalid=node_pools.invalid)


def diagnose_on(
    demand: Demand, node_pools: NodePools, use: InUse, unfit: Mapping[Plan, set[EffectiveDevice]]
) -> tuple[RequestDiagnosis, ...]:
    """Say for every request what spoke against which devices of one node."""
    found = {_place(plan): devices for plan, devices in unfit.items()}
    return _diagnose(demand, Survey([node_pools]), use, found)


def diagnose(demand: Demand, survey: Survey, use: InUse) -> Unallocatable:
    """Say for every request, alternative by alternative, what spoke against which devices."""
    reached = survey.reached
    offers = [*reached, *survey.others]
    return Unallocatable(
        requests=_diagnose(demand, survey, use, _unfit(demand, reached, use)),
        incomplete=tuple(dict.fromkeys(pool for each in offers for pool in each.incomplete)),
        invalid={pool: text for each in offers for pool, text in each.invalid.items()},
    )


def _diagnose(
    demand: Demand, survey: Survey, use: InUse, unfit: Unfit
) -> tuple[RequestDiagnosis, ...]:
    before = State(demand, use)
    reached, others = _pools(survey.reached), _pools(survey.others)
    found = []
    for each in _plans(demand):
        total, bad = ReasonCounts(), unfit.get(_place(each)) or set()
        for offers in reached.values():
            total.merge(count_reasons(each, offers, before, bad))
        for id_, offers in others.items():
            if id_ not in reached:
                total.merge(count_reasons(each, offers, before, bad), reachable=False)
        found.append(total.diagnosis(demand.claims[each.claim].key, each))
    return tuple(found)


def _pools(offers: Iterable[NodePools]) -> dict[PoolId, list[Pool]]:
    """Return the pools that nodes see; most see one in the same way, and then it is there once."""
    found: dict[PoolId, dict[Pool, None]] = {}
    for node_pools in offers:
        for pool in node_pools.pools:
            found.setdefault(pool.id, {})[pool] = None
    return {id_: list(ways) for id_, ways in found.items()}


def _plans(demand: Demand) -> Iterator[Plan]:
    """Yield plans that are bound to no node: a diagnosis needs to know only who asks for what."""
    for index, claim in enumerate(demand.claims):
        for place, request in enumerate(claim.requests):
            for choice, each in enumerate(request.alternatives):
                yield Plan(index, place, choice, each, each.count or 0, NO_LANE)


def _place(plan: Plan) -> tuple[int, int, int]:
    return plan.claim, plan.request, plan.choice


def _unfit(demand: Demand, offers: Iterable[NodePools], use: InUse) -> Unfit:
    found: dict[tuple[int, int, int], set[EffectiveDevice]] = {}
    if not any(claim.constraints for claim in demand.claims):
        return found
    for node_pools, _ in zip(offers, range(MOST_SEARCHES), strict=False):
        for each, devices in _against(demand, node_pools, use).items():
            found.setdefault(_place(each), set()).update(devices)
    return found


def _against(
    demand: Demand, node_pools: NodePools, use: InUse
) -> Mapping[Plan, set[EffectiveDevice]]:
    try:
        # What was found out before an error is still true.
        return search(demand, node_pools, use, most_steps=_SEARCH_STEPS).unfit
    except AllocationError:
        return {}

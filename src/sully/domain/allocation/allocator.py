"""Allocates the claims of a pod on one node.

`requests.prepare` reads the claims once per pod; `allocate` is then called node by node.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from sully.domain.allocation.failures import AllocationError, TimedOut
from sully.domain.allocation.plans import quick_result
from sully.domain.allocation.pools.node_pools import NodePools
from sully.domain.allocation.rejections.survey import diagnose_on, unallocatable
from sully.domain.allocation.requests import Demand
from sully.domain.allocation.results import Chosen, write
from sully.domain.allocation.search import MOST_STEPS, search
from sully.domain.allocation.usage.ledger import InUse
from sully.domain.allocation.verdicts import MOST_CHOICES, Allocated, Failed, Verdict
from sully.machinery.cel import CostBudgetExceededError
from sully.machinery.compat import Compat


def allocate(
    demand: Demand,
    node_pools: NodePools,
    use: InUse,
    *,
    compat: Compat = Compat.SULLY,
    explain: bool = True,
    most_steps: int = MOST_STEPS,
) -> Verdict:
    """Choose devices for all claims of a pod on a node, or return why there are none.

    Without `explain` a failure has no diagnosis: callers that try many nodes ask for it once, at
    the end. Raises UnfinishedError if the budget of the demand has slices.
    """
    try:
        quick = quick_result(demand, node_pools, use) if not explain else None
        if quick is not None:
            return _plainly(demand, quick, node_pools) if quick else unallocatable(node_pools)
        outcome = search(demand, node_pools, use, compat=compat, most_steps=most_steps)
    except AllocationError as error:
        return Failed(error.failure)
    except CostBudgetExceededError as error:
        return _over_budget(error, node_pools, compat)
    if outcome.failure is not None:
        return Failed(outcome.failure)
    if outcome.chosen is not None:
        return _allocated(demand, outcome.chosen, node_pools)
    failure = unallocatable(node_pools)
    if not explain:
        return failure
    return replace(failure, requests=diagnose_on(demand, node_pools, use, outcome.unfit))


def _over_budget(error: CostBudgetExceededError, node_pools: NodePools, compat: Compat) -> Failed:
    is_explained = error.expression and compat.explains_cost_budget
    return Failed(TimedOut(node_pools.node.name, error.units if is_explained else None))


def _plainly(demand: Demand, chosen: Chosen, node_pools: NodePools) -> Allocated:
    """Return the result of the only request of a pod, which gets devices that are not shared."""
    if demand.claims[0].requests[0].is_choice:
        return _allocated(demand, [chosen], node_pools)
    allocation = write(demand.claims[0].claim, chosen, node_pools.node)
    return Allocated((allocation,), (tuple([slot.device for _, slot in chosen]),))


def _allocated(demand: Demand, chosen: Sequence[Chosen], node_pools: NodePools) -> Allocated:
    picked = {
        (plan.claim, plan.request): plan.choice
        for claim in chosen
        for plan, _ in claim
        if plan.alternative.is_choice
    }
    return Allocated(
        # Lists, because a generator costs more than what it yields here.
        tuple(
            [
                write(claim.claim, devices, node_pools.node)
                for claim, devices in zip(demand.claims, chosen, strict=True)
            ]
        ),
        tuple([tuple([slot.device for _, slot in devices]) for devices in chosen]),
        tuple(
            [
                (claim, index)
                for claim, devices in enumerate(chosen)
                for index, (_, slot) in enumerate(devices)
                if slot.is_shareable
            ]
        ),
        sum([MOST_CHOICES - choice for choice in picked.values()]) if picked else 0,
    )

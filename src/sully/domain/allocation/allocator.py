"""Allocates the claims of a pod on one node: the question that everything here serves.

`requests.prepare` reads the claims once per pod; `allocate` then asks node by node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sully.domain.allocation.diagnosis import diagnose_on, refuse
from sully.domain.allocation.ledger import InUse
from sully.domain.allocation.offers import NodeOffer
from sully.domain.allocation.plans import AllocationError, TooLongError, at_a_glance, plan
from sully.domain.allocation.requests import Demand
from sully.domain.allocation.results import Chosen, write
from sully.domain.allocation.search import MOST_STEPS, TIMED_OUT, Search
from sully.domain.allocation.verdicts import MOST_CHOICES, Allocated, Failed, Verdict
from sully.machinery.cel import CostBudgetExceededError


def allocate(
    demand: Demand,
    offer: NodeOffer,
    use: InUse,
    *,
    strict: bool = False,
    explain: bool = True,
    most_steps: int = MOST_STEPS,
) -> Verdict:
    """Choose devices for all claims of a pod on a node, or say why not.

    `strict` does what Kubernetes 1.37 does where that is no use to anybody. Without `explain` a
    refusal carries no account: whoever asks many nodes asks for it once, at the end. Raises
    UnfinishedError if the budget of the demand has slices.
    """
    try:
        seen = at_a_glance(demand, offer, use) if not explain else None
        if seen is not None:
            return _allocated(demand, [seen], offer) if seen else refuse(offer)
        plans = plan(demand, offer, use)
        search = Search(demand, plans, use, strict=strict, most_steps=most_steps)
        if search.run():
            return _allocated(demand, search.state.chosen, offer)
    except TooLongError as error:
        return Failed(f"node {offer.node.name}: {error}")
    except AllocationError as error:
        return Failed(str(error))
    except CostBudgetExceededError:
        return _over_budget(demand.budget.units, offer.node.name, strict=strict)
    refused = refuse(offer)
    if not explain:
        return refused
    return replace(refused, requests=diagnose_on(demand, offer, use, search.unfit))


def _over_budget(units: int, node: str, *, strict: bool) -> Failed:
    why = "" if strict else f": evaluating the selectors exceeds the budget of {units} cost units"
    return Failed(f"node {node}: {TIMED_OUT}{why}", over_budget=True)


def _allocated(demand: Demand, chosen: Sequence[Chosen], offer: NodeOffer) -> Allocated:
    picked = {
        (plan.claim, plan.request): plan.choice
        for each in chosen
        for plan, _ in each
        if plan.alternative.is_choice
    }
    return Allocated(
        tuple(
            write(each.claim, chosen[index], offer.node) for index, each in enumerate(demand.claims)
        ),
        tuple(tuple(slot.device for _, slot in each) for each in chosen),
        tuple(
            (claim, place)
            for claim, each in enumerate(chosen)
            for place, (_, slot) in enumerate(each)
            if slot.is_shareable
        ),
        sum(MOST_CHOICES - choice for choice in picked.values()),
    )

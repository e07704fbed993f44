"""Why a node could not serve a pod: every device, and what spoke against it.

Counts are those before the attempt, so a device that an earlier request of the same pod would have
taken still counts as available. What a device is comes before who uses it: a network card in use
is no news to a request for a GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import replace

from sully.domain.allocation.candidates import Slot, candidates
from sully.domain.allocation.ledger import InUse
from sully.domain.allocation.offers import NodeOffer, PoolOffer
from sully.domain.allocation.plans import Plan, Plans
from sully.domain.allocation.requests import Demand
from sully.domain.allocation.state import State
from sully.domain.allocation.verdicts import (
    CANNOT_ALLOCATE,
    INVALID_POOLS,
    Reason,
    Refused,
    RequestAccount,
    TaintCount,
    written,
)
from sully.domain.devices import EffectiveDevice
from sully.domain.taints import Origin, SourcedTaint


def refuse(offer: NodeOffer) -> Refused:
    """Refuse without an account."""
    reason = INVALID_POOLS if offer.invalid else CANNOT_ALLOCATE
    return Refused(reason, incomplete=offer.incomplete, invalid=offer.invalid)


def account_for(
    demand: Demand,
    plans: Plans,
    offer: NodeOffer,
    use: InUse,
    unfit: dict[Plan, set[EffectiveDevice]],
) -> tuple[RequestAccount, ...]:
    """Say for every request, alternative by alternative, what spoke against which devices."""
    before = State(demand, use, strict=False)
    return tuple(
        _account(demand.claims[plan.claim].key, plan, offer, before, unfit.get(plan, ()))
        for requests in plans
        for each in requests
        for plan in each
    )


def _account(
    claim: str, plan: Plan, offer: NodeOffer, before: State, unfit: Container[EffectiveDevice]
) -> RequestAccount:
    refused: Counter[Reason] = Counter()
    marks: list[SourcedTaint] = []
    available = 0
    for pool in offer.pools:
        judged = candidates(pool, plan.alternative.shape)
        for device, first, taints in judged.closed:
            reason = _or_in_use(plan, pool, device, first, before)
            refused[reason] += 1
            if reason is Reason.TAINT:
                marks += taints
        for slot in judged.open:
            found = _against(plan, slot, before, unfit)
            if found is None:
                available += 1
            else:
                refused[found] += 1
    wanted = plan.alternative.count
    name = plan.alternative.full_name
    return RequestAccount(claim, name, wanted, available, dict(refused), _counted(marks))


def _counted(marks: list[SourcedTaint]) -> tuple[TaintCount, ...]:
    """Count equal taints of one origin together, in the order in which they were met."""
    found: dict[tuple[Origin, str], tuple[SourcedTaint, int]] = {}
    for each in marks:
        # The place in the slice tells devices apart, which is what must not happen here.
        key = replace(each.origin, index=0), written(each.taint)
        first, count = found.get(key, (each, 0))
        found[key] = first, count + 1
    return tuple(TaintCount(first, count) for first, count in found.values())


def _or_in_use(
    plan: Plan, pool: PoolOffer, device: EffectiveDevice, reason: Reason, before: State
) -> Reason:
    held = before.use.get(pool.id)
    if reason is not Reason.TAINT or plan.alternative.admin_access or held is None:
        return reason
    return Reason.IN_USE if device.published.device.name in held.devices else reason


def _against(
    plan: Plan, slot: Slot, before: State, unfit: Container[EffectiveDevice]
) -> Reason | None:
    if slot.failure is not None:
        return Reason.SELECTOR_ERROR
    held = before.use.get(slot.pool.id)
    if before.is_busy(plan, slot, held):
        return Reason.IN_USE
    if (reason := before.lacks(plan, slot, held)) is not None:
        return reason
    return Reason.CONSTRAINT if slot.device in unfit else None

"""Why nodes could not serve a pod: how many devices were rejected for which reason.

Counts are those before the attempt, so a device that an earlier request of the same pod would get
still counts as available. A device that several nodes see is counted once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from sully.domain.allocation.failures import AllocationError
from sully.domain.allocation.plans import NO_CANDIDATES, RequestPlan
from sully.domain.allocation.pools.node_pools import NodePools, Pool
from sully.domain.allocation.rejections.reason_counts import (
    DeviceFinding,
    ReasonCounts,
    count_reasons,
    findings,
)
from sully.domain.allocation.requests import Alternative, Demand
from sully.domain.allocation.search import search
from sully.domain.allocation.state import AllocationState
from sully.domain.allocation.usage.ledger import InUse
from sully.domain.allocation.verdicts import (
    RequestDiagnosis,
    Unallocatable,
    UnallocatableReason,
)
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import DeviceId, PoolId

MOST_NODES: Final = 1000
"""Nodes whose devices are counted for one pod."""
MOST_SEARCHES: Final = 16
"""Nodes on which the devices that a constraint rejects are found: each needs a search."""
_SEARCH_STEPS: Final = 2000

Unfit = Mapping[tuple[int, int, int], set[EffectiveDevice]]
"""Devices that a constraint rejected, by claim, request and alternative."""


class Survey(msgspec.Struct):
    """The nodes of a diagnosis."""

    reached: list[NodePools] = msgspec.field(default_factory=list)
    """Those that fit the pod, except for devices."""
    others: list[NodePools] = msgspec.field(default_factory=list)
    """Those that reject it for other reasons; devices that only they see cannot be used."""

    def __len__(self) -> int:
        """Return how many nodes there are in it."""
        return len(self.reached) + len(self.others)


def unallocatable(node_pools: NodePools) -> Unallocatable:
    """Return that a node cannot serve the claims, without a diagnosis."""
    reasons = UnallocatableReason
    reason = reasons.INVALID_POOLS if node_pools.invalid else reasons.CANNOT_ALLOCATE
    return Unallocatable(reason, incomplete=node_pools.incomplete, invalid=node_pools.invalid)


def diagnose_on(
    demand: Demand,
    node_pools: NodePools,
    use: InUse,
    unfit: Mapping[RequestPlan, set[EffectiveDevice]],
) -> tuple[RequestDiagnosis, ...]:
    """Return for every request why devices of one node were rejected."""
    by_place = {_place(plan): devices for plan, devices in unfit.items()}
    return _diagnose(demand, Survey([node_pools]), use, by_place)


def diagnose(demand: Demand, survey: Survey, use: InUse) -> Unallocatable:
    """Return for every request, alternative by alternative, why devices were rejected."""
    reached = survey.reached
    nodes = [*reached, *survey.others]
    return Unallocatable(
        requests=_diagnose(demand, survey, use, _unfit(demand, reached, use)),
        incomplete=tuple(dict.fromkeys(pool for node in nodes for pool in node.incomplete)),
        invalid={pool: text for node in nodes for pool, text in node.invalid.items()},
    )


def findings_on(
    demand: Demand, node_pools: NodePools, use: InUse, device: DeviceId
) -> Iterator[tuple[str, Alternative, DeviceFinding]]:
    """Yield for every request whether one device could serve it, with its claim.

    Requests are judged one by one, as if each were the first that gets devices.
    """
    before = AllocationState(demand, use)
    for plan in _plans(demand):
        for pool in node_pools.pools:
            if pool.id != device.pool_id or not pool.is_usable:
                continue
            for finding in findings(plan, pool, before, frozenset()):
                if finding.device.id == device:
                    yield demand.claims[plan.claim].key, plan.alternative, finding


def _diagnose(
    demand: Demand, survey: Survey, use: InUse, unfit: Unfit
) -> tuple[RequestDiagnosis, ...]:
    before = AllocationState(demand, use)
    reached, others = _pools(survey.reached), _pools(survey.others)
    diagnoses = []
    for plan in _plans(demand):
        total, unfit_devices = ReasonCounts(), unfit.get(_place(plan)) or set()
        for pools in reached.values():
            total.merge(count_reasons(plan, pools, before, unfit_devices))
        for id_, pools in others.items():
            if id_ not in reached:
                counts = count_reasons(plan, pools, before, unfit_devices)
                total.merge(counts, reachable=False)
        diagnoses.append(total.diagnosis(demand.claims[plan.claim].key, plan))
    return tuple(diagnoses)


def _pools(nodes: Iterable[NodePools]) -> dict[PoolId, list[Pool]]:
    """Return the pools that nodes see, each as often as nodes see it differently."""
    pools: dict[PoolId, dict[Pool, None]] = {}
    for node in nodes:
        for pool in node.pools:
            pools.setdefault(pool.id, {})[pool] = None
    return {id_: list(views) for id_, views in pools.items()}


def _plans(demand: Demand) -> Iterator[RequestPlan]:
    """Yield plans without candidates: a diagnosis only needs the alternatives."""
    for index, claim in enumerate(demand.claims):
        for place, request in enumerate(claim.requests):
            for choice, alternative in enumerate(request.alternatives):
                count = alternative.count or 0
                yield RequestPlan(index, place, choice, alternative, count, NO_CANDIDATES)


def _place(plan: RequestPlan) -> tuple[int, int, int]:
    return plan.claim, plan.request, plan.choice


def _unfit(demand: Demand, nodes: Iterable[NodePools], use: InUse) -> Unfit:
    unfit: dict[tuple[int, int, int], set[EffectiveDevice]] = {}
    if not any(claim.constraints for claim in demand.claims):
        return unfit
    for node_pools, _ in zip(nodes, range(MOST_SEARCHES), strict=False):
        for plan, devices in _unfit_on(demand, node_pools, use).items():
            unfit.setdefault(_place(plan), set()).update(devices)
    return unfit


def _unfit_on(
    demand: Demand, node_pools: NodePools, use: InUse
) -> Mapping[RequestPlan, set[EffectiveDevice]]:
    try:
        # What was found before an error is still valid.
        return search(demand, node_pools, use, most_steps=_SEARCH_STEPS).unfit
    except AllocationError:
        return {}

"""Which taints block pending pods: those of unused devices of a class that a pod requests.

This is cheaper than scheduling and only an indication: a pod may be blocked by more than taints.
`sully explain pod` gives the whole answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from sully.api.resource.types import DeviceToleration, ResourceClaimSpec
from sully.domain.observability.pool_counts import Blocker, BlockingTaint
from sully.domain.planning.selector_matches import alternatives
from sully.domain.tolerations import tolerates

BLOCKERS_MAX = 100
"""How many sources are named; there may be a rule for each device."""
OTHERS = Blocker("", "")
"""Stands for the sources that are not named."""


class RequestedClass(NamedTuple):
    """The devices that a request accepts."""

    device_class: str
    tolerations: tuple[DeviceToleration, ...] = ()


Demand = frozenset[RequestedClass]
"""What a pod requests; many pods request the same."""


def demand_of(specs: Iterable[ResourceClaimSpec]) -> Demand:
    """Return what the claims of a pod request."""
    return frozenset(
        RequestedClass(alternative.device_class_name, tuple(alternative.tolerations))
        for spec in specs
        for request in spec.devices.requests or ()
        for alternative in alternatives(request)
    )


def blockers_of(demand: Demand, blocked: Mapping[str, Collection[BlockingTaint]]) -> set[Blocker]:
    """Return the sources of taints that keep a pod from unused devices."""
    return {
        taint.blocker
        for device_class, tolerations in demand
        for taint in blocked.get(device_class, ())
        if not any(tolerates(toleration, taint.taint) for toleration in tolerations)
    }


def count_blocked(
    demands: Mapping[Demand, int], blocked: Mapping[str, Collection[BlockingTaint]]
) -> Counter[Blocker]:
    """Count the pods that each source blocks; the most important sources by name."""
    counts: Counter[Blocker] = Counter()
    for demand, pods in demands.items():
        for blocker in blockers_of(demand, blocked):
            counts[blocker] += pods
    if len(counts) <= BLOCKERS_MAX:
        return counts
    order = sorted(counts, key=lambda blocker: (-counts[blocker], blocker))
    named = Counter({blocker: counts[blocker] for blocker in order[:BLOCKERS_MAX]})
    # A pod may be blocked by several of them: the sum would count it more than once.
    named[OTHERS] = max(counts[blocker] for blocker in order[BLOCKERS_MAX:])
    return named

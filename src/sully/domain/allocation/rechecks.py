"""May one more pod share an allocation that exists already?

Kubernetes 1.37 asks only whether the node fits, against its documentation: the pod is placed and
evicted at once if a device was tainted in the meantime. We refuse it before it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from sully.api.resource.types import AllocationResult
from sully.domain.allocation.nodes import Node, selects_node
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.taints import SourcedTaint
from sully.domain.eviction.judge import USUAL, Terms, leaves_at


def usable_on(allocation: AllocationResult, node: Node) -> bool:
    """Report whether an allocation can be used on a node."""
    selector = allocation.node_selector
    return selector is None or selects_node(selector, node)


def evicting_taints(
    allocation: AllocationResult,
    taints: Callable[[DeviceId], Iterable[SourcedTaint]],
    *,
    now: datetime,
    terms: Terms = USUAL,
) -> tuple[tuple[DeviceId, SourcedTaint], ...]:
    """Return the taints that would at once evict a pod which now begins to use an allocation.

    A taint that only keeps new allocations away does not count: this one is not new. Nor does one
    that is tolerated for a while that has not passed.
    """
    found = []
    for result in allocation.devices.results:
        device = DeviceId(result.driver, result.pool, result.device)
        for each in taints(device):
            due = leaves_at(each.taint, result.tolerations, now=now, terms=terms)
            if due is not None and due <= now:
                found.append((device, each))
    return tuple(found)

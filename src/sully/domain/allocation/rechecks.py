"""May one more pod share an allocation that exists already?

Kubernetes 1.37 asks only whether the node fits, against its documentation: the pod is placed and
evicted at once if a device was tainted in the meantime. We refuse it before it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sully.api.resource.claim_types import AllocationResult
from sully.domain.allocation.nodes import Node, selects_node
from sully.domain.pools import DeviceId
from sully.domain.taints import NO_EXECUTE, SourcedTaint, tolerates


def usable_on(allocation: AllocationResult, node: Node) -> bool:
    """Say whether an allocation can be used on a node."""
    selector = allocation.node_selector
    return selector is None or selects_node(selector, node)


def evicting_taints(
    allocation: AllocationResult, taints: Callable[[DeviceId], Iterable[SourcedTaint]]
) -> tuple[SourcedTaint, ...]:
    """Return the taints that would evict a pod which now begins to use an allocation.

    A taint that only keeps new allocations away does not count: this one is not new.
    """
    return tuple(
        each
        for result in allocation.devices.results
        for each in taints(DeviceId(result.driver, result.pool, result.device))
        if each.taint.effect == NO_EXECUTE
        and not any(tolerates(one, each.taint) for one in result.tolerations)
    )

"""Topology spread constraints with `whenUnsatisfiable: DoNotSchedule`.

A pod may be added where the number of matching pods exceeds the smallest number of any eligible
domain by no more than `maxSkew`. Other constraints only influence which node is preferred.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from sully.domain.scheduling.cluster_events import ClusterEvent
from sully.domain.scheduling.filters import (
    NodeFilter,
    NodeInfo,
    NodeReason,
    Rejection,
    matches_node_affinity,
    untolerated_taints,
)
from sully.domain.scheduling.objects import Pod, TopologySpread
from sully.domain.scheduling.pod_matching import (
    CountByNode,
    PodMatcher,
    PodSelector,
    selector_from,
)
from sully.machinery.selectors.labels import Requirement, Selector

_RETRY_ON: Final = (
    ClusterEvent.ASSIGNED_POD_ADD | ClusterEvent.ASSIGNED_POD_DELETE | ClusterEvent.NODE_DELETE
)
_SKEWED: Final = Rejection((NodeReason.TOPOLOGY_SPREAD,), preemptible=True, retry_on=_RETRY_ON)
_NO_LABEL: Final = Rejection((NodeReason.TOPOLOGY_LABEL,))


class SpreadConstraint(msgspec.Struct, frozen=True):
    """A constraint with its defaults."""

    topology_key: str
    max_skew: int
    selector: Selector
    min_domains: int = 1
    honors_node_affinity: bool = True
    honors_node_taints: bool = False


def spread_constraints(pod: Pod) -> tuple[SpreadConstraint, ...]:
    """Return the constraints that prevent scheduling."""
    return tuple(
        SpreadConstraint(
            spread.topology_key,
            spread.max_skew,
            _selector(pod, spread),
            spread.min_domains if spread.min_domains is not None else 1,
            honors_node_affinity=spread.node_affinity_policy != "Ignore",
            honors_node_taints=spread.node_taints_policy == "Honor",
        )
        for spread in pod.spec.topology_spread_constraints
        if spread.when_unsatisfiable != "ScheduleAnyway"
    )


def _selector(pod: Pod, spread: TopologySpread) -> Selector:
    selector, labels = selector_from(spread.label_selector), pod.metadata.labels
    more = tuple(
        Requirement(key, "in", (labels[key],)) for key in spread.match_label_keys if key in labels
    )
    if selector.never or not more:
        return selector
    return Selector((*selector.requirements, *more))


def spread_filter(
    pod: Pod,
    constraints: Sequence[SpreadConstraint],
    nodes: Iterable[NodeInfo],
    count: CountByNode,
) -> NodeFilter:
    """Return the filter for the constraints of a pod; `nodes` are all of the cluster."""
    domains = _domains(pod, constraints, nodes, count)
    own = [constraint.selector.matches(pod.metadata.labels) for constraint in constraints]
    most = [
        constraint.max_skew + _least(constraint, matching) - itself
        for constraint, matching, itself in zip(constraints, domains, own, strict=True)
    ]
    """How many matching pods a domain may have at most before the pod is added."""
    checks = list(zip((c.topology_key for c in constraints), domains, most, strict=True))

    def evaluate(node: NodeInfo) -> Rejection | None:
        labels = node.target.labels
        for key, matching, limit in checks:
            value = labels.get(key)
            if value is None:
                return _NO_LABEL
            if matching.get(value, 0) > limit:
                return _SKEWED
        return None

    return evaluate


def _domains(
    pod: Pod,
    constraints: Sequence[SpreadConstraint],
    nodes: Iterable[NodeInfo],
    count: CountByNode,
) -> list[dict[str, int]]:
    """Return for each constraint the number of matching pods in each eligible domain."""
    namespaces = frozenset((pod.metadata.namespace,))
    counts = [
        # An empty selector counts no pod.
        {}
        if constraint.selector.everything
        else count(
            PodMatcher((PodSelector(constraint.selector, namespaces),), skips_terminating=True)
        )
        for constraint in constraints
    ]
    domains: list[dict[str, int]] = [{} for _ in constraints]
    keys = [constraint.topology_key for constraint in constraints]
    for node in nodes:
        labels = node.target.labels
        if not all(key in labels for key in keys):
            continue
        for constraint, by_node, matching in zip(constraints, counts, domains, strict=True):
            if _is_eligible(constraint, pod, node):
                value = labels[constraint.topology_key]
                matching[value] = matching.get(value, 0) + by_node.get(node.name, 0)
    return domains


def _is_eligible(constraint: SpreadConstraint, pod: Pod, node: NodeInfo) -> bool:
    if constraint.honors_node_affinity and not matches_node_affinity(pod, node.target):
        return False
    return not (constraint.honors_node_taints and any(untolerated_taints(node.node, pod)))


def _least(constraint: SpreadConstraint, matching: dict[str, int]) -> int:
    if len(matching) < constraint.min_domains:
        return 0
    return min(matching.values(), default=0)

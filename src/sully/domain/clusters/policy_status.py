"""The status of policies: how many clusters they select, and how many have their taint.

Desired taints are policies.py; which taints policies own is api/cluster/taints/policy_taints.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from sully.api.cluster.taints.policy_states import STATES, RuleState, read_states
from sully.api.cluster.taints.policy_taints import OWNED, read_taint_ids
from sully.api.cluster.types import ManagedCluster
from sully.api.resource.annotations import CLEARED_AT
from sully.api.sully.conditions import APPLIED
from sully.api.sully.types import ClusterTaintPolicy
from sully.domain.clusters.policies import policy_ids
from sully.domain.devicepolicies.status import HELD
from sully.domain.placement.predicates import select_labels
from sully.domain.placement.results.conditions import PlacementCondition
from sully.domain.placement.results.status import MisconfiguredError
from sully.machinery.meta import find_condition
from sully.machinery.selectors.labels import Selector

FLAPPING = "sully.dev/Flapping"


def policy_findings(
    policy: ClusterTaintPolicy, clusters: Collection[ManagedCluster]
) -> list[PlacementCondition]:
    """Return the conditions of a policy; those about limits and flaps only if it has them."""
    findings = [policy_finding(policy, clusters)]
    states = list(_states(policy, clusters))
    if policy.spec.max_unavailable is not None or _has(policy, HELD):
        findings.append(_held(states))
    if policy.spec.flaps is not None or _has(policy, FLAPPING):
        findings.append(_flapping(states))
    return findings


def _has(policy: ClusterTaintPolicy, type_: str) -> bool:
    return find_condition(policy.status.conditions, type_) is not None


def _states(
    policy: ClusterTaintPolicy, clusters: Iterable[ManagedCluster]
) -> Iterator[tuple[str, RuleState]]:
    """Yield what the rules of a policy record about clusters, with their names."""
    for cluster in sorted(clusters, key=lambda one: one.metadata.name):
        for state in read_states(cluster.metadata.annotations.get(STATES, "")):
            if state.policy == policy.metadata.name:
                yield cluster.metadata.name, state


def _held(states: Iterable[tuple[str, RuleState]]) -> PlacementCondition:
    held = {name: state.held_back for name, state in states if state.held_back}
    if not held:
        return PlacementCondition(HELD, "False", "WithinLimits", "")
    text = f"{len(held)} clusters wait, for instance {min(held)}: {held[min(held)]}."
    return PlacementCondition(HELD, "True", "LimitReached", text)


def _flapping(states: Iterable[tuple[str, RuleState]]) -> PlacementCondition:
    flapping = {name for name, state in states if state.flapping}
    if not flapping:
        return PlacementCondition(FLAPPING, "False", "NoneFlapping", "")
    text = f"{len(flapping)} clusters keep their taint, for instance {min(flapping)}"
    why = f"needs the annotation {CLEARED_AT} with the current time once it is healthy"
    return PlacementCondition(FLAPPING, "True", "ClustersFlapping", f"{text}: {why}.")


def policy_finding(
    policy: ClusterTaintPolicy, clusters: Iterable[ManagedCluster]
) -> PlacementCondition:
    """Return how many clusters a policy selects, and how many have a taint of it."""
    if policy.spec.cluster_selector is None:
        text = "There is no clusterSelector, so the policy is for no cluster."
        return PlacementCondition(APPLIED, "False", "NoSelector", text)
    try:
        selector = select_labels(policy.spec.cluster_selector)
    except MisconfiguredError as error:
        return PlacementCondition(APPLIED, "False", "InvalidSelector", str(error))
    selected, tainted = _count_selected(policy, selector, clusters)
    text = f"{selected} clusters selected, {tainted} tainted."
    if not selected:
        return PlacementCondition(APPLIED, "False", "NoCluster", text)
    return PlacementCondition(APPLIED, "True", "Applied", text)


def count_clusters(
    policy: ClusterTaintPolicy, clusters: Iterable[ManagedCluster]
) -> tuple[int, int]:
    """Return how many clusters a policy selects, and how many of them have a taint of it."""
    if policy.spec.cluster_selector is None:
        return 0, 0
    try:
        selector = select_labels(policy.spec.cluster_selector)
    except MisconfiguredError:
        return 0, 0
    return _count_selected(policy, selector, clusters)


def _count_selected(
    policy: ClusterTaintPolicy, selector: Selector, clusters: Iterable[ManagedCluster]
) -> tuple[int, int]:
    ids = policy_ids(policy)
    selected = tainted = 0
    for cluster in clusters:
        if selector.matches(cluster.metadata.labels):
            selected += 1
            owned = cluster.metadata.annotations.get(OWNED, "")
            tainted += bool(owned) and not ids.isdisjoint(read_taint_ids(owned))
    return selected, tainted

"""The status of policies: how many clusters they select, and how many have their taint.

Desired taints are policies.py; which taints policies own is api/cluster/policy_taints.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from sully.api.cluster.policy_taints import OWNED, read_taint_ids
from sully.api.cluster.types import ManagedCluster
from sully.api.sully.types import ClusterTaintPolicy
from sully.domain.placement.predicates import select_labels
from sully.domain.placement.results.conditions import Finding
from sully.domain.placement.results.status import MisconfiguredError
from sully.machinery.labels import Selector

APPLIED = "sully.dev/Applied"


def policy_finding(policy: ClusterTaintPolicy, clusters: Iterable[ManagedCluster]) -> Finding:
    """Return how many clusters a policy selects, and how many have a taint of it."""
    if policy.spec.cluster_selector is None:
        text = "There is no clusterSelector, so the policy is for no cluster."
        return Finding(APPLIED, "False", "NoSelector", text)
    try:
        selector = select_labels(policy.spec.cluster_selector)
    except MisconfiguredError as error:
        return Finding(APPLIED, "False", "InvalidSelector", str(error))
    selected, tainted = _count(policy, selector, clusters)
    text = f"{selected} clusters selected, {tainted} tainted."
    if not selected:
        return Finding(APPLIED, "False", "NoCluster", text)
    return Finding(APPLIED, "True", "Applied", text)


def _count(
    policy: ClusterTaintPolicy, selector: Selector, clusters: Iterable[ManagedCluster]
) -> tuple[int, int]:
    ids = {(rule.taint.key, rule.taint.value, rule.taint.effect) for rule in policy.spec.rules}
    selected = tainted = 0
    for cluster in clusters:
        if selector.matches(cluster.metadata.labels):
            selected += 1
            owned = cluster.metadata.annotations.get(OWNED, "")
            tainted += bool(owned) and not ids.isdisjoint(read_taint_ids(owned))
    return selected, tainted

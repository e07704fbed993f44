"""How many clusters a ClusterTaintPolicy may taint, and whether it may taint another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sully.api.cluster.taints.policy_taints import TaintId
from sully.api.sully.types import ClusterTaintPolicy
from sully.domain.clusters.policies import policy_ids
from sully.domain.devicepolicies.limits import Groups, LimitGroup, UnavailabilityBudget
from sully.domain.devicepolicies.settings import Limit
from sully.domain.placement.predicates import select_labels


class Member(NamedTuple):
    """A cluster as limits count it."""

    name: str
    labels: Mapping[str, str]
    owned: frozenset[TaintId]
    """The taints that policies set."""


def limit_refusal(policy: ClusterTaintPolicy, name: str, members: Iterable[Member]) -> str:
    """Return why a policy that selects a cluster must not taint it; empty if it may."""
    budget = policy_budget(policy, members)
    return budget.spend(name) if budget is not None else ""


def policy_budget(
    policy: ClusterTaintPolicy, members: Iterable[Member]
) -> UnavailabilityBudget | None:
    """Count the clusters of a policy; None if it has no limit."""
    most, labels = policy.spec.max_unavailable, policy.spec.cluster_selector
    if most is None or labels is None:
        return None
    selector, ids = select_labels(labels), policy_ids(policy)
    selected = [member for member in members if selector.matches(member.labels)]
    tainted = [member.name for member in selected if not ids.isdisjoint(member.owned)]
    groups = Groups(total=len(selected), sizes={LimitGroup(0): len(selected)})
    return UnavailabilityBudget((Limit("Fleet", most),), groups, tainted, noun="clusters")

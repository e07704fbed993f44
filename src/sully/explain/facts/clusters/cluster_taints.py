"""Who added a taint to a cluster: the hub for its health, a policy, or a user."""

from __future__ import annotations

from collections.abc import Iterable

from sully.api.cluster.taints.history import read_history, set_by
from sully.api.cluster.taints.policy_taints import OWNED, read_taint_ids
from sully.api.cluster.types import ManagedCluster, Taint
from sully.api.sully.types import ClusterTaintPolicy, ClusterTaintPolicyRule
from sully.domain.clusters.health import AVAILABLE, condition, is_health
from sully.domain.clusters.policies import taint_id
from sully.domain.placement.predicates import select_labels
from sully.domain.placement.results.status import MisconfiguredError
from sully.domain.tolerations import taint_text
from sully.explain.causes import ClusterTaint, Note, note
from sully.explain.sources import program


class ClusterTaints:
    def __init__(self, policies: Iterable[ClusterTaintPolicy] = ()) -> None:
        self._policies = sorted(policies, key=lambda policy: policy.metadata.name)

    def of(self, cluster: ManagedCluster, taint: Taint) -> ClusterTaint:
        """Return a taint with who added it, and for which condition."""
        type_ = self._condition_type(cluster, taint)
        reported = condition(cluster, type_) if type_ else None
        entry = set_by(read_history(cluster.metadata.annotations), taint_id(taint))
        by = self._source(cluster, taint) or (entry.by if entry is not None else "")
        return ClusterTaint(
            taint=taint_text(taint),
            added=taint.time_added,
            by=by,
            program="" if by else program(cluster.metadata, "f:spec", "f:taints"),
            condition=type_,
            status=reported.status if reported is not None else "",
            why=entry.reason if entry is not None else "",
            until=entry.expiry() if entry is not None else None,
        )

    def _source(self, cluster: ManagedCluster, taint: Taint) -> str:
        if is_health(taint):
            return "the hub"
        if (rule := self._policy(cluster, taint)) is not None:
            return f"policy {rule[0].metadata.name}"
        if _is_owned(cluster, taint):
            return "a policy that was deleted or changed"
        return ""

    def condition(self, cluster: ManagedCluster, taint: Taint, *, named: bool) -> Note | None:
        """Return the condition behind a taint; None if a user added it."""
        type_ = self._condition_type(cluster, taint)
        reported = condition(cluster, type_) if type_ else None
        if reported is None:
            return None
        return note(
            "ClusterCondition",
            cluster=cluster.metadata.name if named else "",
            type=type_,
            status=reported.status,
            at=reported.last_transition_time,
            message=reported.message or reported.reason,
        )

    def origin(self, cluster: ManagedCluster, taint: Taint) -> str:
        if (rule := self._policy(cluster, taint)) is not None:
            return f"ClusterTaintPolicy/{rule[0].metadata.name}"
        return f"ManagedCluster/{cluster.metadata.name}"

    def _condition_type(self, cluster: ManagedCluster, taint: Taint) -> str:
        if is_health(taint):
            return AVAILABLE
        rule = self._policy(cluster, taint)
        return rule[1].condition.type if rule is not None else ""

    def _policy(
        self, cluster: ManagedCluster, taint: Taint
    ) -> tuple[ClusterTaintPolicy, ClusterTaintPolicyRule] | None:
        """Return the policy that added a taint, and by which of its rules."""
        for policy in self._policies if _is_owned(cluster, taint) else ():
            for rule in policy.spec.rules:
                policy_taint = rule.taint.key, rule.taint.value, rule.taint.effect
                if policy_taint == taint_id(taint) and _selects(policy, cluster):
                    return policy, rule
        return None


def _is_owned(cluster: ManagedCluster, taint: Taint) -> bool:
    return taint_id(taint) in read_taint_ids(cluster.metadata.annotations.get(OWNED, ""))


def _selects(policy: ClusterTaintPolicy, cluster: ManagedCluster) -> bool:
    selector = policy.spec.cluster_selector
    try:
        return selector is not None and select_labels(selector).matches(cluster.metadata.labels)
    except MisconfiguredError:
        return False

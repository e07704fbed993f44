"""Who put a taint on a cluster: the hub for its health, a policy, or a person."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sully.api.cluster.policy_taints import OWNED, read_taint_ids
from sully.api.cluster.types import ManagedCluster, Taint
from sully.api.sully.types import ClusterTaintPolicy, ClusterTaintPolicyRule
from sully.domain.clusters.health import AVAILABLE, condition, is_health
from sully.domain.clusters.policies import taint_id as marked
from sully.domain.explaining.sources import manager
from sully.domain.explaining.wording import ended, mark, moment, since
from sully.domain.placement.predicates import select_labels
from sully.domain.placement.status import MisconfiguredError


class ClusterMarks:
    """What is known of the taints of clusters."""

    def __init__(self, now: datetime, policies: Iterable[ClusterTaintPolicy] = ()) -> None:
        self._now = now
        self._policies = tuple(policies)

    def told(self, cluster: ManagedCluster, taint: Taint) -> str:
        """Write a taint with who set it, and when."""
        text = f"taint {mark(taint)}"
        if taint.time_added is not None:
            text += f", set {moment(taint.time_added, self._now)}"
        author = self.author(cluster, taint)
        return f"{text} by {author}" if author else text

    def why(self, cluster: ManagedCluster, taint: Taint) -> str:
        """Tell the condition behind a taint, since when it is so; nothing if a person set it."""
        kind = self._behind(cluster, taint)
        found = condition(cluster, kind) if kind else None
        if found is None:
            return ""
        at = since(found.last_transition_time, self._now)
        return f"{kind} is {found.status}{at}: {ended(found.message or found.reason)}"

    def who(self, cluster: ManagedCluster, taint: Taint) -> str:
        """Say who set a taint; nothing if nobody knows."""
        found = self.policy(cluster, taint)
        if is_health(taint):
            return "the hub"
        if found is not None:
            return f"policy {found[0].metadata.name}"
        if marked(taint) in read_taint_ids(cluster.metadata.annotations.get(OWNED, "")):
            return "a policy that is gone or changed"
        return manager(cluster.metadata, "f:spec", "f:taints")

    def author(self, cluster: ManagedCluster, taint: Taint) -> str:
        """Say who set a taint, and for which condition if it was no person."""
        who, kind = self.who(cluster, taint), self._behind(cluster, taint)
        if not kind:
            return who
        told = condition(cluster, kind)
        state = f"is {told.status}" if told is not None else "was never reported"
        return f"{who} because its condition {kind} {state}"

    def _behind(self, cluster: ManagedCluster, taint: Taint) -> str:
        if is_health(taint):
            return AVAILABLE
        found = self.policy(cluster, taint)
        return found[1].condition.type if found is not None else ""

    def policy(
        self, cluster: ManagedCluster, taint: Taint
    ) -> tuple[ClusterTaintPolicy, ClusterTaintPolicyRule] | None:
        """Return the policy that set a taint, and by which of its rules."""
        if marked(taint) not in read_taint_ids(cluster.metadata.annotations.get(OWNED, "")):
            return None
        for policy in sorted(self._policies, key=lambda each: each.metadata.name):
            for rule in policy.spec.rules:
                wanted = rule.taint.key, rule.taint.value, rule.taint.effect
                if wanted == marked(taint) and _is_for(policy, cluster):
                    return policy, rule
        return None

    def origin(self, cluster: ManagedCluster, taint: Taint) -> str:
        """Name the object behind a taint."""
        found = self.policy(cluster, taint)
        if found is not None:
            return f"ClusterTaintPolicy/{found[0].metadata.name}"
        return f"ManagedCluster/{cluster.metadata.name}"


def _is_for(policy: ClusterTaintPolicy, cluster: ManagedCluster) -> bool:
    selector = policy.spec.cluster_selector
    try:
        return selector is not None and select_labels(selector).matches(cluster.metadata.labels)
    except MisconfiguredError:
        return False

"""The taints of clusters in a plan: which ones the controllers of the hub set, and when.

The decisions are those of the controllers, `domain/clusters/health.py` and
`domain/clusters/policies.py`. Each cluster is simulated by itself: its taints do not depend on
placements. Limits of policies count the clusters that were simulated before as they are at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from msgspec.structs import replace

from sully.api.cluster.taints.policy_states import STATES, read_states, write_states
from sully.api.cluster.taints.policy_taints import OWNED, read_taint_ids, write_taint_ids
from sully.api.cluster.types import UNAVAILABLE, UNREACHABLE, ManagedCluster, Taint
from sully.api.sully.types import ClusterTaintPolicy
from sully.domain.clusters.health import AVAILABLE, condition, desired_taints
from sully.domain.clusters.policies import policy_taints
from sully.domain.clusters.policy_limits import Member, limit_refusal
from sully.domain.placement.changes import PutObject
from sully.machinery.meta import Condition

_HEALTH_TAINTS = {UNREACHABLE: "Unknown", UNAVAILABLE: "False"}
"""The status of the availability condition of a cluster with each health taint."""


class ClusterTaintSimulator:
    """Simulates the controllers that set taints of clusters."""

    def __init__(
        self, policies: Iterable[ClusterTaintPolicy], existing: Mapping[str, ManagedCluster]
    ) -> None:
        self._policies = tuple(policies)
        self._existing = existing
        self._simulated: dict[str, ManagedCluster] = {}
        """Clusters as they are in this plan."""

    def after_change(
        self, cluster: ManagedCluster, now: datetime, until: datetime
    ) -> Iterator[PutObject]:
        """Yield a cluster that is changed now, with the taints that it has then and later.

        A health taint that a user adds stands for a cluster that becomes unhealthy.
        """
        taint = self.added_health_taint(cluster)
        if taint:
            cluster = _with_availability(cluster, _HEALTH_TAINTS[taint], now)
        yield from self._updates(cluster, now, until, stored=None)

    def added_health_taint(self, cluster: ManagedCluster) -> str:
        """Return the key of the health taint that a change adds to a cluster, if any."""
        existing = self._existing.get(cluster.metadata.name)
        old_keys = {taint.key for taint in existing.spec.taints} if existing is not None else set()
        keys = (taint.key for taint in cluster.spec.taints)
        return next((key for key in keys if key in _HEALTH_TAINTS and key not in old_keys), "")

    def without_change(
        self, cluster: ManagedCluster, now: datetime, until: datetime
    ) -> Iterator[PutObject]:
        """Yield a cluster that is not changed each time its taints change."""
        if self._policies or OWNED in cluster.metadata.annotations:
            yield from self._updates(cluster, now, until, stored=cluster)

    def _updates(
        self,
        cluster: ManagedCluster,
        now: datetime,
        until: datetime,
        *,
        stored: ManagedCluster | None,
    ) -> Iterator[PutObject]:
        time: datetime | None = now
        while time is not None and time <= until:
            cluster, requeue_at = self._reconcile(cluster, time)
            if cluster != stored:
                yield PutObject(cluster, time - now)
                stored = cluster
            time = requeue_at

    def _reconcile(
        self, cluster: ManagedCluster, now: datetime
    ) -> tuple[ManagedCluster, datetime | None]:
        """Return a cluster with all its taints, and when they may change again."""
        name, old = cluster.metadata.name, cluster.metadata.annotations
        owned, states = read_taint_ids(old.get(OWNED, "")), read_states(old.get(STATES, ""))
        self._simulated[name] = cluster
        verdict = policy_taints(
            cluster,
            self._policies,
            owned,
            now,
            states=states,
            refusal=lambda policy: limit_refusal(policy, name, self._members()),
        )
        if verdict.owned != owned or verdict.states != states:
            annotations = old | {OWNED: write_taint_ids(verdict.owned)}
            if states or verdict.states:
                annotations[STATES] = write_states(verdict.states)
            metadata = replace(cluster.metadata, annotations=annotations)
            cluster = replace(cluster, metadata=metadata)
        cluster = _with_taints(cluster, verdict.taints, now)
        managed = self._manages_health_taints(name)
        health = desired_taints(cluster) if managed else None
        if health is not None:
            cluster = _with_taints(cluster, health, now)
        self._simulated[name] = cluster
        return cluster, verdict.requeue_at

    def _members(self) -> Iterator[Member]:
        for name, cluster in {**self._existing, **self._simulated}.items():
            owned = read_taint_ids(cluster.metadata.annotations.get(OWNED, ""))
            yield Member(name, cluster.metadata.labels, owned)

    def _manages_health_taints(self, name: str) -> bool:
        """Report whether the hub sets the health taints of a cluster."""
        existing = self._existing.get(name)
        return existing is None or desired_taints(existing) is None


def _with_availability(cluster: ManagedCluster, status: str, now: datetime) -> ManagedCluster:
    """Return a cluster with another status of its availability condition."""
    current = condition(cluster, AVAILABLE) or Condition(
        type=AVAILABLE, status=status, reason="Planned", message=""
    )
    available = replace(current, status=status, last_transition_time=now)
    others = tuple(other for other in cluster.status.conditions if other.type != AVAILABLE)
    return replace(cluster, status=replace(cluster.status, conditions=(*others, available)))


def _with_taints(cluster: ManagedCluster, taints: Iterable[Taint], now: datetime) -> ManagedCluster:
    """Return a cluster with these taints; new ones get their `timeAdded` as on a server."""
    time_added = now.replace(microsecond=0)
    stamped = tuple(
        taint if taint.time_added is not None else replace(taint, time_added=time_added)
        for taint in taints
    )
    return replace(cluster, spec=replace(cluster.spec, taints=stamped))

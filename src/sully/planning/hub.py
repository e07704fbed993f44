"""The hub in a plan for clusters: which taints its controllers put on a cluster, and when.

The tables are the hub's own, `domain/clusters/health.py` and `domain/clusters/policies.py`. A
cluster is followed by itself, because nothing that placements decide matters to the hub.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from msgspec.structs import replace

from sully.api.cluster.policy_taints import OWNED, read_taint_ids, write_taint_ids
from sully.api.cluster.types import UNAVAILABLE, UNREACHABLE, ManagedCluster, Taint
from sully.api.sully.types import ClusterTaintPolicy
from sully.domain.clusters.health import AVAILABLE, condition, wanted_taints
from sully.domain.clusters.policies import policy_taints
from sully.domain.placement.changes import PutObject
from sully.machinery.meta import Condition

_HEALTH = {UNREACHABLE: "Unknown", UNAVAILABLE: "False"}
"""What is said about the availability of a cluster with a taint of the hub's own."""


class Hub:
    """What keeps the taints of clusters."""

    def __init__(
        self, policies: Iterable[ClusterTaintPolicy], known: Mapping[str, ManagedCluster]
    ) -> None:
        self._policies = tuple(policies)
        self._known = known

    def puts(self, cluster: ManagedCluster, now: datetime, until: datetime) -> Iterator[PutObject]:
        """Yield a cluster that somebody changes now, as the hub then has it, and later again.

        Who tries a taint of the hub's own asks what comes when the cluster is so.
        """
        tried = self.tried(cluster)
        if tried:
            cluster = _of_health(cluster, _HEALTH[tried], now)
        yield from self._course(cluster, now, until, written=None)

    def tried(self, cluster: ManagedCluster) -> str:
        """Return the key of a taint of the hub's own that a cluster gets by a change, if any."""
        known = self._known.get(cluster.metadata.name)
        has = {each.key for each in known.spec.taints} if known is not None else set()
        keys = (each.key for each in cluster.spec.taints)
        return next((key for key in keys if key in _HEALTH and key not in has), "")

    def goes_on(
        self, cluster: ManagedCluster, now: datetime, until: datetime
    ) -> Iterator[PutObject]:
        """Yield what the hub will do to a cluster that nobody changes."""
        if self._policies or OWNED in cluster.metadata.annotations:
            yield from self._course(cluster, now, until, written=cluster)

    def _course(
        self,
        cluster: ManagedCluster,
        now: datetime,
        until: datetime,
        *,
        written: ManagedCluster | None,
    ) -> Iterator[PutObject]:
        at: datetime | None = now
        while at is not None and at <= until:
            cluster, look_at = self._settled(cluster, at)
            if cluster != written:
                yield PutObject(cluster, at - now)
                written = cluster
            at = look_at

    def _settled(
        self, cluster: ManagedCluster, now: datetime
    ) -> tuple[ManagedCluster, datetime | None]:
        """Return a cluster with the taints it has when all controllers are content."""
        owned = read_taint_ids(cluster.metadata.annotations.get(OWNED, ""))
        verdict = policy_taints(cluster, self._policies, owned, now)
        if verdict.owned != owned:
            annotations = cluster.metadata.annotations | {OWNED: write_taint_ids(verdict.owned)}
            metadata = replace(cluster.metadata, annotations=annotations)
            cluster = replace(cluster, metadata=metadata)
        cluster = _tainted(cluster, verdict.taints, now)
        health = wanted_taints(cluster) if self._keeps(cluster.metadata.name) else None
        if health is not None:
            cluster = _tainted(cluster, health, now)
        return cluster, verdict.look_at

    def _keeps(self, name: str) -> bool:
        """Report whether the hub taints a cluster by its health."""
        known = self._known.get(name)
        return known is None or wanted_taints(known) is None


def _of_health(cluster: ManagedCluster, status: str, now: datetime) -> ManagedCluster:
    """Return a cluster of which its agent, or its silence, says something else."""
    found = condition(cluster, AVAILABLE) or Condition(
        type=AVAILABLE, status=status, reason="Planned", message=""
    )
    fresh = replace(found, status=status, last_transition_time=now)
    others = tuple(each for each in cluster.status.conditions if each.type != AVAILABLE)
    return replace(cluster, status=replace(cluster.status, conditions=(*others, fresh)))


def _tainted(cluster: ManagedCluster, taints: Iterable[Taint], now: datetime) -> ManagedCluster:
    """Return a cluster with taints that are stamped as the server does it."""
    stamp = now.replace(microsecond=0)
    stamped = tuple(
        each if each.time_added is not None else replace(each, time_added=stamp) for each in taints
    )
    return replace(cluster, spec=replace(cluster.spec, taints=stamped))

"""Compares the clocks of agents with ours, at the moment they renew their leases.

Reads clusters and leases; writes the condition about the clock, when it turns. The time of a lease
is the agent's, and just then it should be ours too; at any other moment it says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sully.api.cluster.types import ManagedCluster
from sully.client.informers.informer import Informer
from sully.client.transport import Key, Transport
from sully.controllers.clusters.kinds import LEASING
from sully.controllers.clusters.leases import cluster_of
from sully.controllers.conditions import write_conditions
from sully.controllers.framework import DONE, Result, Watch
from sully.controllers.kinds import CLUSTER_LEASE, ClusterLease
from sully.domain.clusters.health import CLOCK_SYNCED, clock_finding, condition
from sully.runtime.clock import Clock
from sully.views.fleet_kinds import CLUSTERS


class Renewals:
    """Tells of leases that were just renewed, and of nothing else: a source like an informer."""

    def __init__(self, leases: Informer[ClusterLease]) -> None:
        self._leases = leases

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[ClusterLease], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the keys of each renewal."""

        def handle(old: ClusterLease | None, new: ClusterLease | None) -> None:
            if old is None or new is None or old.spec.renew_time == new.spec.renew_time:
                return
            for key in to_keys(new):
                add(key)

        return self._leases.on_change(handle)


class ClockSyncController:
    """Says whether the clock of a cluster goes with ours."""

    name = "managed-cluster-clock-sync"

    def __init__(
        self,
        *,
        clusters: Informer[ManagedCluster],
        leases: Informer[ClusterLease],
        transport: Transport,
        clock: Clock,
    ) -> None:
        self._clusters = clusters
        self._leases = leases
        self._transport = transport
        self._clock = clock

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for renewals."""
        yield Watch(Renewals(self._leases), cluster_of)

    async def reconcile(self, key: Key) -> Result:
        """Compare the clocks."""
        cluster = self._clusters.get(key)
        lease = self._leases.get(Key(key.name, CLUSTER_LEASE))
        if cluster is None or lease is None or lease.spec.renew_time is None:
            return DONE
        now = self._clock.now()
        found = clock_finding(cluster, lease.spec.renew_time, now)
        before = condition(cluster, CLOCK_SYNCED)
        if before is None or before.status != found.status:
            await write_conditions(self._transport, CLUSTERS, cluster, [found], now=now, by=LEASING)
        return DONE

"""Registers the simulated clusters with the hub, as an administrator would.

Every cluster is reconciled once, at the start. An existing one is unchanged, except for its lease
duration; clusters beyond the fleet are removed, and their namespaces stay, as on any hub. A cluster
that is deleted later is not recreated until the next start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sully.api.cluster.types import ManagedCluster
from sully.client.informers.informer import Informer, own_key
from sully.client.options import DeleteOptions, WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.framework import DONE, Result, Watch
from sully.controllers.simulatedclusters.kinds import AGENT
from sully.domain.simulated.clusters import Members, cluster_of, is_ours, name_of, number_of
from sully.machinery.errors import AlreadyExists, NotFound
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger
from sully.views.fleet_kinds import CLUSTERS

log = get_logger("hollow")

WORKERS = 16
"""Clusters that are made at a time; writes that are under way together are flushed together."""
PATIENCE = 2.0
"""Seconds between two log lines about the progress."""
_OWN = WriteOptions(field_manager=AGENT)


class _Wanted:
    """The wanted clusters: a source of each key once."""

    def __init__(self, count: int) -> None:
        self._count = count

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[Key], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add all keys; there will be no more."""
        for number in range(self._count):
            for key in to_keys(Key("", name_of(number))):
                add(key)
        return lambda: None


class SimulatedClusters:
    """Reconciles simulated clusters with the wanted number."""

    name = AGENT

    def __init__(
        self,
        *,
        members: Members,
        clusters: Informer[ManagedCluster],
        transport: Transport,
        clock: Clock,
    ) -> None:
        self._members = members
        self._clusters = clusters
        self._transport = transport
        self._clock = clock
        self._done: set[Key] = set()
        self._said = clock.monotonic()

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for each cluster of the fleet once, and for clusters beyond it."""
        yield Watch(_Wanted(self._members.count), lambda key: (key,))
        yield Watch(self._clusters, own_key)

    async def reconcile(self, key: Key) -> Result:
        """Register a cluster, or remove one that is not wanted any more."""
        number = number_of(key.name)
        if key in self._done or number is None:
            return DONE
        cluster = self._clusters.get(key)
        if self._members.has(number):
            await self._register(key, number, cluster)
            self._done.add(key)
            self._log_progress()
        elif cluster is not None and is_ours(cluster.metadata.labels):
            await self._remove(key, cluster)
        return DONE

    async def _register(self, key: Key, number: int, found: ManagedCluster | None) -> None:
        wanted = cluster_of(number, self._members)
        if found is None:
            try:
                await self._transport.create(CLUSTERS, wanted, options=_OWN)
            except AlreadyExists:
                log.warning("cluster exists and is not simulated", cluster=key.name)
        elif found.spec.lease_duration_seconds != self._members.duration:
            patch = {"spec": {"leaseDurationSeconds": self._members.duration}}
            await self._transport.patch(CLUSTERS, key, patch, options=_OWN)

    async def _remove(self, key: Key, found: ManagedCluster) -> None:
        if found.metadata.deletion_timestamp is not None:
            return
        try:
            await self._transport.delete(CLUSTERS, key, DeleteOptions(uid=found.metadata.uid))
        except NotFound:
            return
        log.info("simulated cluster deleted", cluster=key.name)

    def _log_progress(self) -> None:
        now = self._clock.monotonic()
        if now - self._said >= PATIENCE:
            self._said = now
            log.info(
                "registering simulated clusters", ready=len(self._done), of=self._members.count
            )

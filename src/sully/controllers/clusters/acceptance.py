"""Lets clusters in: a namespace and rights for the agent of each cluster that the hub accepts.

`AcceptanceController` follows `hubAcceptsClient`, `CleanupController` sees to the end of a cluster.
They are two, because a cluster that cannot be changed, not even by a finalizer, can be accepted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sully.api.cluster.types import ManagedCluster
from sully.client.events import EventRecorder, Reference
from sully.client.informers.informer import Informer, own_key
from sully.client.options import WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.clusters.kinds import ACCEPTING
from sully.controllers.clusters.rights import Rights
from sully.controllers.conditions import same, write_conditions
from sully.controllers.framework import AGAIN, DONE, Result, Watch
from sully.domain.clusters.hub import ADMITTED, DENIED, FINALIZER, is_accepted, troubled
from sully.domain.placement.conditions import Finding
from sully.machinery.errors import NotFound
from sully.runtime.clock import Clock
from sully.views.fleet_kinds import CLUSTERS


class AcceptanceController:
    """Gives and takes what an agent needs."""

    name = ACCEPTING

    def __init__(
        self,
        *,
        clusters: Informer[ManagedCluster],
        rights: Rights,
        transport: Transport,
        recorder: EventRecorder,
        clock: Clock,
    ) -> None:
        self._clusters = clusters
        self._rights = rights
        self._transport = transport
        self._recorder = recorder
        self._clock = clock

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for clusters, and for what was made for them."""
        yield Watch(self._clusters, own_key)
        yield from self._rights.watches()

    async def reconcile(self, key: Key) -> Result:
        """Accept or deny a cluster; one that was never accepted is left alone."""
        cluster = self._clusters.get(key)
        if cluster is None or cluster.metadata.deletion_timestamp is not None:
            return DONE
        if cluster.spec.hub_accepts_client:
            return await self._accept(cluster)
        # The agent itself writes the status, so what it says there does not count alone.
        if is_accepted(cluster) or self._rights.given(key.name):
            await self._rights.restrict(key.name)
            if await self._say(cluster, DENIED):
                self._tell(key.name, "ManagedClusterDenied", "denied")
        return DONE

    async def _accept(self, cluster: ManagedCluster) -> Result:
        name = cluster.metadata.name
        errors = await self._rights.give(name)
        # That took a while, and others write about a new cluster too.
        cluster = self._clusters.get(Key("", name)) or cluster
        if errors:
            await self._say(cluster, troubled(errors))
            return AGAIN
        if await self._say(cluster, ADMITTED):
            self._tell(name, "ManagedClusterAccepted", "accepted")
        return DONE

    async def _say(self, cluster: ManagedCluster, found: Finding) -> bool:
        now = self._clock.now()
        return await write_conditions(
            self._transport, CLUSTERS, cluster, [found], now=now, by=self.name
        )

    def _tell(self, cluster: str, reason: str, verb: str) -> None:
        about = Reference(CLUSTERS.api_version, CLUSTERS.kind, Key(cluster, cluster))
        text = f"managed cluster {cluster} is {verb} by hub cluster admin"
        self._recorder.event(about, "Normal", reason, text)


class CleanupController:
    """Holds a cluster until its agent's rights are gone."""

    name = "managed-cluster-cleanup"

    def __init__(
        self, *, clusters: Informer[ManagedCluster], rights: Rights, transport: Transport
    ) -> None:
        self._clusters = clusters
        self._rights = rights
        self._transport = transport

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for clusters."""
        yield Watch(self._clusters, own_key)

    async def reconcile(self, key: Key) -> Result:
        """Put our finalizer on a cluster that stays, take it from one that leaves."""
        cluster = self._clusters.get(key)
        if cluster is None:
            return DONE
        held = FINALIZER in cluster.metadata.finalizers
        if cluster.metadata.deletion_timestamp is None:
            if not held:
                await self._write(cluster, (*cluster.metadata.finalizers, FINALIZER))
        elif held:
            await self._rights.take(key.name)
            others = (each for each in cluster.metadata.finalizers if each != FINALIZER)
            await self._write(cluster, others)
        return DONE

    async def _write(self, cluster: ManagedCluster, finalizers: Iterable[str]) -> None:
        patch = same(cluster.metadata)
        patch["metadata"]["finalizers"] = list(finalizers)
        options = WriteOptions(field_manager=ACCEPTING)
        key = Key("", cluster.metadata.name)
        try:
            await self._transport.patch(CLUSTERS, key, patch, options=options)
        except NotFound:
            return

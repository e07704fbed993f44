"""Finds clusters whose agent is silent, by the age of its lease.

Reads clusters and leases; makes a lease where there is none, and says Unknown about a cluster when
its lease is too old. Nothing polls: a key comes back exactly when its lease will be too old.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sully.api.cluster.types import CLUSTER_NAME_LABEL, ManagedCluster
from sully.client.events import EventRecorder, Reference
from sully.client.informers.informer import Informer, own_key
from sully.client.options import WriteOptions
from sully.client.transport import Key, Kind, Transport
from sully.controllers.clusters.hearing import Hearing
from sully.controllers.clusters.kinds import LEASING
from sully.controllers.conditions import write_conditions
from sully.controllers.framework import DONE, Result, Watch
from sully.controllers.kinds import CLUSTER_LEASE, CLUSTER_LEASES, ClusterLease
from sully.domain.clusters.health import (
    SILENT,
    CreateLease,
    Fresh,
    Ignore,
    Lease,
    Stopped,
    unavailable_text,
    watch_lease,
)
from sully.machinery.errors import AlreadyExists
from sully.machinery.timestamps import format_micro_time
from sully.runtime.clock import Clock
from sully.views.fleet_kinds import CLUSTERS

_WHOLE: Kind[dict[str, Any]] = CLUSTER_LEASES.read_as(dict)
_OWN = WriteOptions(field_manager=LEASING)


class LeaseController:
    """Watches over the leases of clusters."""

    name = LEASING

    def __init__(
        self,
        *,
        clusters: Informer[ManagedCluster],
        leases: Informer[ClusterLease],
        transport: Transport,
        recorder: EventRecorder,
        clock: Clock,
        hearing: Hearing | None = None,
    ) -> None:
        self._clusters = clusters
        self._leases = leases
        self._hearing = hearing
        self._transport = transport
        self._recorder = recorder
        self._clock = clock

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for clusters and for their leases."""
        yield Watch(self._clusters, own_key)
        yield Watch(self._leases, cluster_of)

    async def reconcile(self, key: Key) -> Result:
        """Look at the lease of a cluster, and say when to look again."""
        cluster = self._clusters.get(key)
        if cluster is None:
            return DONE
        now = self._clock.now()
        match watch_lease(cluster, self._lease(Key(key.name, CLUSTER_LEASE)), now):
            case Ignore():
                return DONE
            case CreateLease():
                await self._create(key.name, now)
                return DONE
            case Fresh(look_at):
                return Result(requeue_after=look_at - now)
            case Stopped(look_at, news):
                if news:
                    await self._give_up(cluster, now)
                return Result(requeue_after=look_at - now)

    def _lease(self, at: Key) -> Lease | None:
        found = self._leases.get(at)
        if found is None:
            return None
        since = self._hearing.since(at) if self._hearing is not None else None
        return Lease(found.spec.renew_time, since)

    async def _create(self, cluster: str, now: datetime) -> None:
        labels = {CLUSTER_NAME_LABEL: cluster}
        lease = {
            "metadata": {"name": CLUSTER_LEASE, "namespace": cluster, "labels": labels},
            "spec": {"holderIdentity": CLUSTER_LEASE, "renewTime": format_micro_time(now)},
        }
        try:
            await self._transport.create(_WHOLE, lease, options=_OWN)
        except AlreadyExists:
            # Without the label nobody would see it; with it nothing changes.
            patch = {"metadata": {"labels": labels}}
            await self._transport.patch(_WHOLE, Key(cluster, CLUSTER_LEASE), patch, options=_OWN)

    async def _give_up(self, cluster: ManagedCluster, now: datetime) -> None:
        await write_conditions(self._transport, CLUSTERS, cluster, [SILENT], now=now, by=self.name)
        name = cluster.metadata.name
        # In the namespace of the cluster, where those look who are responsible for it.
        about = Reference(
            CLUSTERS.api_version, CLUSTERS.kind, Key(name, name), cluster.metadata.uid
        )
        reason = "AvailableUnknown"
        self._recorder.event(about, "Warning", reason, unavailable_text(name), action=reason)


def cluster_of(lease: ClusterLease) -> tuple[Key]:
    """Map a lease to the cluster whose agent renews it."""
    return (Key("", lease.metadata.namespace),)

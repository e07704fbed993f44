"""Watches the leases that the agents of clusters renew.

`LeaseController` creates missing leases, and sets a cluster to Unknown when its lease expires. It
does not poll: a key is requeued for when its lease will expire. `ClockSyncController` compares the
clock of an agent with ours when it renews its lease; at other times the lease does not show it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sully.api.cluster.types import CLUSTER_NAME_LABEL, ManagedCluster
from sully.client.events import Reference
from sully.client.informers.informer import Informer, own_key
from sully.client.objects import key_of
from sully.client.options import WriteOptions
from sully.client.transport import Key, Kind, Transport
from sully.controllers.clusters.names import LEASE_CONTROLLER
from sully.controllers.framework.conditions import write_conditions
from sully.controllers.framework.controller import DONE, ControllerEnv, Result, Watch
from sully.controllers.framework.kinds import CLUSTER_LEASE, CLUSTER_LEASES, ClusterLease
from sully.controllers.framework.sources import Filtered
from sully.domain.clusters.health import (
    CLOCK_SYNCED,
    LEASE_EXPIRED,
    CreateLease,
    Fresh,
    Ignore,
    Lease,
    Stopped,
    clock_finding,
    condition,
    unavailable_text,
    watch_lease,
)
from sully.machinery.errors import AlreadyExists
from sully.machinery.formats.timestamps import format_micro_time
from sully.runtime.clock import Clock
from sully.views.fleet_kinds import CLUSTERS

_LEASES: Kind[dict[str, Any]] = CLUSTER_LEASES.read_as(dict)
_OPTIONS = WriteOptions(field_manager=LEASE_CONTROLLER)


class RenewalObserver:
    """Knows since when the hub could have observed the renewal of a lease.

    A server that was down finds every lease expired when it starts, though no agent could renew
    one. Such a lease counts from the start of the server, and one that expired while the server was
    unreachable from the last failure; a renewal that was observed counts as it is.
    """

    def __init__(
        self, leases: Informer[ClusterLease], *, clock: Clock, serving_since: datetime | None
    ) -> None:
        self._leases = leases
        self._clock = clock
        self._serving_since = serving_since
        """When the server started; None: so long ago that it does not matter."""
        self._observed: dict[Key, datetime] = {}
        """When a renewal was last observed."""
        leases.on_change(self._changed)

    def observable_since(self, lease: Key) -> datetime | None:
        """Return since when a renewal would have been observed; None: for as long as it matters."""
        freshness = self._leases.freshness
        if freshness.problem is not None:
            return self._clock.now()
        observed, failure = self._observed.get(lease), freshness.last_failure
        if observed is not None and (failure is None or failure <= observed):
            return None
        return max(filter(None, (self._serving_since, failure)), default=None)

    def _changed(self, old: ClusterLease | None, new: ClusterLease | None) -> None:
        if new is None:
            self._observed.pop(key_of(old), None)
        elif self._is_renewal(old, new):
            self._observed[key_of(new)] = self._clock.now()

    def _is_renewal(self, old: ClusterLease | None, new: ClusterLease) -> bool:
        """Report whether a lease was created or renewed while it was watched."""
        return self._leases.synced if old is None else _is_renewal(old, new)


class LeaseController:
    """Reports clusters whose agents no longer renew their leases."""

    name = LEASE_CONTROLLER

    def __init__(
        self,
        *,
        clusters: Informer[ManagedCluster],
        leases: Informer[ClusterLease],
        env: ControllerEnv,
        observer: RenewalObserver | None = None,
    ) -> None:
        self._clusters = clusters
        self._leases = leases
        self._observer = observer
        self._transport, self._recorder, self._clock = env

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for clusters and for their leases."""
        yield Watch(self._clusters, own_key)
        yield Watch(self._leases, cluster_of)

    async def reconcile(self, key: Key) -> Result:
        """Check the lease of a cluster, and requeue it for when it will expire."""
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
            case Fresh(due):
                return Result(requeue_after=due - now)
            case Stopped(due, changed):
                if changed:
                    await self._set_unknown(cluster, now)
                return Result(requeue_after=due - now)

    def _lease(self, key: Key) -> Lease | None:
        lease = self._leases.get(key)
        if lease is None:
            return None
        since = self._observer.observable_since(key) if self._observer is not None else None
        return Lease(lease.spec.renew_time, since)

    async def _create(self, cluster: str, now: datetime) -> None:
        labels = {CLUSTER_NAME_LABEL: cluster}
        lease = {
            "metadata": {"name": CLUSTER_LEASE, "namespace": cluster, "labels": labels},
            "spec": {"holderIdentity": CLUSTER_LEASE, "renewTime": format_micro_time(now)},
        }
        try:
            await self._transport.create(_LEASES, lease, options=_OPTIONS)
        except AlreadyExists:
            # Without the label the informer does not see it.
            patch = {"metadata": {"labels": labels}}
            await self._transport.patch(
                _LEASES, Key(cluster, CLUSTER_LEASE), patch, options=_OPTIONS
            )

    async def _set_unknown(self, cluster: ManagedCluster, now: datetime) -> None:
        await write_conditions(
            self._transport, CLUSTERS, cluster, [LEASE_EXPIRED], now=now, field_manager=self.name
        )
        name = cluster.metadata.name
        # In the namespace of the cluster, which its administrators can read.
        about = Reference(
            CLUSTERS.api_version, CLUSTERS.kind, Key(name, name), cluster.metadata.uid
        )
        reason = "AvailableUnknown"
        self._recorder.event(about, "Warning", reason, unavailable_text(name), action=reason)


def cluster_of(lease: ClusterLease) -> tuple[Key]:
    """Map a lease to the cluster whose agent renews it."""
    return (Key("", lease.metadata.namespace),)


class ClockSyncController:
    """Reports whether the clock of a cluster is in sync with ours."""

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
        yield Watch(Filtered(self._leases, _is_renewal), cluster_of)

    async def reconcile(self, key: Key) -> Result:
        """Compare the clocks."""
        cluster = self._clusters.get(key)
        lease = self._leases.get(Key(key.name, CLUSTER_LEASE))
        if cluster is None or lease is None or lease.spec.renew_time is None:
            return DONE
        now = self._clock.now()
        finding = clock_finding(cluster, lease.spec.renew_time, now)
        current = condition(cluster, CLOCK_SYNCED)
        if current is None or current.status != finding.status:
            await write_conditions(
                self._transport,
                CLUSTERS,
                cluster,
                [finding],
                now=now,
                field_manager=LEASE_CONTROLLER,
            )
        return DONE


def _is_renewal(old: ClusterLease | None, new: ClusterLease | None) -> bool:
    return old is not None and new is not None and old.spec.renew_time != new.spec.renew_time

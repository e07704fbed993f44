"""Simulates managed clusters: registers them with the hub, and runs their agents.

`SimulatedClusters` registers each cluster once, at the start, as an administrator would. A cluster
that exists is unchanged, except for its lease duration; clusters beyond the fleet are deleted, and
their namespaces stay, as on any hub. A cluster that is deleted later is not recreated until the
next start. `SimulatedAgents` renews leases and reports health, with the user of each cluster's
agent, so that the hub's roles and protections apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from sully.api.cluster.types import ManagedCluster
from sully.client.events import EventRecorder, Reference
from sully.client.informers.informer import Informer, own_key
from sully.client.informers.reflector import ObjectSelector
from sully.client.leases import LEASES
from sully.client.options import DeleteOptions, WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.framework.conditions import write_conditions
from sully.controllers.framework.controller import DONE, REQUEUE, ControllerEnv, Result, Watch
from sully.controllers.framework.kinds import CLUSTER_LEASE
from sully.controllers.framework.manager import Manager
from sully.controllers.framework.sources import InitialKeys, same_key
from sully.domain.clusters.health import AVAILABLE, LEASE_DURATION, condition
from sully.domain.coordination import Lease
from sully.domain.placement.results.conditions import PlacementCondition
from sully.domain.simulated import clusters as simulated
from sully.domain.simulated.clusters import Members, cluster_of, name_of, number_of
from sully.domain.simulated.fleet import SIMULATED, is_simulated
from sully.machinery.errors import AlreadyExists, Conflict, NotFound
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger
from sully.views.fleet_kinds import CLUSTERS

log = get_logger("simulated")

Obj = dict[str, Any]

USER_NAME = "simulated-clusters"
"""The name of the user, and of the field manager."""
ONLY_SIMULATED = ObjectSelector(label_selector=f"{SIMULATED}=true")
CLUSTER_WORKERS = 16
"""Clusters that are created concurrently; concurrent writes share one flush of the store."""
AGENT_WORKERS = 8
PROGRESS_SECONDS = 2.0
"""Seconds between two log lines about the progress."""
_OPTIONS = WriteOptions(field_manager=USER_NAME)


class SimulatedClusters:
    """Reconciles simulated clusters with the configured fleet."""

    name = USER_NAME

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
        self._registered: set[Key] = set()
        self._logged_at = clock.monotonic()

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for each cluster of the fleet once, and for clusters beyond it."""
        keys = (Key("", name_of(number)) for number in range(self._members.count))
        yield Watch(InitialKeys(keys), same_key)
        yield Watch(self._clusters, own_key)

    async def reconcile(self, key: Key) -> Result:
        """Register a cluster, or delete one beyond the fleet."""
        number = number_of(key.name)
        if key in self._registered or number is None:
            return DONE
        cluster = self._clusters.get(key)
        if self._members.has(number):
            await self._register(key, number, cluster)
            self._registered.add(key)
            self._log_progress()
        elif cluster is not None and is_simulated(cluster.metadata.labels):
            await self._delete(key, cluster)
        return DONE

    async def _register(self, key: Key, number: int, cluster: ManagedCluster | None) -> None:
        if cluster is None:
            body = cluster_of(number, self._members)
            try:
                await self._transport.create(CLUSTERS, body, options=_OPTIONS)
            except AlreadyExists:
                log.warning("cluster exists and is not simulated", cluster=key.name)
        elif cluster.spec.lease_duration_seconds != self._members.duration:
            patch = {"spec": {"leaseDurationSeconds": self._members.duration}}
            await self._transport.patch(CLUSTERS, key, patch, options=_OPTIONS)

    async def _delete(self, key: Key, cluster: ManagedCluster) -> None:
        if cluster.metadata.deletion_timestamp is not None:
            return
        try:
            await self._transport.delete(CLUSTERS, key, DeleteOptions(uid=cluster.metadata.uid))
        except NotFound:
            return
        log.info("simulated cluster deleted", cluster=key.name)

    def _log_progress(self) -> None:
        now = self._clock.monotonic()
        if now - self._logged_at >= PROGRESS_SECONDS:
            self._logged_at = now
            log.info(
                "registering simulated clusters",
                ready=len(self._registered),
                of=self._members.count,
            )


class _Agent(msgspec.Struct):
    """The state of one agent."""

    transport: Transport
    due: float
    """When it renews its lease, by the monotonic clock."""
    duration: int = 0
    renewals: int = 0
    lease: Lease | None = None
    """The lease after the last renewal."""


class SimulatedAgents:
    """The agents of all simulated clusters."""

    name = "simulated-cluster-agents"

    def __init__(
        self,
        *,
        clusters: Informer[ManagedCluster],
        transport_for: Callable[[str], Transport],
        recorder: EventRecorder,
        clock: Clock,
    ) -> None:
        self._clusters = clusters
        self._transport_for = transport_for
        self._recorder = recorder
        self._clock = clock
        self._agents: dict[str, _Agent] = {}

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for clusters; renewals are requeued."""
        yield Watch(self._clusters, own_key)

    async def reconcile(self, key: Key) -> Result:
        """Run an agent: renew its lease, then report the health of its cluster."""
        cluster, number = self._clusters.get(key), simulated.number_of(key.name)
        if cluster is None or number is None:
            self._agents.pop(key.name, None)
            return DONE
        if simulated.is_inactive(cluster):
            return DONE
        agent = self._agent(cluster, number)
        if agent.due <= self._clock.monotonic() and not await self._renew(key, agent, number):
            # The hub creates the lease after it has accepted the cluster.
            return REQUEUE
        if simulated.may_report(cluster):
            await self._report(agent, cluster, number)
        return Result(requeue_after=timedelta(seconds=agent.due - self._clock.monotonic()))

    def _agent(self, cluster: ManagedCluster, number: int) -> _Agent:
        name, now = cluster.metadata.name, self._clock.monotonic()
        duration = cluster.spec.lease_duration_seconds or LEASE_DURATION
        agent = self._agents.get(name)
        if agent is None:
            # Spread the renewals after a start.
            due = now + simulated.first_renewal(number, duration)
            agent = self._agents[name] = _Agent(self._transport_for(name), due, duration)
        if agent.duration != duration or simulated.is_unreachable(cluster):
            # A cluster that the hub considers unreachable must renew its lease first.
            agent.duration, agent.due = duration, now
        return agent

    async def _renew(self, key: Key, agent: _Agent, number: int) -> bool:
        """Renew the lease; False if there is none."""
        lease_key = Key(key.name, CLUSTER_LEASE)
        try:
            old = agent.lease
            if old is None:
                old = await agent.transport.get(LEASES, lease_key)
            new = replace(old, spec=replace(old.spec, renew_time=self._clock.now()))
            new = await agent.transport.update(LEASES, new, options=_OPTIONS)
        except (Conflict, NotFound):
            cached, agent.lease = agent.lease is not None, None
            # The cached lease may be outdated: read it and retry once.
            return cached and await self._renew(key, agent, number)
        agent.lease, agent.renewals = new, agent.renewals + 1
        delay = simulated.next_renewal(number, agent.renewals, agent.duration)
        agent.due = self._clock.monotonic() + delay
        return True

    async def _report(self, agent: _Agent, cluster: ManagedCluster, number: int) -> None:
        """Write the status of a cluster, if it changed."""
        health, facts = simulated.health(cluster), simulated.facts(number)
        changed = await write_conditions(
            agent.transport,
            CLUSTERS,
            cluster,
            [simulated.JOINED_CONDITION, health],
            now=self._clock.now(),
            field_manager=USER_NAME,
            other_fields={} if simulated.reports_facts(cluster, facts) else facts,
        )
        if changed:
            self._record_event(cluster, health)

    def _record_event(self, cluster: ManagedCluster, health: PlacementCondition) -> None:
        before, name = condition(cluster, AVAILABLE), cluster.metadata.name
        if before is not None and before.status == health.status:
            return
        reason, note = simulated.health_event(name, health)
        about = Reference(CLUSTERS.api_version, CLUSTERS.kind, Key(name, name))
        type_: Literal["Normal", "Warning"] = "Normal" if health.status == "True" else "Warning"
        self._recorder.event(about, type_, reason, note, action=reason)


def add_simulated_clusters(
    manager: Manager,
    *,
    env: ControllerEnv,
    transport_for: Callable[[str], Transport],
    members: Members,
) -> None:
    """Run simulated clusters; `transport_for` returns the client of a cluster's agent."""
    informer = manager.informer(CLUSTERS, ONLY_SIMULATED)
    clusters = SimulatedClusters(
        members=members, clusters=informer, transport=env.transport, clock=env.clock
    )
    manager.add(clusters, workers=CLUSTER_WORKERS)
    agents = SimulatedAgents(
        clusters=informer, transport_for=transport_for, recorder=env.recorder, clock=env.clock
    )
    manager.add(agents, workers=AGENT_WORKERS)

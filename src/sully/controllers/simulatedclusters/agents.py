"""The agents of simulated clusters: they renew leases, report health, stop renewing, recover.

Each cluster's calls are made as its own agent, so the hub's roles and protections hold for them.
One queue serves all: between two renewals a cluster costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sully.api.cluster.types import ManagedCluster
from sully.client.events import EventRecorder, Reference
from sully.client.informers.informer import Informer, own_key
from sully.client.options import WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.conditions import write_conditions
from sully.controllers.framework import AGAIN, DONE, Result, Watch
from sully.controllers.kinds import CLUSTER_LEASE
from sully.controllers.simulatedclusters.kinds import AGENT, LEASES
from sully.domain.clusters.health import AVAILABLE, LEASE_DURATION, condition
from sully.domain.placement.conditions import Finding
from sully.domain.simulated import clusters as simulated
from sully.machinery.errors import Conflict, NotFound
from sully.machinery.timestamps import format_micro_time
from sully.runtime.clock import Clock
from sully.views.fleet_kinds import CLUSTERS

Obj = dict[str, Any]

WORKERS = 8
_OWN = WriteOptions(field_manager=AGENT)


@dataclass(slots=True)
class _Agent:
    """The state of one agent."""

    transport: Transport
    due: float
    """When it renews its lease, by the steady clock."""
    duration: int = 0
    turn: int = 0
    lease: Obj | None = None
    """As it was after the last renewal."""


class SimulatedAgents:
    """The agents of all simulated clusters."""

    name = "hollow-cluster-agents"

    def __init__(
        self,
        *,
        clusters: Informer[ManagedCluster],
        access: Callable[[str], Transport],
        recorder: EventRecorder,
        clock: Clock,
    ) -> None:
        self._clusters = clusters
        self._access = access
        self._recorder = recorder
        self._clock = clock
        self._agents: dict[str, _Agent] = {}

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for clusters; the rest is a matter of time."""
        yield Watch(self._clusters, own_key)

    async def reconcile(self, key: Key) -> Result:
        """Run an agent: renew its lease, then report the health of its cluster."""
        cluster, number = self._clusters.get(key), simulated.number_of(key.name)
        if cluster is None or number is None:
            self._agents.pop(key.name, None)
            return DONE
        if simulated.is_silent(cluster):
            return DONE
        agent = self._agent(cluster, number)
        if agent.due <= self._clock.monotonic() and not await self._renew(key, agent, number):
            # The hub makes the lease a moment after it has accepted the cluster.
            return AGAIN
        if simulated.may_report(cluster):
            await self._report(agent, cluster, number)
        return Result(requeue_after=timedelta(seconds=agent.due - self._clock.monotonic()))

    def _agent(self, cluster: ManagedCluster, number: int) -> _Agent:
        name, now = cluster.metadata.name, self._clock.monotonic()
        duration = cluster.spec.lease_duration_seconds or LEASE_DURATION
        agent = self._agents.get(name)
        if agent is None:
            # Not all at the same moment after a start.
            due = now + simulated.first_renewal(number, duration)
            agent = self._agents[name] = _Agent(self._access(name), due, duration)
        if agent.duration != duration or simulated.is_unheard(cluster):
            # A cluster that the hub considers unreachable must renew its lease first.
            agent.duration, agent.due = duration, now
        return agent

    async def _renew(self, key: Key, agent: _Agent, number: int) -> bool:
        """Renew the lease; False if there is none."""
        place = Key(key.name, CLUSTER_LEASE)
        try:
            lease = agent.lease
            if lease is None:
                lease = await agent.transport.get(LEASES, place)
            renewed = {**lease["spec"], "renewTime": format_micro_time(self._clock.now())}
            body = {**lease, "spec": renewed}
            agent.lease = await agent.transport.update(LEASES, body, options=_OWN)
        except (Conflict, NotFound):
            found, agent.lease = agent.lease is not None, None
            # What it remembered may be old: then it reads, and tries once more.
            return found and await self._renew(key, agent, number)
        agent.turn += 1
        pause = simulated.next_renewal(number, agent.turn, agent.duration)
        agent.due = self._clock.monotonic() + pause
        return True

    async def _report(self, agent: _Agent, cluster: ManagedCluster, number: int) -> None:
        """Write the status of a cluster, if it is not what the agent finds."""
        found, facts = simulated.health(cluster), simulated.facts(number)
        said = await write_conditions(
            agent.transport,
            CLUSTERS,
            cluster,
            [simulated.AT_WORK, found],
            now=self._clock.now(),
            by=AGENT,
            besides={} if simulated.reports_facts(cluster, facts) else facts,
        )
        if said:
            self._record_event(cluster, found)

    def _record_event(self, cluster: ManagedCluster, found: Finding) -> None:
        before, name = condition(cluster, AVAILABLE), cluster.metadata.name
        if before is not None and before.status == found.status:
            return
        reason, note = simulated.health_news(name, found)
        about = Reference(CLUSTERS.api_version, CLUSTERS.kind, Key(name, name))
        if found.status == "True":
            self._recorder.event(about, "Normal", reason, note, action=reason)
        else:
            self._recorder.event(about, "Warning", reason, note, action=reason)

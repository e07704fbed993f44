"""Constructs simulated clusters and adds them to a manager."""

from __future__ import annotations

from collections.abc import Callable

from sully.client.events import EventRecorder
from sully.client.transport import Transport
from sully.controllers.manager import Manager
from sully.controllers.simulatedclusters import agents, members
from sully.controllers.simulatedclusters.agents import SimulatedAgents
from sully.controllers.simulatedclusters.kinds import OURS
from sully.controllers.simulatedclusters.members import SimulatedClusters
from sully.domain.simulated.clusters import Members
from sully.runtime.clock import Clock
from sully.views.fleet_kinds import CLUSTERS


def add_simulated_clusters(
    manager: Manager,
    *,
    transport: Transport,
    access: Callable[[str], Transport],
    recorder: EventRecorder,
    clock: Clock,
    wanted: Members,
) -> None:
    """Run simulated clusters; `access` is what the agent of each cluster uses."""
    ours = manager.informer(CLUSTERS, OURS)
    making = SimulatedClusters(members=wanted, clusters=ours, transport=transport, clock=clock)
    manager.add(making, workers=members.WORKERS)
    playing = SimulatedAgents(clusters=ours, access=access, recorder=recorder, clock=clock)
    manager.add(playing, workers=agents.WORKERS)

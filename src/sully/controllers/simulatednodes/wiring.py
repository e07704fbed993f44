"""Constructs simulated nodes and adds them to a manager."""

from __future__ import annotations

from dataclasses import dataclass, field

from sully.client.events import EventRecorder
from sully.client.transport import Transport
from sully.controllers.manager import Manager
from sully.controllers.simulatednodes import kubelet, nodes
from sully.controllers.simulatednodes.kinds import BOUND, NODES, OURS, PODS
from sully.controllers.simulatednodes.kubelet import SimulatedKubelet
from sully.controllers.simulatednodes.leases import SimulatedLeases
from sully.controllers.simulatednodes.nodes import SimulatedNodes
from sully.domain.simulated.fleet import Fleet, Pace
from sully.runtime.clock import Clock
from sully.views.kinds import CLAIMS, SLICES


@dataclass(frozen=True, slots=True)
class SimulatedNodeSettings:
    """How many simulated nodes there are, and how fast their pods start and stop."""

    fleet: Fleet
    pace: Pace = field(default_factory=Pace)


def add_simulated_nodes(
    manager: Manager,
    *,
    transport: Transport,
    recorder: EventRecorder,
    clock: Clock,
    settings: SimulatedNodeSettings,
) -> None:
    """Run simulated nodes with the other controllers of a manager."""
    ours, fleet = manager.informer(NODES, OURS), settings.fleet
    making = SimulatedNodes(
        fleet=fleet, nodes=ours, slices=manager.informer(SLICES), transport=transport, clock=clock
    )
    running = SimulatedKubelet(
        fleet=fleet,
        pods=manager.informer(PODS, BOUND),
        nodes=ours,
        claims=manager.informer(CLAIMS),
        transport=transport,
        recorder=recorder,
        clock=clock,
        pace=settings.pace,
    )
    manager.add(making, workers=nodes.WORKERS)
    manager.add(SimulatedLeases(fleet=fleet, nodes=ours, transport=transport, clock=clock))
    manager.add(running, workers=kubelet.WORKERS)

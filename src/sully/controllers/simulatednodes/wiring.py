"""Constructs simulated nodes and adds them to a manager."""

from __future__ import annotations

import msgspec

from sully.controllers.framework.controller import ControllerEnv
from sully.controllers.framework.manager import Manager
from sully.controllers.simulatednodes import kubelet, nodes
from sully.controllers.simulatednodes.kubelet import SimulatedKubelet
from sully.controllers.simulatednodes.nodes import (
    ONLY_SIMULATED,
    SIMULATED_NODES,
    SimulatedLeases,
    SimulatedNodes,
)
from sully.domain.simulated.fleet import Fleet, PodDelays
from sully.views.kinds import CLAIMS, SLICES
from sully.views.snapshot.kinds import PODS


class SimulatedNodeSettings(msgspec.Struct, frozen=True):
    """How many simulated nodes there are, and how fast their pods start and stop."""

    fleet: Fleet
    delays: PodDelays = msgspec.field(default_factory=PodDelays)


def add_simulated_nodes(
    manager: Manager,
    *,
    env: ControllerEnv,
    settings: SimulatedNodeSettings,
) -> None:
    """Run simulated nodes with the other controllers of a manager."""
    informer, fleet = manager.informer(SIMULATED_NODES, ONLY_SIMULATED), settings.fleet
    node_controller = SimulatedNodes(
        fleet=fleet,
        nodes=informer,
        slices=manager.informer(SLICES),
        transport=env.transport,
        clock=env.clock,
    )
    kubelet_controller = SimulatedKubelet(
        fleet=fleet,
        pods=manager.informer(PODS),
        nodes=informer,
        claims=manager.informer(CLAIMS),
        env=env,
        delays=settings.delays,
    )
    manager.add(node_controller, workers=nodes.WORKERS)
    leases = SimulatedLeases(fleet=fleet, nodes=informer, transport=env.transport, clock=env.clock)
    manager.add(leases)
    manager.add(kubelet_controller, workers=kubelet.WORKERS)

"""The clients of a simulated server: controllers that compete for a lease, nodes, and an admin."""

from __future__ import annotations

import random
from functools import lru_cache, partial

from simulator.loop import Process
from simulator.network import Network, SimulatedTransport
from simulator.server import GATES, scheme
from sully.app import ADMIN, CONTROLLER_GROUPS
from sully.client.calls import WriteGuard
from sully.client.discovery.resources import APIResource, of_scheme
from sully.client.leases import LeaderElector, LeaseTiming
from sully.client.transport import Transport
from sully.controller_context import LEASE, MANAGER, ControllerConfig
from sully.controller_setup import build_manager
from sully.controllers.framework.leaderelection import LeaderElectedManager
from sully.controllers.framework.manager import Manager
from sully.controllers.scheduling.wiring import USER_AGENT as SCHEDULER
from sully.controllers.simulatednodes.kubelet import SimulatedKubelet
from sully.controllers.simulatednodes.nodes import ONLY_SIMULATED, SIMULATED_NODES, USER_AGENT
from sully.domain.simulated.fleet import Fleet, PodDelays
from sully.evictor.settings import EvictionSettings
from sully.runtime.ids import Ids
from sully.runtime.metrics import Metrics
from sully.server.requests import User
from sully.views.kinds import CLAIMS
from sully.views.snapshot.kinds import PODS

TIMING = LeaseTiming(duration=30.0, renew=20.0, retry=6.0)
CHOSEN = frozenset(
    (
        "claims", "devicetaintpolicies", "disruption", "eviction", "expiry", "garbagecollection",
        "history", "replicasets", "scheduling",
    )
)  # fmt: skip
_SERVED = frozenset(
    (
        "deployments", "deviceclasses", "devicetaintpolicies", "devicetaintrules",
        "evictionrecords", "events", "leases", "namespaces", "nodes", "poddisruptionbudgets",
        "pods", "replicasets", "resourceclaims", "resourceclaimtemplates", "resourceslices",
        "resourceslicepatches", "taintrecords",
    )
)  # fmt: skip


@lru_cache(maxsize=1)
def served() -> tuple[APIResource, ...]:
    """Return the kinds that these controllers use; others would only cost time."""
    return tuple(resource for resource in of_scheme(scheme()) if resource.plural in _SERVED)


def transport(
    network: Network, process: Process, name: str, guard: WriteGuard | None = None
) -> Transport:
    """Return the client of a controller."""
    user = User(f"system:serviceaccount:kube-system:{name}", CONTROLLER_GROUPS)
    if name in (MANAGER, SCHEDULER):
        user = User(f"system:{name}", ("system:authenticated",))
    return SimulatedTransport(network, process, user, agent=name, guard=guard)


class Controllers:
    """One start of a process with all controllers."""

    def __init__(
        self, network: Network, process: Process, seed: int, eviction: EvictionSettings
    ) -> None:
        self.process = process
        self.manager: Manager | None = None
        access = SimulatedTransport(
            network,
            process,
            User(f"system:{MANAGER}", ("system:authenticated",)),
            request_seconds=TIMING.renew,
        )
        elector = LeaderElector(access, LEASE, process.name, clock=process.clock, timing=TIMING)
        self.elected = LeaderElectedManager(self._build, clock=process.clock, elector=elector)
        self._config = ControllerConfig(
            transport=partial(transport, network, process, guard=elector.time_left),
            served=served(),
            gates=GATES,
            ids=Ids(random.Random(seed)),
            eviction=eviction,
            chosen=CHOSEN,
            # Half of them write as in `sully up`, several objects in one transaction.
            embedded=bool(seed % 2),
        )

    async def run(self) -> None:
        """Compete for the lease, and work while it is held."""
        await self.elected.run()

    async def _build(self) -> Manager:
        self.manager = build_manager(self._config, self.process.clock, Metrics())
        return self.manager


class Nodes:
    """One start of the process that simulates all kubelets."""

    def __init__(self, network: Network, process: Process, nodes: int) -> None:
        clock = process.clock
        user = User("system:simulated-nodes", ("system:masters",))
        access = SimulatedTransport(network, process, user, agent=USER_AGENT)
        self.manager = Manager(access, clock=clock)
        kubelet = SimulatedKubelet(
            fleet=Fleet(nodes, 0),
            pods=self.manager.informer(PODS),
            nodes=self.manager.informer(SIMULATED_NODES, ONLY_SIMULATED),
            claims=self.manager.informer(CLAIMS),
            env=self.manager.env(access, "kubelet"),
            delays=PodDelays(start=0.5, stop=1.0),
        )
        self.manager.add(kubelet, workers=4)

    async def run(self) -> None:
        """Simulate pods."""
        await self.manager.run()


def admin(network: Network, process: Process) -> Transport:
    """Return the client of a user with all rights."""
    return SimulatedTransport(network, process, ADMIN, agent="admin", request_seconds=10.0)

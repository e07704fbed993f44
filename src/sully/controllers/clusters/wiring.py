"""Puts the hub's controllers together and adds them to a manager."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sully.client.events import EventRecorder
from sully.client.transport import Transport
from sully.controllers.clusters import kinds
from sully.controllers.clusters.acceptance import AcceptanceController, CleanupController
from sully.controllers.clusters.clocksync import ClockSyncController
from sully.controllers.clusters.hearing import Hearing
from sully.controllers.clusters.leases import LeaseController
from sully.controllers.clusters.members import Members
from sully.controllers.clusters.policies import PolicyTaintController
from sully.controllers.clusters.policystatus import PolicyStatusController
from sully.controllers.clusters.rights import Rights
from sully.controllers.clusters.sets import (
    BindingStatusController,
    BuiltInSetsController,
    SetStatusController,
)
from sully.controllers.clusters.taints import HealthTaintController
from sully.controllers.kinds import CLUSTER_LEASES, LEASES_OF_CLUSTERS
from sully.controllers.manager import Manager
from sully.machinery.compat import Compat
from sully.runtime.clock import Clock
from sully.views.fleet_kinds import BINDINGS, CLUSTERS, SETS

Acting = Callable[[str], tuple[Transport, EventRecorder]]
"""Returns a controller's own access and its recorder of events, by its name."""


@dataclass(frozen=True, slots=True)
class Listening:
    """That silence counts only while somebody listens; without this it always does."""

    since: datetime | None = None
    """When the server began, if it did so with the controllers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSettings:
    """What differs between hubs."""

    policies: bool
    """Whether the server has ClusterTaintPolicies."""
    listening: Listening | None = None
    compat: Compat = Compat.SULLY


WORKERS = 8
"""Clusters that are looked at together; writes under way together are flushed together."""


def add_hub(
    manager: Manager,
    *,
    acting: Acting,
    access: Callable[[str], Transport],
    clock: Clock,
    settings: HubSettings,
) -> None:
    """Run the hub's controllers with the others; policies only where the server has them."""
    _add_acceptance(manager, acting, clock, compat=settings.compat)
    _add_health(manager, acting, access, clock, settings.listening)
    _add_sets(manager, access(kinds.COUNTING), clock)
    if settings.policies:
        _add_policies(manager, access(kinds.POLICING), clock)


def _add_acceptance(manager: Manager, acting: Acting, clock: Clock, *, compat: Compat) -> None:
    clusters = manager.informer(CLUSTERS)
    transport, recorder = acting(kinds.ACCEPTING)
    rights = Rights(manager, transport, compat=compat)
    accepting = AcceptanceController(
        clusters=clusters, rights=rights, transport=transport, recorder=recorder, clock=clock
    )
    manager.add(CleanupController(clusters=clusters, rights=rights, transport=transport))
    manager.add(accepting, workers=WORKERS)


def _add_health(
    manager: Manager,
    acting: Acting,
    access: Callable[[str], Transport],
    clock: Clock,
    listening: Listening | None,
) -> None:
    clusters = manager.informer(CLUSTERS)
    leases = manager.informer(CLUSTER_LEASES, LEASES_OF_CLUSTERS)
    transport, recorder = acting(kinds.LEASING)
    watching = LeaseController(
        clusters=clusters,
        leases=leases,
        transport=transport,
        recorder=recorder,
        clock=clock,
        hearing=Hearing(leases, clock=clock, since=listening.since) if listening else None,
    )
    manager.add(watching, workers=WORKERS)
    comparing = ClockSyncController(
        clusters=clusters, leases=leases, transport=transport, clock=clock
    )
    manager.add(comparing)
    tainting = HealthTaintController(clusters=clusters, transport=access(kinds.TAINTING))
    manager.add(tainting, workers=WORKERS)


def _add_sets(manager: Manager, transport: Transport, clock: Clock) -> None:
    sets = manager.informer(SETS)
    manager.add(BuiltInSetsController(sets=sets, transport=transport))
    members = Members(manager.informer(CLUSTERS), sets)
    manager.add(SetStatusController(sets=sets, members=members, transport=transport, clock=clock))
    bindings = manager.informer(BINDINGS)
    manager.add(
        BindingStatusController(bindings=bindings, sets=sets, transport=transport, clock=clock)
    )


def _add_policies(manager: Manager, transport: Transport, clock: Clock) -> None:
    policies, clusters = manager.informer(kinds.POLICIES), manager.informer(CLUSTERS)
    for make in (PolicyTaintController, PolicyStatusController):
        manager.add(make(policies=policies, clusters=clusters, transport=transport, clock=clock))

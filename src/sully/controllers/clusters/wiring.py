"""Constructs the hub's controllers and adds them to a manager."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec

from sully.client.transport import Transport
from sully.controllers.clusters import names
from sully.controllers.clusters.acceptance import AcceptanceController, CleanupController
from sully.controllers.clusters.leases import ClockSyncController, LeaseController, RenewalObserver
from sully.controllers.clusters.permissions import AgentPermissions
from sully.controllers.clusters.policies import PolicyStatusController, PolicyTaintController
from sully.controllers.clusters.sets import (
    BindingStatusController,
    BuiltInSetsController,
    Members,
    SetStatusController,
)
from sully.controllers.clusters.taint_times import ClusterTaintWriter
from sully.controllers.clusters.taints import HealthTaintController
from sully.controllers.framework.controller import ControllerEnv
from sully.controllers.framework.kinds import CLUSTER_LEASES, LEASES_OF_CLUSTERS
from sully.controllers.framework.manager import Manager
from sully.machinery.compat import Compat
from sully.runtime.clock import Clock
from sully.views.fleet_kinds import BINDINGS, CLUSTERS, POLICIES, SETS

EnvOf = Callable[[str], ControllerEnv]
"""Returns what a controller acts with, by its name."""


class HubSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between hubs."""

    policies: bool
    """Whether the server has ClusterTaintPolicies."""
    serving_since: datetime | None = None
    """When the server started, if it runs in this process."""
    compat: Compat = Compat.SULLY
    sets_taint_times: bool | None = True
    """Whether the server sets `timeAdded` of taints; None: not known."""


WORKERS = 8
"""Clusters that are reconciled concurrently; concurrent writes share one flush of the store."""


def add_hub(
    manager: Manager,
    *,
    env_of: EnvOf,
    access: Callable[[str], Transport],
    clock: Clock,
    settings: HubSettings,
) -> None:
    """Run the hub's controllers with the others; policies only where the server has them."""
    _add_acceptance(manager, env_of(names.ACCEPTANCE_CONTROLLER), compat=settings.compat)
    times = ClusterTaintWriter(clock, set_by_server=settings.sets_taint_times)
    _add_health(manager, env_of(names.LEASE_CONTROLLER), settings)
    taints = HealthTaintController(
        clusters=manager.informer(CLUSTERS), times=times, transport=access(names.TAINT_CONTROLLER)
    )
    manager.add(taints, workers=WORKERS)
    _add_sets(manager, access(names.SET_CONTROLLER), clock)
    if settings.policies:
        _add_policies(manager, access(names.POLICY_CONTROLLER), times, clock)


def _add_acceptance(manager: Manager, env: ControllerEnv, *, compat: Compat) -> None:
    clusters = manager.informer(CLUSTERS)
    permissions = AgentPermissions(manager, env.transport, compat=compat)
    acceptance = AcceptanceController(clusters=clusters, permissions=permissions, env=env)
    cleanup = CleanupController(clusters=clusters, permissions=permissions, transport=env.transport)
    manager.add(cleanup)
    manager.add(acceptance, workers=WORKERS)


def _add_health(manager: Manager, env: ControllerEnv, settings: HubSettings) -> None:
    clusters = manager.informer(CLUSTERS)
    leases = manager.informer(CLUSTER_LEASES, LEASES_OF_CLUSTERS)
    observer = None
    if settings.compat.waits_after_outages:
        observer = RenewalObserver(leases, clock=env.clock, serving_since=settings.serving_since)
    lease_controller = LeaseController(
        clusters=clusters,
        leases=leases,
        env=env,
        observer=observer,
    )
    manager.add(lease_controller, workers=WORKERS)
    clock_sync = ClockSyncController(
        clusters=clusters, leases=leases, transport=env.transport, clock=env.clock
    )
    manager.add(clock_sync)


def _add_sets(manager: Manager, transport: Transport, clock: Clock) -> None:
    sets = manager.informer(SETS)
    manager.add(BuiltInSetsController(sets=sets, transport=transport))
    members = Members(manager.informer(CLUSTERS), sets)
    manager.add(SetStatusController(sets=sets, members=members, transport=transport, clock=clock))
    bindings = manager.informer(BINDINGS)
    manager.add(
        BindingStatusController(bindings=bindings, sets=sets, transport=transport, clock=clock)
    )


def _add_policies(
    manager: Manager, transport: Transport, times: ClusterTaintWriter, clock: Clock
) -> None:
    policies, clusters = manager.informer(POLICIES), manager.informer(CLUSTERS)
    manager.add(
        PolicyTaintController(
            policies=policies, clusters=clusters, times=times, transport=transport, clock=clock
        )
    )
    manager.add(
        PolicyStatusController(
            policies=policies, clusters=clusters, transport=transport, clock=clock
        )
    )

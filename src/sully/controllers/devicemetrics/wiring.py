"""Constructs what measures devices and evictions."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from sully.api.resource.types import DeviceTaintRule
from sully.api.sully.types import DeviceMaintenance, DeviceTaintPolicy
from sully.client.informers.informer import Informer
from sully.controllers.devicemetrics.metrics import DeviceMetrics
from sully.controllers.devicemetrics.pods import EvictionMetricsHandler, PendingPods
from sully.controllers.devicemetrics.policies import MaintenanceCounts, PolicyCounts, RuleCounts
from sully.controllers.devicemetrics.pools import PoolMetricsController
from sully.controllers.framework.manager import Manager
from sully.runtime.clock import Clock
from sully.runtime.metrics import Metrics
from sully.views.devices.inventory import Inventory
from sully.views.kinds import CLAIMS, CLASSES
from sully.views.snapshot.kinds import PODS


class Counted(NamedTuple):
    """Objects to count; None where the server has no such kind."""

    policies: Informer[DeviceTaintPolicy] | None
    maintenances: Informer[DeviceMaintenance] | None
    rules: Informer[DeviceTaintRule] | None


def add_device_metrics(
    manager: Manager,
    *,
    inventory: Inventory,
    counted: Counted,
    metrics: Metrics,
    clock: Clock,
) -> None:
    """Measure devices, pending pods and evictions, and count objects."""
    exported = DeviceMetrics(metrics)
    pods, claims = manager.informer(PODS), manager.informer(CLAIMS)
    pools = PoolMetricsController(
        inventory=inventory,
        classes=manager.informer(CLASSES),
        claims=claims,
        metrics=exported,
        clock=clock,
    )
    manager.add(pools, workers=1)
    PendingPods(pods=pods, claims=claims, blocked=pools.blocked, metrics=exported)
    EvictionMetricsHandler(pods, exported, clock)
    if counted.policies is not None:
        PolicyCounts(counted.policies, exported)
    if counted.maintenances is not None:
        MaintenanceCounts(counted.maintenances, exported)
    if counted.rules is not None:
        RuleCounts(counted.rules, exported)

    async def until_stopped() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            exported.stop()

    manager.add_runnable(until_stopped)

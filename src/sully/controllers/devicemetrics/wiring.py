"""Constructs what measures devices and evictions."""

from __future__ import annotations

import asyncio

from sully.api.resource.types import DeviceTaintRule
from sully.api.sully.types import DeviceTaintPolicy
from sully.client.informers.informer import Informer
from sully.controllers.devicemetrics.metrics import DeviceMetrics
from sully.controllers.devicemetrics.pods import EvictionMetricsHandler, PendingPodsController
from sully.controllers.devicemetrics.policies import PolicyCounts, RuleCounts
from sully.controllers.devicemetrics.pools import PoolMetricsController
from sully.controllers.manager import Manager
from sully.controllers.workloads.kinds import PODS
from sully.runtime.clock import Clock
from sully.runtime.metrics import Metrics
from sully.views.devices.inventory import Inventory
from sully.views.kinds import CLAIMS, CLASSES


def add_device_metrics(
    manager: Manager,
    *,
    inventory: Inventory,
    policies: Informer[DeviceTaintPolicy] | None,
    rules: Informer[DeviceTaintRule] | None,
    metrics: Metrics,
    clock: Clock,
) -> None:
    """Measure devices, pending pods and evictions; policies and rules where the server has them."""
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
    pending = PendingPodsController(
        pods=pods, claims=claims, blocked=pools.blocked, metrics=exported
    )
    manager.add(pending, workers=1)
    EvictionMetricsHandler(pods, exported, clock)
    if policies is not None:
        PolicyCounts(policies, exported)
    if rules is not None:
        RuleCounts(rules, exported)

    async def until_stopped() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            exported.stop()

    manager.add_runnable(until_stopped)

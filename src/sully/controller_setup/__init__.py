"""Constructs the controllers: a part of the composition root (app.py, remote.py).

Owns the table `CONTROLLERS`: for each controller one function that adds it to a manager. It gets
the shared caches from controller_context.py, and a client of its own, so that audit and RBAC
distinguish controllers.
Never decides anything: what a controller does is in its own package.
Start at CONTROLLERS, then devices.py.
"""

from __future__ import annotations

from collections.abc import Callable

from sully.controller_context import ControllerConfig, ControllerContext
from sully.controller_setup import clusters, core, device_work, devices, simulation, workloads
from sully.controllers.framework.manager import Manager
from sully.runtime.clock import Clock
from sully.runtime.metrics import Metrics

CONTROLLERS: dict[str, Callable[[ControllerContext], None]] = {
    "aggregation": core.add_aggregation,
    "serviceaccounts": core.add_serviceaccounts,
    "namespaces": core.add_namespaces,
    "rootca": core.add_rootca,
    "resourcequota": core.add_resourcequota,
    "replicasets": workloads.add_replicasets,
    "deployments": workloads.add_deployments,
    "jobs": workloads.add_jobs,
    "statefulsets": workloads.add_statefulsets,
    "daemonsets": workloads.add_daemonsets,
    "disruption": workloads.add_disruption,
    "claims": devices.add_claims,
    "eviction": devices.add_eviction,
    "history": devices.add_history,
    "expiry": devices.add_expiry,
    "patchstatus": devices.add_patchstatus,
    "poolstatus": devices.add_poolstatus,
    "deviceconflicts": devices.add_deviceconflicts,
    "devicemetrics": devices.add_devicemetrics,
    "devicetaintpolicies": device_work.add_devicetaintpolicies,
    "devicemaintenances": device_work.add_devicemaintenances,
    "clusters": clusters.add_clusters,
    "scheduling": devices.add_scheduling,
    "placement": clusters.add_placement,
    # Last: it shares the caches of the others.
    "garbagecollection": core.add_garbagecollection,
}
"""Every controller, by the name that `--only` takes: that of its module or package."""


def build_manager(config: ControllerConfig, clock: Clock, metrics: Metrics) -> Manager:
    """Return a manager with the chosen controllers, in the order of the table."""
    context = ControllerContext(config, clock, metrics)
    for name, add in CONTROLLERS.items():
        if config.runs(name):
            add(context)
    if not config.runs("eviction"):
        devices.add_describer(context)
    simulation.add_simulated_nodes(context)
    simulation.add_simulated_clusters(context)
    return context.manager

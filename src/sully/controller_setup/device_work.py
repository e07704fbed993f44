"""Controllers of what policies and maintenances do with devices."""

from __future__ import annotations

from functools import partial

from sully.client.http.prometheus import query
from sully.controller_context import ControllerContext
from sully.controllers.devicemaintenances.controller import DeviceMaintenanceController
from sully.controllers.devicetaintpolicies.controller import DeviceTaintPolicyController
from sully.controllers.devicetaintpolicies.queries import PrometheusQueries
from sully.controllers.eviction.wiring import eviction_caches
from sully.controllers.framework.controller import ControllerEnv
from sully.controllers.proofjobs import PROOF_JOBS, SELECTOR, ProofJobs
from sully.views.devicepolicies.facts import FactsView
from sully.views.devices.usage import Usage
from sully.views.kinds import (
    CLAIMS,
    DEVICE_HEALTH,
    DEVICE_POLICIES,
    MAINTENANCES,
    POLICY_NODES,
    RULES,
)
from sully.views.maintenance.pods import UnitPods
from sully.views.snapshot.kinds import PODS


def add_devicetaintpolicies(context: ControllerContext) -> None:
    config, manager = context.config, context.manager
    if not (config.serves(DEVICE_POLICIES) and config.serves(RULES)):
        return
    env = context.env(DeviceTaintPolicyController.name)
    facts = FactsView(
        inventory=context.inventory,
        claims=manager.informer(CLAIMS),
        nodes=manager.informer(POLICY_NODES),
        health=manager.informer(DEVICE_HEALTH) if config.serves(DEVICE_HEALTH) else None,
    )
    fetch = partial(query, servers=config.prometheus_servers)
    queries = PrometheusQueries(fetch, context.clock)
    manager.add_runnable(queries.run)
    controller = DeviceTaintPolicyController(
        policies=manager.informer(DEVICE_POLICIES),
        rules=manager.informer(RULES),
        facts=facts,
        env=env,
        jobs=_proof_jobs(context, env, DeviceTaintPolicyController.name),
        queries=queries,
    )
    manager.add(controller)


def add_devicemaintenances(context: ControllerContext) -> None:
    config, manager = context.config, context.manager
    if not (config.serves(MAINTENANCES) and config.serves(RULES)):
        return
    env = context.env(DeviceMaintenanceController.name)
    pods = manager.informer(PODS)
    usage = Usage(pods=pods, claims=manager.informer(CLAIMS))
    controller = DeviceMaintenanceController(
        maintenances=manager.informer(MAINTENANCES),
        rules=manager.informer(RULES),
        inventory=context.inventory,
        nodes=manager.informer(POLICY_NODES),
        pods=UnitPods(pods, usage),
        usage=usage,
        env=env,
        jobs=_proof_jobs(context, env, DeviceMaintenanceController.name),
        caches=eviction_caches(manager, context.inventory),
        max_staleness=context.eviction_options.max_staleness,
    )
    manager.add(controller)


def _proof_jobs(
    context: ControllerContext, env: ControllerEnv, field_manager: str
) -> ProofJobs | None:
    if not context.config.serves(PROOF_JOBS):
        return None
    return ProofJobs(
        jobs=context.manager.informer(PROOF_JOBS, SELECTOR),
        claims=context.manager.informer(CLAIMS),
        transport=env.transport,
        field_manager=field_manager,
    )

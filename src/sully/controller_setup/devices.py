"""Controllers of claims and devices: scheduling, eviction, and what reports about them."""

from __future__ import annotations

from functools import partial

from sully.controller_context import ControllerContext
from sully.controllers.claims import controller as claims
from sully.controllers.claims.creator import ClaimCreator
from sully.controllers.claims.lookups import TEMPLATES, Lookups
from sully.controllers.claims.metrics import ClaimMetrics
from sully.controllers.claims.releasing import ReleaseController
from sully.controllers.clusters.taint_expiry import ClusterTaintExpiryController
from sully.controllers.deviceconflicts import (
    ConflictIndex,
    ConflictMetrics,
    DeviceConflictController,
)
from sully.controllers.devicemetrics.wiring import Counted, add_device_metrics
from sully.controllers.eviction.controller import BACKOFF as EVICTION_BACKOFF
from sully.controllers.eviction.controller import WORKERS, EvictionController
from sully.controllers.eviction.wiring import make_describer, make_eviction
from sully.controllers.expiry import ExpiryController
from sully.controllers.history.controller import EvictionCounts, TaintHistoryController
from sully.controllers.history.retention import (
    RetentionController,
    deletion_time,
    evicted_since,
)
from sully.controllers.notifications.sources import NotificationSources
from sully.controllers.notifications.tracing import EvictionTraces
from sully.controllers.patchstatus import PatchStatusController
from sully.controllers.poolstatus import PoolStatusController
from sully.controllers.scheduling.wiring import USER_AGENT as SCHEDULER
from sully.controllers.scheduling.wiring import add_scheduler
from sully.controllers.scheduling.wiring import options as scheduling_options
from sully.domain.devices.taints import BLOCKING_EFFECTS, enabled_effects
from sully.views.fleet_kinds import CLUSTERS
from sully.views.kinds import (
    CLAIMS,
    DEVICE_POLICIES,
    EVICTION_RECORDS,
    MAINTENANCES,
    PARTIAL_EVICTION_RECORDS,
    PATCHES,
    POOL_STATUS_REQUESTS,
    RULES,
    SLICES,
    TAINT_RECORDS,
)
from sully.views.snapshot.kinds import PODS


def add_claims(context: ControllerContext) -> None:
    lookups = Lookups(
        pods=context.pods.informer,
        claims=context.manager.informer(CLAIMS),
        templates=context.manager.informer(TEMPLATES),
    )
    metrics = ClaimMetrics(context.metrics)
    metrics.follow(lookups.claims)
    env = context.env(claims.NAME, claims.COMPONENT)
    pod_claims = claims.PodClaimsController(
        lookups=lookups,
        creator=ClaimCreator(lookups=lookups, transport=env.transport, metrics=metrics),
        transport=env.transport,
        recorder=env.recorder,
    )
    release = ReleaseController(lookups=lookups, transport=env.transport)
    for controller in (pod_claims, release):
        context.manager.add(controller, workers=claims.WORKERS, backoff=claims.BACKOFF)


def add_scheduling(context: ControllerContext) -> None:
    add_scheduler(
        context.manager,
        transport=context.config.transport(SCHEDULER),
        inventory=context.scheduling_inventory,
        clock=context.clock,
        ids=context.config.ids,
        settings=scheduling_options(
            context.config.gates, compat=context.config.compat, schedulers=context.config.schedulers
        ),
        metrics=context.metrics,
        evaluator=context.evaluator,
        alone=context.config.own_server,
        protects=not (context.config.embedded and context.config.compat.protects_with_allocation),
    )


def add_eviction(context: ControllerContext) -> None:
    if not context.config.gates["DRADeviceTaints"]:
        return
    config = context.config
    controllers = make_eviction(
        context.manager,
        context.inventory,
        context.eviction_options,
        env=context.env(EvictionController.name),
        metrics=context.metrics,
        notifier=context.notifier,
    )
    # First: the status reports an eviction before it happens.
    context.manager.add(controllers.statuses, backoff=EVICTION_BACKOFF)
    context.manager.add(controllers.eviction, workers=WORKERS, backoff=EVICTION_BACKOFF)
    if config.describes_rules is not None and config.compat.reports_on_rules:
        config.describes_rules(controllers.describe)
    if controllers.unused_claims is not None:
        context.manager.add(controllers.unused_claims, backoff=EVICTION_BACKOFF)


def add_describer(context: ControllerContext) -> None:
    """Let the server describe rules whose eviction controller runs in another process."""
    config = context.config
    if config.describes_rules is None or not config.compat.reports_on_rules:
        return
    if config.gates["DRADeviceTaints"]:
        describe = make_describer(
            context.manager, context.inventory, context.eviction_options, context.clock
        )
        config.describes_rules(describe)


def add_history(context: ControllerContext) -> None:
    # Also without the feature gates of taints: records still expire.
    config, manager, clock = context.config, context.manager, context.clock
    if not (config.serves(TAINT_RECORDS) and config.serves(EVICTION_RECORDS)):
        return
    access = config.transport(TaintHistoryController.name)
    evictions, records = manager.informer(PARTIAL_EVICTION_RECORDS), manager.informer(TAINT_RECORDS)
    manager.add(
        TaintHistoryController(
            rules=manager.informer(RULES),
            records=records,
            evictions=EvictionCounts(evictions, manager.informer(PODS)),
            transport=access,
            clock=clock,
        )
    )
    retention = partial(RetentionController, transport=access, clock=clock, keep=config.history)
    manager.add(retention(evictions, evicted_since))
    manager.add(retention(records, deletion_time))


def add_expiry(context: ControllerContext) -> None:
    config = context.config
    if not (config.gates["SullyEvictionGuards"] and config.compat.limits_evictions):
        return
    env, manager = context.env(ExpiryController.name), context.manager
    if config.serves(RULES):
        manager.add(ExpiryController(manager.informer(RULES), env=env))
    if config.serves(PATCHES):
        manager.add(ExpiryController(manager.informer(PATCHES), env=env))
    if config.serves(CLUSTERS):
        manager.add(ClusterTaintExpiryController(manager.informer(CLUSTERS), env=env))


def add_patchstatus(context: ControllerContext) -> None:
    if not (context.config.compat.reports_on_patches and context.config.serves(PATCHES)):
        return
    context.manager.add(
        PatchStatusController(
            patches=context.manager.informer(PATCHES),
            inventory=context.inventory,
            env=context.env(PatchStatusController.name),
        )
    )


def add_poolstatus(context: ControllerContext) -> None:
    config = context.config
    if not (config.gates["DRAResourcePoolStatus"] and config.serves(POOL_STATUS_REQUESTS)):
        return
    if not config.own_server:
        # kube-controller-manager does it.
        return
    context.manager.add(
        PoolStatusController(
            requests=context.manager.informer(POOL_STATUS_REQUESTS),
            claims=context.manager.informer(CLAIMS),
            inventory=context.inventory,
            transport=config.transport(PoolStatusController.name),
            clock=context.clock,
            effects=enabled_effects(BLOCKING_EFFECTS, config.gates),
            counts_once=config.compat.counts_devices_once,
        )
    )


def add_deviceconflicts(context: ControllerContext) -> None:
    config = context.config
    if config.own_server and config.compat.rejects_devices_in_use:
        return
    claims = context.manager.informer(CLAIMS)
    context.manager.add(
        DeviceConflictController(
            claims=claims,
            conflicts=ConflictIndex(claims, context.inventory),
            recorder=context.env(DeviceConflictController.name).recorder,
            metrics=ConflictMetrics(context.metrics),
        )
    )


def add_devicemetrics(context: ControllerContext) -> None:
    config, manager = context.config, context.manager
    policies = manager.informer(DEVICE_POLICIES) if config.serves(DEVICE_POLICIES) else None
    maintenances = manager.informer(MAINTENANCES) if config.serves(MAINTENANCES) else None
    rules = manager.informer(RULES) if config.serves(RULES) else None
    add_device_metrics(
        manager,
        inventory=context.inventory,
        counted=Counted(policies, maintenances, rules),
        metrics=context.metrics,
        clock=context.clock,
    )
    if config.otlp_endpoint:
        traces = EvictionTraces(
            config.otlp_endpoint,
            pods=manager.informer(PODS),
            claims=manager.informer(CLAIMS),
            inventory=context.inventory,
            clock=context.clock,
        )
        manager.add_runnable(traces.run)
    if context.notifier is not None:
        sources = NotificationSources(context.notifier, context.clock)
        sources.follow_pods(manager.informer(PODS))
        sources.follow_slices(manager.informer(SLICES))
        if policies is not None:
            sources.follow_policies(policies)
        if config.serves(MAINTENANCES):
            sources.follow_maintenances(manager.informer(MAINTENANCES))
        if rules is not None:
            sources.follow_rules(rules)

"""Constructs the controllers: a part of the composition root (app.py, remote.py).

`CONTROLLERS` is the table. Each controller has one function that adds it to a manager. It gets the
shared caches from controller_context.py, and a client of its own, so that audit and RBAC
distinguish controllers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sully.client.discovery.resources import APIResource
from sully.client.http.prometheus import query
from sully.client.transport import Kind
from sully.controller_context import ControllerConfig, ControllerContext
from sully.controllers.aggregation import CLUSTER_ROLES, AggregationController
from sully.controllers.claims import controller as claims
from sully.controllers.claims.creator import ClaimCreator
from sully.controllers.claims.lookups import TEMPLATES, Lookups
from sully.controllers.claims.metrics import ClaimMetrics
from sully.controllers.claims.releasing import ReleaseController
from sully.controllers.clusters import kinds as hub
from sully.controllers.clusters.taint_expiry import ClusterTaintExpiryController
from sully.controllers.clusters.wiring import HubSettings, add_hub
from sully.controllers.customkinds import DEFINITIONS, listed_kinds
from sully.controllers.deviceconflicts import (
    ConflictIndex,
    ConflictMetrics,
    DeviceConflictController,
)
from sully.controllers.devicemaintenances.controller import DeviceMaintenanceController
from sully.controllers.devicemetrics.wiring import add_device_metrics
from sully.controllers.devicetaintpolicies.controller import DeviceTaintPolicyController
from sully.controllers.devicetaintpolicies.queries import PrometheusQueries
from sully.controllers.eviction.controller import BACKOFF as EVICTION_BACKOFF
from sully.controllers.eviction.controller import WORKERS, EvictionController
from sully.controllers.eviction.wiring import Access, eviction_caches, make_describer, make_eviction
from sully.controllers.expiry import ExpiryController
from sully.controllers.garbagecollection import controller as garbagecollection
from sully.controllers.garbagecollection.graph import Graph
from sully.controllers.garbagecollection.owners import Kinds, collected_kinds
from sully.controllers.history.controller import EvictionCounts, TaintHistoryController
from sully.controllers.history.retention import (
    RetentionController,
    deletion_time,
    evicted_since,
)
from sully.controllers.kinds import NAMESPACES, SERVICE_ACCOUNTS, PartialObjectMetadata
from sully.controllers.manager import Manager
from sully.controllers.namespaces.controller import (
    BACKOFF,
    Content,
    NamespacesController,
    namespaced_kinds,
)
from sully.controllers.notifications.sources import NotificationSources
from sully.controllers.notifications.tracing import EvictionTraces
from sully.controllers.patchstatus import PatchStatusController
from sully.controllers.placement.controller import PlacementController
from sully.controllers.placement.settings import placement_options
from sully.controllers.placement.wiring import WORKERS as PLACEMENT_WORKERS
from sully.controllers.placement.wiring import make_placement
from sully.controllers.poolstatus import PoolStatusController
from sully.controllers.proofjobs import PROOF_JOBS, SELECTOR, ProofJobs
from sully.controllers.resourcequota.controller import QUOTAS, ResourceQuotaController
from sully.controllers.resourcequota.usage import UsageCalculator
from sully.controllers.rootca import CONFIG_MAPS, PUBLISHED, RootCaController
from sully.controllers.scheduling.wiring import USER_AGENT as SCHEDULER
from sully.controllers.scheduling.wiring import add_scheduler
from sully.controllers.scheduling.wiring import options as scheduling_options
from sully.controllers.serviceaccounts import ACCOUNTS, ServiceAccountsController
from sully.controllers.simulatedclusters import USER_NAME as SIMULATED_CLUSTERS
from sully.controllers.simulatedclusters import add_simulated_clusters
from sully.controllers.simulatednodes.nodes import USER_AGENT as SIMULATED_NODES
from sully.controllers.simulatednodes.wiring import add_simulated_nodes
from sully.controllers.workloads.daemonsets import DaemonSetController
from sully.controllers.workloads.deployments import DeploymentController
from sully.controllers.workloads.disruption import (
    DisruptionController,
    StalePodDisruptionController,
    Workloads,
)
from sully.controllers.workloads.jobs import JobController
from sully.controllers.workloads.kinds import (
    BUDGETS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    REPLICA_SETS,
    REVISIONS,
    STATEFUL_SETS,
)
from sully.controllers.workloads.owned_pods import OwnedPods, OwnerT
from sully.controllers.workloads.replicasets import ReplicaSetController
from sully.controllers.workloads.statefulsets import StatefulSetController
from sully.domain.devices.taints import BLOCKING_EFFECTS, enabled_effects
from sully.domain.workloads.ownership import Owned
from sully.evictor.settings import EvictionOptions, eviction_options
from sully.runtime.clock import Clock
from sully.runtime.metrics import Metrics
from sully.views.devicepolicies.facts import FactsView
from sully.views.devices.usage import Usage
from sully.views.fleet_kinds import CLUSTERS, PLACEMENTS
from sully.views.kinds import (
    CLAIMS,
    CLASSES,
    DEVICE_HEALTH,
    DEVICE_POLICIES,
    EVICTION_RECORDS,
    MAINTENANCES,
    PAST_EVICTIONS,
    PATCHES,
    POLICY_NODES,
    POOL_STATUS_REQUESTS,
    RULES,
    SLICES,
    TAINT_RECORDS,
)
from sully.views.maintenance.pods import UnitPods


def build_manager(config: ControllerConfig, clock: Clock, metrics: Metrics) -> Manager:
    """Return a manager with the chosen controllers, in the order of the table."""
    context = ControllerContext(config, clock, metrics)
    for name, add in CONTROLLERS.items():
        if config.runs(name):
            add(context)
    if not config.runs("eviction"):
        _add_describer(context)
    _add_simulated_nodes(context)
    _add_simulated_clusters(context)
    return context.manager


def _add_aggregation(context: ControllerContext) -> None:
    context.manager.add(
        AggregationController(
            roles=context.manager.informer(CLUSTER_ROLES),
            transport=context.config.transport(AggregationController.name),
        )
    )


def _add_serviceaccounts(context: ControllerContext) -> None:
    context.manager.add(
        ServiceAccountsController(
            namespaces=context.manager.informer(NAMESPACES),
            accounts=context.manager.informer(SERVICE_ACCOUNTS, ACCOUNTS),
            transport=context.config.transport(ServiceAccountsController.name),
        )
    )


def _add_namespaces(context: ControllerContext) -> None:
    access = context.config.transport(NamespacesController.name)
    content = Content(access, namespaced_kinds(context.config.served))
    if context.config.serves(DEFINITIONS):
        # Listed when they are needed: the role of the controller does not allow a watch.
        served = context.config.served
        content.custom = partial(listed_kinds, access, served, PartialObjectMetadata)
    controller = NamespacesController(
        namespaces=context.manager.informer(NAMESPACES),
        content=content,
        transport=access,
        clock=context.clock,
    )
    context.manager.add(controller, backoff=BACKOFF)


def _add_rootca(context: ControllerContext) -> None:
    if not (context.config.certificate and context.config.compat.publishes_root_ca):
        return
    context.manager.add(
        RootCaController(
            namespaces=context.manager.informer(NAMESPACES),
            maps=context.manager.informer(CONFIG_MAPS, PUBLISHED),
            transport=context.config.transport(RootCaController.name),
            certificate=context.config.certificate,
        )
    )


def _add_garbagecollection(context: ControllerContext) -> None:
    graph, kinds = Graph(), collected_kinds(context.config.served)
    for kind in kinds.all:
        graph.follow(context.manager.informer(kind))
    access, recorder = context.client(
        garbagecollection.GarbageCollector.name, garbagecollection.COMPONENT
    )
    collector = garbagecollection.GarbageCollector(
        graph=graph, kinds=kinds, transport=access, recorder=recorder
    )
    context.manager.add(collector, workers=garbagecollection.WORKERS)
    if context.custom_kinds is not None:
        context.custom_kinds.on_change(partial(_collect, context.manager, graph, kinds))


def _collect(
    manager: Manager,
    graph: Graph,
    kinds: Kinds,
    old: APIResource | None,
    new: APIResource | None,
) -> None:
    """Watch the objects of a kind that came, or no longer those of one that went."""
    if old is not None:
        kind = old.as_kind(Owned)
        kinds.remove(kind)
        manager.end(kind)
        graph.forget(kind)
    if new is not None:
        kind = new.as_kind(Owned)
        kinds.add(kind, new.versions)
        graph.follow(manager.start(kind))


def _add_resourcequota(context: ControllerContext) -> None:
    access = context.config.transport(ResourceQuotaController.name)
    kinds = [kind for kind in collected_kinds(context.config.served).all if kind.namespaced]
    classes = context.manager.informer(CLASSES)
    usage = UsageCalculator(access, kinds, classes, context.clock)
    if context.custom_kinds is not None:
        usage.custom = partial(context.custom_kinds.all, PartialObjectMetadata)
    context.manager.add(
        ResourceQuotaController(
            quotas=context.manager.informer(QUOTAS),
            pods=context.pods.informer,
            claims=context.manager.informer(CLAIMS),
            usage=usage,
            transport=access,
            clock=context.clock,
        ),
        workers=5,
    )


def _add_replicasets(context: ControllerContext) -> None:
    owned = _owned_pods(context, REPLICA_SETS, ReplicaSetController.name)
    context.manager.add(ReplicaSetController(owned), workers=5)


def _add_deployments(context: ControllerContext) -> None:
    access, recorder = context.client(DeploymentController.name)
    controller = DeploymentController(
        deployments=context.manager.informer(DEPLOYMENTS),
        sets=context.manager.informer(REPLICA_SETS),
        pods=context.pods,
        transport=access,
        recorder=recorder,
        clock=context.clock,
    )
    context.manager.add(controller, workers=5)


def _add_jobs(context: ControllerContext) -> None:
    owned = _owned_pods(context, JOBS, JobController.name)
    context.manager.add(JobController(owned), workers=5)


def _add_statefulsets(context: ControllerContext) -> None:
    owned = _owned_pods(context, STATEFUL_SETS, StatefulSetController.name)
    revisions = context.manager.informer(REVISIONS)
    context.manager.add(StatefulSetController(owned=owned, revisions=revisions), workers=5)


def _add_daemonsets(context: ControllerContext) -> None:
    controller = DaemonSetController(
        owned=_owned_pods(context, DAEMON_SETS, DaemonSetController.name),
        nodes=context.manager.informer(NODES),
        revisions=context.manager.informer(REVISIONS),
    )
    context.manager.add(controller, workers=2)


def _owned_pods(context: ControllerContext, kind: Kind[OwnerT], name: str) -> OwnedPods[OwnerT]:
    """Return what a controller needs to manage the pods of a kind of workload."""
    access, recorder = context.client(name)
    return OwnedPods(
        owners=context.manager.informer(kind),
        pods=context.pods,
        transport=access,
        recorder=recorder,
        clock=context.clock,
    )


def _add_disruption(context: ControllerContext) -> None:
    access, recorder = context.client(DisruptionController.name)
    sets, deployments = (
        context.manager.informer(REPLICA_SETS),
        context.manager.informer(DEPLOYMENTS),
    )
    context.manager.add(
        DisruptionController(
            budgets=context.manager.informer(BUDGETS),
            pods=context.pods,
            workloads=Workloads(sets, deployments),
            transport=access,
            recorder=recorder,
            clock=context.clock,
        )
    )
    context.manager.add(
        StalePodDisruptionController(pods=context.pods, transport=access, clock=context.clock)
    )


def _add_claims(context: ControllerContext) -> None:
    lookups = Lookups(
        pods=context.pods.informer,
        claims=context.manager.informer(CLAIMS),
        templates=context.manager.informer(TEMPLATES),
    )
    metrics = ClaimMetrics(context.metrics)
    metrics.follow(lookups.claims)
    access, recorder = context.client(claims.NAME, claims.COMPONENT)
    pod_claims = claims.PodClaimsController(
        lookups=lookups,
        creator=ClaimCreator(lookups=lookups, transport=access, metrics=metrics),
        transport=access,
        recorder=recorder,
    )
    release = ReleaseController(lookups=lookups, transport=access)
    for controller in (pod_claims, release):
        context.manager.add(controller, workers=claims.WORKERS, backoff=claims.BACKOFF)


def _add_eviction(context: ControllerContext) -> None:
    if not context.config.gates["DRADeviceTaints"]:
        return
    access = Access(*context.client(EvictionController.name), context.notifier)
    config = context.config
    options = _eviction_options(config)
    controllers = make_eviction(
        context.manager, context.inventory, access, options, context.clock, context.metrics
    )
    # First: the status reports an eviction before it happens.
    context.manager.add(controllers.statuses, backoff=EVICTION_BACKOFF)
    context.manager.add(controllers.eviction, workers=WORKERS, backoff=EVICTION_BACKOFF)
    if config.describes_rules is not None and config.compat.reports_on_rules:
        config.describes_rules(controllers.describe)
    if controllers.unused_claims is not None:
        context.manager.add(controllers.unused_claims, backoff=EVICTION_BACKOFF)


def _eviction_options(config: ControllerConfig) -> EvictionOptions:
    return eviction_options(
        config.eviction,
        config.gates,
        compat=config.compat,
        records=config.serves(EVICTION_RECORDS),
        # Without the history controller there may be no permission to read its records.
        totals=config.serves(TAINT_RECORDS) and config.runs("history"),
    )


def _add_describer(context: ControllerContext) -> None:
    """Let the server describe rules whose eviction controller runs in another process."""
    config = context.config
    if config.describes_rules is None or not config.compat.reports_on_rules:
        return
    if config.gates["DRADeviceTaints"]:
        options = _eviction_options(config)
        config.describes_rules(
            make_describer(context.manager, context.inventory, options, context.clock)
        )


def _add_history(context: ControllerContext) -> None:
    # Also without the feature gates of taints: records still expire.
    config, manager, clock = context.config, context.manager, context.clock
    if not (config.serves(TAINT_RECORDS) and config.serves(EVICTION_RECORDS)):
        return
    access = config.transport(TaintHistoryController.name)
    evictions, records = manager.informer(PAST_EVICTIONS), manager.informer(TAINT_RECORDS)
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


def _add_expiry(context: ControllerContext) -> None:
    config = context.config
    if not (config.gates["SullyEvictionGuards"] and config.compat.limits_evictions):
        return
    access, recorder = context.client(ExpiryController.name)
    expiry = partial(ExpiryController, transport=access, recorder=recorder, clock=context.clock)
    if context.config.serves(RULES):
        context.manager.add(expiry(context.manager.informer(RULES)))
    if context.config.serves(PATCHES):
        context.manager.add(expiry(context.manager.informer(PATCHES)))
    if context.config.serves(CLUSTERS):
        context.manager.add(
            ClusterTaintExpiryController(
                context.manager.informer(CLUSTERS),
                transport=access,
                recorder=recorder,
                clock=context.clock,
            )
        )


def _add_patchstatus(context: ControllerContext) -> None:
    if not (context.config.compat.reports_on_patches and context.config.serves(PATCHES)):
        return
    access, recorder = context.client(PatchStatusController.name)
    context.manager.add(
        PatchStatusController(
            patches=context.manager.informer(PATCHES),
            inventory=context.inventory,
            transport=access,
            recorder=recorder,
            clock=context.clock,
        )
    )


def _add_devicetaintpolicies(context: ControllerContext) -> None:
    config, manager = context.config, context.manager
    if not (config.serves(DEVICE_POLICIES) and config.serves(RULES)):
        return
    access, recorder = context.client(DeviceTaintPolicyController.name)
    facts = FactsView(
        inventory=context.inventory,
        claims=manager.informer(CLAIMS),
        nodes=manager.informer(POLICY_NODES),
        health=manager.informer(DEVICE_HEALTH) if config.serves(DEVICE_HEALTH) else None,
    )
    queries = PrometheusQueries(query, context.clock)
    manager.add_runnable(queries.run)
    controller = DeviceTaintPolicyController(
        policies=manager.informer(DEVICE_POLICIES),
        rules=manager.informer(RULES),
        facts=facts,
        transport=access,
        recorder=recorder,
        clock=context.clock,
        jobs=ProofJobs(
            jobs=manager.informer(PROOF_JOBS, SELECTOR),
            claims=manager.informer(CLAIMS),
            transport=access,
            field_manager=DeviceTaintPolicyController.name,
        )
        if config.serves(PROOF_JOBS)
        else None,
        queries=queries,
        features=context.features,
    )
    manager.add(controller)


def _add_devicemaintenances(context: ControllerContext) -> None:
    config, manager = context.config, context.manager
    if not (config.serves(MAINTENANCES) and config.serves(RULES)):
        return
    access, recorder = context.client(DeviceMaintenanceController.name)
    pods = manager.informer(PODS)
    usage = Usage(pods=pods, claims=manager.informer(CLAIMS))
    controller = DeviceMaintenanceController(
        maintenances=manager.informer(MAINTENANCES),
        rules=manager.informer(RULES),
        inventory=context.inventory,
        nodes=manager.informer(POLICY_NODES),
        pods=UnitPods(pods, usage),
        usage=usage,
        transport=access,
        recorder=recorder,
        clock=context.clock,
        jobs=ProofJobs(
            jobs=manager.informer(PROOF_JOBS, SELECTOR),
            claims=manager.informer(CLAIMS),
            transport=access,
            field_manager=DeviceMaintenanceController.name,
        )
        if config.serves(PROOF_JOBS)
        else None,
        caches=eviction_caches(manager, context.inventory),
        max_staleness=_eviction_options(config).max_staleness,
    )
    manager.add(controller)


def _add_poolstatus(context: ControllerContext) -> None:
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


def _add_deviceconflicts(context: ControllerContext) -> None:
    config = context.config
    if config.own_server and config.compat.rejects_devices_in_use:
        return
    _, recorder = context.client(DeviceConflictController.name)
    claims = context.manager.informer(CLAIMS)
    context.manager.add(
        DeviceConflictController(
            claims=claims,
            conflicts=ConflictIndex(claims, context.inventory),
            recorder=recorder,
            metrics=ConflictMetrics(context.metrics),
        )
    )


def _add_devicemetrics(context: ControllerContext) -> None:
    config, manager = context.config, context.manager
    policies = manager.informer(DEVICE_POLICIES) if config.serves(DEVICE_POLICIES) else None
    rules = manager.informer(RULES) if config.serves(RULES) else None
    add_device_metrics(
        manager,
        inventory=context.inventory,
        policies=policies,
        rules=rules,
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


def _add_placement(context: ControllerContext) -> None:
    config = context.config
    if not config.serves(PLACEMENTS):
        return
    access, recorder = context.client(PlacementController.name)
    controller = make_placement(
        context.manager,
        transport=access,
        recorder=recorder,
        clock=context.clock,
        metrics=context.metrics,
        options=placement_options(config.placement, config.compat),
        evaluator=context.evaluator,
    )
    context.manager.add(controller, workers=PLACEMENT_WORKERS)


def _add_clusters(context: ControllerContext) -> None:
    if context.config.serves(CLUSTERS):
        config = context.config
        add_hub(
            context.manager,
            client=context.client,
            access=config.transport,
            clock=context.clock,
            settings=HubSettings(
                policies=config.serves(hub.POLICIES),
                serving_since=config.serving_since,
                compat=config.compat,
                sets_taint_times=True if config.own_server else None,
            ),
        )


def _add_simulated_nodes(context: ControllerContext) -> None:
    # Not in the table: nodes are not controllers, and run in the same process.
    if context.config.simulated_nodes is not None:
        access, recorder = context.client(SIMULATED_NODES, "kubelet")
        add_simulated_nodes(
            context.manager,
            transport=access,
            recorder=recorder,
            clock=context.clock,
            settings=context.config.simulated_nodes,
        )


def _add_simulated_clusters(context: ControllerContext) -> None:
    members, agent = context.config.simulated_clusters, context.config.agent
    if members is not None and agent is not None:
        access, recorder = context.client(SIMULATED_CLUSTERS, "registration-agent")
        add_simulated_clusters(
            context.manager,
            transport=access,
            transport_for=agent,
            recorder=recorder,
            clock=context.clock,
            members=members,
        )


def _add_scheduling(context: ControllerContext) -> None:
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
    )


CONTROLLERS: dict[str, Callable[[ControllerContext], None]] = {
    "aggregation": _add_aggregation,
    "serviceaccounts": _add_serviceaccounts,
    "namespaces": _add_namespaces,
    "rootca": _add_rootca,
    "garbagecollection": _add_garbagecollection,
    "resourcequota": _add_resourcequota,
    "replicasets": _add_replicasets,
    "deployments": _add_deployments,
    "jobs": _add_jobs,
    "statefulsets": _add_statefulsets,
    "daemonsets": _add_daemonsets,
    "disruption": _add_disruption,
    "claims": _add_claims,
    "eviction": _add_eviction,
    "history": _add_history,
    "expiry": _add_expiry,
    "patchstatus": _add_patchstatus,
    "poolstatus": _add_poolstatus,
    "deviceconflicts": _add_deviceconflicts,
    "devicemetrics": _add_devicemetrics,
    "devicetaintpolicies": _add_devicetaintpolicies,
    "devicemaintenances": _add_devicemaintenances,
    "clusters": _add_clusters,
    "scheduling": _add_scheduling,
    "placement": _add_placement,
}
"""Every controller, by the name that `--only` takes: that of its module or package."""

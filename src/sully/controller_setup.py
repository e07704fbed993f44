"""Which controllers run in a control plane, and what each of them is given.

A part of the composition root (app.py, remote.py): nothing here decides anything. `CONTROLLERS` is
the table; each controller has one function that adds it to a manager, and gets what it needs from
controller_context.py: the caches it reads, which are shared, and a client of its own, so that the
audit log and the roles tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sully.controller_context import Given, Parts
from sully.controllers.aggregation.controller import CLUSTER_ROLES, AggregationController
from sully.controllers.claims import controller as claims
from sully.controllers.claims.lookups import TEMPLATES, Lookups
from sully.controllers.claims.maker import ClaimMaker
from sully.controllers.claims.metrics import ClaimMetrics
from sully.controllers.claims.releasing import ReleaseController
from sully.controllers.clusters import kinds as hub
from sully.controllers.clusters.wiring import HubSettings, Listening, add_hub
from sully.controllers.deployments.controller import DeploymentController
from sully.controllers.disruption.controller import DisruptionController, Workloads
from sully.controllers.disruption.marks import StaleMarksController
from sully.controllers.eviction.controller import BACKOFF as EVICTION_BACKOFF
from sully.controllers.eviction.controller import WORKERS, EvictionController
from sully.controllers.eviction.wiring import Access, make_eviction
from sully.controllers.expiry.controller import ExpiryController
from sully.controllers.garbagecollection import controller as garbagecollection
from sully.controllers.garbagecollection.graph import Graph
from sully.controllers.garbagecollection.owners import collected_kinds
from sully.controllers.history.controller import TaintHistoryController
from sully.controllers.history.wiring import add_history
from sully.controllers.kinds import NAMESPACES, SERVICE_ACCOUNTS
from sully.controllers.manager import Manager
from sully.controllers.namespaces.content import Content, namespaced_kinds
from sully.controllers.namespaces.controller import BACKOFF, NamespacesController
from sully.controllers.patchstatus.controller import PatchStatusController
from sully.controllers.placement.controller import PlacementController
from sully.controllers.placement.settings import behaviour
from sully.controllers.placement.wiring import WORKERS as PLACEMENT_WORKERS
from sully.controllers.placement.wiring import make_placement
from sully.controllers.replicasets.controller import ReplicaSetController
from sully.controllers.resourcequota.controller import QUOTAS, ResourceQuotaController
from sully.controllers.resourcequota.counting import Counting
from sully.controllers.rootca.controller import CONFIG_MAPS, PUBLISHED, RootCaController
from sully.controllers.scheduling.kinds import AGENT as SCHEDULER
from sully.controllers.scheduling.wiring import add_scheduler
from sully.controllers.scheduling.wiring import options as scheduling_options
from sully.controllers.serviceaccounts.controller import ACCOUNTS, ServiceAccountsController
from sully.controllers.simulatedclusters.kinds import AGENT as HOLLOW_CLUSTERS
from sully.controllers.simulatedclusters.wiring import add_hollow_clusters
from sully.controllers.simulatednodes.kinds import AGENT as HOLLOW
from sully.controllers.simulatednodes.wiring import add_hollow
from sully.controllers.workloads import BUDGETS, DEPLOYMENTS, REPLICA_SETS
from sully.evictor.settings import eviction_options
from sully.runtime.clock import Clock
from sully.runtime.metrics import Metrics
from sully.views.fleet_kinds import CLUSTERS, PLACEMENTS
from sully.views.kinds import (
    CLAIMS,
    CLASSES,
    EVICTION_RECORDS,
    PATCHES,
    RULES,
    TAINT_RECORDS,
)


def build_manager(given: Given, clock: Clock, metrics: Metrics) -> Manager:
    """Put together the controllers that were chosen, in the order of the table."""
    parts = Parts(given, clock, metrics)
    for name, add in CONTROLLERS.items():
        if given.runs(name):
            add(parts)
    _add_hollow(parts)
    _add_hollow_clusters(parts)
    return parts.manager


def _add_aggregation(parts: Parts) -> None:
    parts.manager.add(
        AggregationController(
            roles=parts.manager.informer(CLUSTER_ROLES),
            transport=parts.given.transport(AggregationController.name),
        )
    )


def _add_serviceaccounts(parts: Parts) -> None:
    parts.manager.add(
        ServiceAccountsController(
            namespaces=parts.manager.informer(NAMESPACES),
            accounts=parts.manager.informer(SERVICE_ACCOUNTS, ACCOUNTS),
            creator=parts.given.transport(ServiceAccountsController.name),
        )
    )


def _add_namespaces(parts: Parts) -> None:
    access = parts.given.transport(NamespacesController.name)
    controller = NamespacesController(
        namespaces=parts.manager.informer(NAMESPACES),
        content=Content(access, namespaced_kinds(parts.given.served)),
        transport=access,
        clock=parts.clock,
    )
    parts.manager.add(controller, backoff=BACKOFF)


def _add_rootca(parts: Parts) -> None:
    # The reference was observed with this one switched off.
    if parts.given.strict or not parts.given.certificate:
        return
    parts.manager.add(
        RootCaController(
            namespaces=parts.manager.informer(NAMESPACES),
            maps=parts.manager.informer(CONFIG_MAPS, PUBLISHED),
            transport=parts.given.transport(RootCaController.name),
            certificate=parts.given.certificate,
        )
    )


def _add_garbagecollection(parts: Parts) -> None:
    graph, kinds = Graph(), collected_kinds(parts.given.served)
    for kind in kinds.all:
        graph.follow(parts.manager.informer(kind))
    access, recorder = parts.acting(
        garbagecollection.GarbageCollector.name, garbagecollection.COMPONENT
    )
    collector = garbagecollection.GarbageCollector(
        graph=graph, kinds=kinds, transport=access, recorder=recorder
    )
    parts.manager.add(collector, workers=garbagecollection.WORKERS)


def _add_resourcequota(parts: Parts) -> None:
    access = parts.given.transport(ResourceQuotaController.name)
    kinds = [kind for kind in collected_kinds(parts.given.served).all if kind.namespaced]
    classes = parts.manager.informer(CLASSES)
    parts.manager.add(
        ResourceQuotaController(
            quotas=parts.manager.informer(QUOTAS),
            pods=parts.pods.informer,
            claims=parts.manager.informer(CLAIMS),
            counting=Counting(access, kinds, classes, parts.clock),
            transport=access,
            clock=parts.clock,
        ),
        workers=5,
    )


def _add_replicasets(parts: Parts) -> None:
    access, recorder = parts.acting(ReplicaSetController.name)
    controller = ReplicaSetController(
        sets=parts.manager.informer(REPLICA_SETS),
        pods=parts.pods,
        transport=access,
        recorder=recorder,
        clock=parts.clock,
    )
    parts.manager.add(controller, workers=5)


def _add_deployments(parts: Parts) -> None:
    access, recorder = parts.acting(DeploymentController.name)
    controller = DeploymentController(
        deployments=parts.manager.informer(DEPLOYMENTS),
        sets=parts.manager.informer(REPLICA_SETS),
        pods=parts.pods,
        transport=access,
        recorder=recorder,
        clock=parts.clock,
    )
    parts.manager.add(controller, workers=5)


def _add_disruption(parts: Parts) -> None:
    access, recorder = parts.acting(DisruptionController.name)
    sets, deployments = parts.manager.informer(REPLICA_SETS), parts.manager.informer(DEPLOYMENTS)
    parts.manager.add(
        DisruptionController(
            budgets=parts.manager.informer(BUDGETS),
            pods=parts.pods,
            workloads=Workloads(sets, deployments),
            transport=access,
            recorder=recorder,
            clock=parts.clock,
        )
    )
    parts.manager.add(StaleMarksController(pods=parts.pods, transport=access, clock=parts.clock))


def _add_claims(parts: Parts) -> None:
    lookups = Lookups(
        pods=parts.pods.informer,
        claims=parts.manager.informer(CLAIMS),
        templates=parts.manager.informer(TEMPLATES),
    )
    counted = ClaimMetrics(parts.metrics)
    counted.follow(lookups.claims)
    access, recorder = parts.acting(claims.NAME, claims.COMPONENT)
    making = claims.PodClaimsController(
        lookups=lookups,
        maker=ClaimMaker(lookups=lookups, transport=access, metrics=counted),
        transport=access,
        recorder=recorder,
    )
    releasing = ReleaseController(lookups=lookups, transport=access)
    for controller in (making, releasing):
        parts.manager.add(controller, workers=claims.WORKERS, backoff=claims.BACKOFF)


def _add_eviction(parts: Parts) -> None:
    if not parts.given.gates["DRADeviceTaints"]:
        return
    access = Access(*parts.acting(EvictionController.name))
    given = parts.given
    options = eviction_options(
        given.eviction,
        given.gates,
        strict=given.strict,
        records=given.serves(EVICTION_RECORDS),
        # Who runs without the history controller may not be allowed to read its records.
        totals=given.serves(TAINT_RECORDS) and given.runs("history"),
    )
    statuses, controller = make_eviction(
        parts.manager, parts.inventory, access, options, parts.clock, parts.metrics
    )
    # Before the other: what will happen is said before it happens.
    parts.manager.add(statuses, backoff=EVICTION_BACKOFF)
    parts.manager.add(controller, workers=WORKERS, backoff=EVICTION_BACKOFF)


def _add_history(parts: Parts) -> None:
    # Also without the gates of taints: what was remembered is still forgotten in time.
    if parts.given.serves(TAINT_RECORDS) and parts.given.serves(EVICTION_RECORDS):
        access = parts.given.transport(TaintHistoryController.name)
        add_history(parts.manager, access, clock=parts.clock, keep=parts.given.history)


def _add_expiry(parts: Parts) -> None:
    if parts.given.strict or not parts.given.gates["SullyEvictionGuards"]:
        return
    access, recorder = parts.acting(ExpiryController.name)
    ends = partial(ExpiryController, transport=access, recorder=recorder, clock=parts.clock)
    if parts.given.serves(RULES):
        parts.manager.add(ends(parts.manager.informer(RULES)))
    if parts.given.serves(PATCHES):
        parts.manager.add(ends(parts.manager.informer(PATCHES)))


def _add_patchstatus(parts: Parts) -> None:
    if parts.given.strict or not parts.given.serves(PATCHES):
        return
    access, recorder = parts.acting(PatchStatusController.name)
    parts.manager.add(
        PatchStatusController(
            patches=parts.manager.informer(PATCHES),
            inventory=parts.inventory,
            transport=access,
            recorder=recorder,
            clock=parts.clock,
        )
    )


def _add_placement(parts: Parts) -> None:
    given = parts.given
    if not given.serves(PLACEMENTS):
        return
    access, recorder = parts.acting(PlacementController.name)
    controller = make_placement(
        parts.manager,
        transport=access,
        recorder=recorder,
        clock=parts.clock,
        metrics=parts.metrics,
        behaviour=behaviour(given.placement, strict=given.strict),
        evaluator=parts.evaluator,
    )
    parts.manager.add(controller, workers=PLACEMENT_WORKERS)


def _add_clusters(parts: Parts) -> None:
    if parts.given.serves(CLUSTERS):
        given = parts.given
        add_hub(
            parts.manager,
            acting=parts.acting,
            access=given.transport,
            clock=parts.clock,
            settings=HubSettings(
                policies=given.serves(hub.POLICIES),
                listening=None if given.strict else Listening(given.serving_since),
                strict=given.strict,
            ),
        )


def _add_hollow(parts: Parts) -> None:
    # Not in the table: machines are not controllers, and run here wherever those run.
    if parts.given.hollow is not None:
        access, recorder = parts.acting(HOLLOW, "kubelet")
        add_hollow(
            parts.manager,
            transport=access,
            recorder=recorder,
            clock=parts.clock,
            settings=parts.given.hollow,
        )


def _add_hollow_clusters(parts: Parts) -> None:
    wanted, agent = parts.given.hollow_clusters, parts.given.agent
    if wanted is not None and agent is not None:
        access, recorder = parts.acting(HOLLOW_CLUSTERS, "registration-agent")
        add_hollow_clusters(
            parts.manager,
            transport=access,
            access=agent,
            recorder=recorder,
            clock=parts.clock,
            wanted=wanted,
        )


def _add_scheduling(parts: Parts) -> None:
    add_scheduler(
        parts.manager,
        transport=parts.given.transport(SCHEDULER),
        inventory=parts.scheduling_inventory,
        clock=parts.clock,
        ids=parts.given.ids,
        settings=scheduling_options(
            parts.given.gates, strict=parts.given.strict, schedulers=parts.given.schedulers
        ),
        metrics=parts.metrics,
        evaluator=parts.evaluator,
    )


CONTROLLERS: dict[str, Callable[[Parts], None]] = {
    "aggregation": _add_aggregation,
    "serviceaccounts": _add_serviceaccounts,
    "namespaces": _add_namespaces,
    "rootca": _add_rootca,
    "garbagecollection": _add_garbagecollection,
    "resourcequota": _add_resourcequota,
    "replicasets": _add_replicasets,
    "deployments": _add_deployments,
    "disruption": _add_disruption,
    "claims": _add_claims,
    "eviction": _add_eviction,
    "history": _add_history,
    "expiry": _add_expiry,
    "patchstatus": _add_patchstatus,
    "clusters": _add_clusters,
    "scheduling": _add_scheduling,
    "placement": _add_placement,
}
"""Every controller, by the name that `--only` takes: that of its folder."""

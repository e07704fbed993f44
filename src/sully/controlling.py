"""Which controllers run in a control plane, and what each of them is given.

A part of the composition root (app.py): nothing here decides anything. Each controller gets the
caches it reads, which are shared, and an access of its own to the API, so that the audit log and
the roles tell them apart.
"""

from dataclasses import dataclass

from sully.client.direct import DirectTransport
from sully.client.events import EventRecorder
from sully.controllers.aggregation.controller import CLUSTER_ROLES, AggregationController
from sully.controllers.claims import controller as claims
from sully.controllers.claims.lookups import TEMPLATES, Lookups
from sully.controllers.claims.maker import ClaimMaker
from sully.controllers.claims.metrics import ClaimMetrics
from sully.controllers.claims.releasing import ReleaseController
from sully.controllers.deployments.controller import DeploymentController
from sully.controllers.disruption.controller import DisruptionController, Workloads
from sully.controllers.disruption.marks import StaleMarksController
from sully.controllers.eviction.controller import BACKOFF as EVICTION_BACKOFF
from sully.controllers.eviction.controller import WORKERS, EvictionController
from sully.controllers.eviction.evictor import Evictor
from sully.controllers.eviction.metrics import EvictionMetrics
from sully.controllers.eviction.status import PROMPT, REFERENCE, RuleStatuses
from sully.controllers.garbagecollection import controller as garbagecollection
from sully.controllers.garbagecollection.graph import Graph
from sully.controllers.garbagecollection.owners import collected_kinds
from sully.controllers.kinds import NAMESPACES, SERVICE_ACCOUNTS
from sully.controllers.manager import Manager
from sully.controllers.namespaces.content import Content, namespaced_kinds
from sully.controllers.namespaces.controller import BACKOFF, NamespacesController
from sully.controllers.replicasets.controller import ReplicaSetController
from sully.controllers.rootca.controller import CONFIG_MAPS, PUBLISHED, RootCaController
from sully.controllers.scheduling.kinds import AGENT as SCHEDULER
from sully.controllers.scheduling.wiring import add_scheduler
from sully.controllers.scheduling.wiring import options as scheduling_options
from sully.controllers.serviceaccounts.controller import ACCOUNTS, ServiceAccountsController
from sully.controllers.workloads import BUDGETS, DEPLOYMENTS, REPLICA_SETS, Pods
from sully.controllers.workloads import PODS as WORKLOAD_PODS
from sully.machinery.gates import Gates
from sully.runtime.clock import Clock
from sully.runtime.metrics import Metrics
from sully.server.api import Api
from sully.server.inprocess import InProcess
from sully.server.requests import User
from sully.views.changes import features
from sully.views.exposures import Exposures
from sully.views.inventory import Inventory
from sully.views.kinds import CLAIMS, CLASSES, PATCHES, PODS, RULES, SLICES
from sully.views.usage import Usage

MANAGER = "kube-controller-manager"
"""Whose informers all controllers share; it may read everything and write next to nothing."""
CONTROLLER_GROUPS = (
    "system:serviceaccounts",
    "system:serviceaccounts:kube-system",
    "system:authenticated",
)


@dataclass(frozen=True, slots=True)
class Given:
    """What controllers need to know of their control plane."""

    api: Api
    certificate: str  # of the authority, to be published
    gates: Gates
    strict: bool = False  # as the reference does, nothing of ours
    scheduler: bool = True


def build_manager(given: Given, clock: Clock, metrics: Metrics) -> Manager:
    """Put together everything that runs beside the API server."""
    manager = Manager(_transport(given, MANAGER), clock=clock, metrics=metrics)
    manager.add(
        AggregationController(
            roles=manager.informer(CLUSTER_ROLES),
            transport=_transport(given, AggregationController.name),
        )
    )
    namespaces = manager.informer(NAMESPACES)
    manager.add(
        ServiceAccountsController(
            namespaces=namespaces,
            accounts=manager.informer(SERVICE_ACCOUNTS, ACCOUNTS),
            creator=_transport(given, ServiceAccountsController.name),
        )
    )
    access = _transport(given, NamespacesController.name)
    content = Content(access, namespaced_kinds(given.api.scheme))
    manager.add(
        NamespacesController(namespaces=namespaces, content=content, transport=access, clock=clock),
        backoff=BACKOFF,
    )
    if not given.strict:
        # The reference was observed with this one switched off.
        manager.add(
            RootCaController(
                namespaces=namespaces,
                maps=manager.informer(CONFIG_MAPS, PUBLISHED),
                transport=_transport(given, RootCaController.name),
                certificate=given.certificate,
            )
        )
    manager.add(_garbage_collector(given, manager, clock), workers=garbagecollection.WORKERS)
    _add_workloads(given, manager, clock)
    _add_claims(given, manager, clock, metrics)
    inventory = _inventory(given, manager)
    if given.gates["DRADeviceTaints"]:
        _add_eviction(given, manager, inventory, clock, metrics)
    if given.scheduler:
        add_scheduler(
            manager,
            transport=_transport(given, SCHEDULER),
            inventory=inventory,
            clock=clock,
            ids=given.api.writer.ids,
            settings=scheduling_options(given.gates, strict=given.strict),
        )
    return manager


def _garbage_collector(
    given: Given, manager: Manager, clock: Clock
) -> garbagecollection.GarbageCollector:
    graph, kinds = Graph(), collected_kinds(given.api.scheme)
    for kind in kinds.all:
        graph.follow(manager.informer(kind))
    access = _transport(given, garbagecollection.GarbageCollector.name)
    recorder = EventRecorder(access, garbagecollection.COMPONENT, clock=clock)
    manager.alongside(recorder.run)
    return garbagecollection.GarbageCollector(
        graph=graph, kinds=kinds, transport=access, recorder=recorder
    )


def _add_workloads(given: Given, manager: Manager, clock: Clock) -> None:
    """Add those who keep pods and count them; they share their caches."""
    pods = Pods(manager.informer(WORKLOAD_PODS))
    sets, deployments = manager.informer(REPLICA_SETS), manager.informer(DEPLOYMENTS)

    def acting(name: str) -> tuple[DirectTransport, EventRecorder]:
        access = _transport(given, name)
        recorder = EventRecorder(access, name, clock=clock)
        manager.alongside(recorder.run)
        return access, recorder

    access, recorder = acting(ReplicaSetController.name)
    manager.add(
        ReplicaSetController(
            sets=sets, pods=pods, transport=access, recorder=recorder, clock=clock
        ),
        workers=5,
    )
    access, recorder = acting(DeploymentController.name)
    manager.add(
        DeploymentController(
            deployments=deployments,
            sets=sets,
            pods=pods,
            transport=access,
            recorder=recorder,
            clock=clock,
        ),
        workers=5,
    )
    access, recorder = acting(DisruptionController.name)
    manager.add(
        DisruptionController(
            budgets=manager.informer(BUDGETS),
            pods=pods,
            workloads=Workloads(sets, deployments),
            transport=access,
            recorder=recorder,
            clock=clock,
        )
    )
    manager.add(StaleMarksController(pods=pods, transport=access, clock=clock))


def _add_claims(given: Given, manager: Manager, clock: Clock, metrics: Metrics) -> None:
    lookups = Lookups(
        pods=manager.informer(PODS),
        claims=manager.informer(CLAIMS),
        templates=manager.informer(TEMPLATES),
    )
    counted = ClaimMetrics(metrics)
    counted.follow(lookups.claims)
    access = _transport(given, claims.NAME)
    recorder = EventRecorder(access, claims.COMPONENT, clock=clock)
    manager.alongside(recorder.run)
    making = claims.PodClaimsController(
        lookups=lookups,
        maker=ClaimMaker(lookups=lookups, transport=access, metrics=counted),
        transport=access,
        recorder=recorder,
    )
    releasing = ReleaseController(lookups=lookups, transport=access)
    for controller in (making, releasing):
        manager.add(controller, workers=claims.WORKERS, backoff=claims.BACKOFF)


def _inventory(given: Given, manager: Manager) -> Inventory:
    return Inventory(
        slices=manager.informer(SLICES),
        classes=manager.informer(CLASSES),
        rules=manager.informer(RULES),
        # The reference has no such kind.
        patches=None if given.strict else manager.informer(PATCHES),
        features=features(given.gates),
    )


def _add_eviction(
    given: Given, manager: Manager, inventory: Inventory, clock: Clock, metrics: Metrics
) -> None:
    strict, name = given.strict, EvictionController.name
    usage = Usage(
        pods=manager.informer(PODS), claims=manager.informer(CLAIMS), extended_resources=not strict
    )
    exposures = Exposures(inventory, usage, clock=clock, strict=strict)
    access = _transport(given, name)
    recorder = EventRecorder(access, name, clock=clock)
    manager.alongside(recorder.run)
    statuses = RuleStatuses(
        exposures=exposures,
        transport=access,
        recorder=recorder,
        clock=clock,
        manager=name,
        pace=REFERENCE if strict else PROMPT,
    )
    # Before the other: what will happen is said before it happens.
    manager.add(statuses, backoff=EVICTION_BACKOFF)
    controller = EvictionController(
        exposures=exposures,
        evictor=Evictor(access, recorder, clock),
        statuses=statuses,
        clock=clock,
        metrics=EvictionMetrics(metrics),
        strict=strict,
    )
    manager.add(controller, workers=WORKERS, backoff=EVICTION_BACKOFF)


def _transport(given: Given, name: str) -> DirectTransport:
    """Return a controller's own access, so that the API can tell who did what."""
    user = User(f"system:serviceaccount:kube-system:{name}", CONTROLLER_GROUPS)
    if name in (MANAGER, SCHEDULER):
        user = User(f"system:{name}", ("system:authenticated",))
    return DirectTransport(InProcess(given.api, user, agent=name))

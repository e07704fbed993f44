"""The composition root: the one place where things are constructed.

`ControlPlane` is a whole embedded control plane: store, API server, controllers. The CLI runs one
in a process of its own; tests run them beside each other in one process.
"""

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sully.api import build_scheme
from sully.client.direct import DirectTransport
from sully.client.events import EventRecorder
from sully.client.kubeconfig_file import Login, kubeconfig, write_kubeconfig
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
from sully.runtime.clock import Clock, SystemClock
from sully.runtime.ids import Ids
from sully.runtime.log import get_logger
from sully.runtime.metrics import Metrics
from sully.server.api import Api, Chance
from sully.server.audit import AuditLog
from sully.server.authentication import documents, reviews
from sully.server.authentication.accounts import Accounts
from sully.server.authentication.authenticator import Authenticator
from sully.server.authentication.groups import MASTERS
from sully.server.authentication.issuing import Issuer
from sully.server.authentication.keys import SigningKey
from sully.server.bootstrap import ensure_namespaces, ensure_policy
from sully.server.http.app import HttpApp
from sully.server.http.door import Door
from sully.server.http.metrics import RequestCounter
from sully.server.inprocess import InProcess
from sully.server.limits import Allowance, Limits
from sully.server.listen import Listener, bind, own_names, tls_context
from sully.server.renewal import Renewal, ServerCertificate
from sully.server.requests import User
from sully.server.tls import Authority, Pair, expires_soon
from sully.store.base import Store
from sully.store.compaction import Compactor
from sully.store.memory import MemoryStore
from sully.store.sqlite import SqliteStore
from sully.views.changes import features
from sully.views.exposures import Exposures
from sully.views.inventory import Inventory
from sully.views.kinds import CLAIMS, CLASSES, PATCHES, PODS, RULES, SLICES
from sully.views.usage import Usage

_log = get_logger("app")
ADMIN = User("kubernetes-admin", ("system:masters", "system:authenticated"))
MANAGER = "kube-controller-manager"
"""Whose informers all controllers share; it may read everything and write next to nothing."""
CONTROLLER_GROUPS = (
    "system:serviceaccounts",
    "system:serviceaccounts:kube-system",
    "system:authenticated",
)
LONGEST_TOKEN = 365 * 24 * 3600
"""Seconds a service-account token may be good for."""
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc")


@dataclass(frozen=True, slots=True)
class Config:
    """How a control plane is to run."""

    data_dir: Path
    host: str = "127.0.0.1"
    port: int = 8443
    store: str = "sqlite"  # or memory
    gates: Gates = field(default_factory=Gates)
    strict_compat: bool = False
    names: tuple[str, ...] = ()  # further names and addresses under which clients find the server
    anonymous: bool = False  # whether roles decide what those without credentials may do
    audit_log: str | None = None  # a file, `-` for the standard output, empty for none; None: usual
    allowance: Allowance = field(default_factory=Allowance)
    scheduler: bool = True


class ControlPlane:
    """A running control plane; made by `running`."""

    def __init__(self, config: Config, api: Api, listener: Listener, authority: Authority) -> None:
        self.config = config
        self.api = api
        self.authority = authority
        self._listener = listener

    @property
    def url(self) -> str:
        """Return where clients find the API."""
        host = self.config.host
        shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(
            host, f"[{host}]" if ":" in host else host
        )
        return f"https://{shown}:{self._listener.port}"

    @property
    def kubeconfig(self) -> Path:
        """Return the file that lets an admin in."""
        return self.config.data_dir / "kubeconfig"

    def direct(self, user: User = ADMIN) -> InProcess:
        """Return a user's access without a socket."""
        return InProcess(self.api, user)


@asynccontextmanager
async def running(config: Config, clock: Clock | None = None) -> AsyncIterator[ControlPlane]:
    """Run a control plane as long as the block lasts; on the way out, watches end first."""
    clock = clock or SystemClock()
    listening = bind(config.host, config.port)
    async with AsyncExitStack() as stack:
        stack.callback(listening.close)
        store = await stack.enter_async_context(await _open_store(config))
        chance = Chance(clock, Ids(), random.Random())
        api = Api(
            scheme=build_scheme(reference=config.strict_compat),
            store=store,
            chance=chance,
            gates=config.gates,
            strict_compat=config.strict_compat,
        )
        await api.authorizer.start()
        await ensure_namespaces(InProcess(api, ADMIN))
        await ensure_policy(InProcess(api, ADMIN))
        api.audit = _audit_log(config)
        if api.audit is not None:
            stack.callback(api.audit.close)
        async with _serving(config, api, listening, clock) as plane:
            yield plane


async def _open_store(config: Config) -> Store:
    if config.store == "memory":
        config.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        return MemoryStore()
    return await SqliteStore.open(config.data_dir)


@asynccontextmanager
async def _serving(
    config: Config, api: Api, listening: socket.socket, clock: Clock
) -> AsyncIterator[ControlPlane]:
    authority = Authority.open(config.data_dir, clock.now())
    serving = ServerCertificate(config.data_dir, authority, _names(config))
    serving.ensure(clock)
    context = tls_context(serving.certificate, serving.key, authority.pair.certificate)
    metrics = Metrics()
    key = SigningKey.open(config.data_dir)
    app = HttpApp(api, clock, RequestCounter(metrics), _door(config, api, key, clock))
    app.checks["store"] = lambda: ""
    listener = Listener(app, listening, context)
    await listener.start()
    plane = ControlPlane(config, api, listener, authority)
    app.documents |= documents.pages(key, plane.url)
    login = _AdminLogin(plane, clock)
    renewal = Renewal(serving, context, clock, login.ensure)
    manager = _controllers(plane, clock, metrics)
    async with asyncio.TaskGroup() as tasks:
        serving_requests = tasks.create_task(listener.serve())
        compacting = tasks.create_task(Compactor(api.store, clock).run())
        following = tasks.create_task(api.authorizer.keep(clock))
        renewing = tasks.create_task(renewal.run())
        controlling = tasks.create_task(manager.run())
        try:
            # Whoever is told that we are ready may at once create pods in `default`.
            await manager.settled()
            yield plane
        finally:
            # First those who use the API; their watches must not be cut off under them.
            manager.stop()
            await asyncio.wait([controlling])
            # Watches end by themselves, then the listener has nothing left to wait for.
            api.watcher.stop()
            listener.stop()
            compacting.cancel()
            following.cancel()
            renewing.cancel()
            await serving_requests


def _controllers(plane: ControlPlane, clock: Clock, metrics: Metrics) -> Manager:
    manager = Manager(_transport(plane, MANAGER), clock=clock, metrics=metrics)
    manager.add(
        AggregationController(
            roles=manager.informer(CLUSTER_ROLES),
            transport=_transport(plane, AggregationController.name),
        )
    )
    namespaces = manager.informer(NAMESPACES)
    manager.add(
        ServiceAccountsController(
            namespaces=namespaces,
            accounts=manager.informer(SERVICE_ACCOUNTS, ACCOUNTS),
            creator=_transport(plane, ServiceAccountsController.name),
        )
    )
    access = _transport(plane, NamespacesController.name)
    content = Content(access, namespaced_kinds(plane.api.scheme))
    manager.add(
        NamespacesController(namespaces=namespaces, content=content, transport=access, clock=clock),
        backoff=BACKOFF,
    )
    if not plane.config.strict_compat:
        # The reference was observed with this one switched off.
        manager.add(
            RootCaController(
                namespaces=namespaces,
                maps=manager.informer(CONFIG_MAPS, PUBLISHED),
                transport=_transport(plane, RootCaController.name),
                certificate=plane.authority.pair.certificate.decode(),
            )
        )
    manager.add(_garbage_collector(plane, manager, clock), workers=garbagecollection.WORKERS)
    _add_workloads(plane, manager, clock)
    _add_claims(plane, manager, clock, metrics)
    inventory = _inventory(plane, manager)
    if plane.config.gates["DRADeviceTaints"]:
        _add_eviction(plane, manager, inventory, clock, metrics)
    if plane.config.scheduler:
        add_scheduler(
            manager,
            transport=_transport(plane, SCHEDULER),
            inventory=inventory,
            clock=clock,
            ids=plane.api.writer.ids,
            settings=scheduling_options(plane.config.gates, strict=plane.config.strict_compat),
        )
    return manager


def _garbage_collector(
    plane: ControlPlane, manager: Manager, clock: Clock
) -> garbagecollection.GarbageCollector:
    graph, kinds = Graph(), collected_kinds(plane.api.scheme)
    for kind in kinds.all:
        graph.follow(manager.informer(kind))
    access = _transport(plane, garbagecollection.GarbageCollector.name)
    recorder = EventRecorder(access, garbagecollection.COMPONENT, clock=clock)
    manager.alongside(recorder.run)
    return garbagecollection.GarbageCollector(
        graph=graph, kinds=kinds, transport=access, recorder=recorder
    )


def _add_workloads(plane: ControlPlane, manager: Manager, clock: Clock) -> None:
    """Add those who keep pods and count them; they share their caches."""
    pods = Pods(manager.informer(WORKLOAD_PODS))
    sets, deployments = manager.informer(REPLICA_SETS), manager.informer(DEPLOYMENTS)

    def acting(name: str) -> tuple[DirectTransport, EventRecorder]:
        access = _transport(plane, name)
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


def _add_claims(plane: ControlPlane, manager: Manager, clock: Clock, metrics: Metrics) -> None:
    lookups = Lookups(
        pods=manager.informer(PODS),
        claims=manager.informer(CLAIMS),
        templates=manager.informer(TEMPLATES),
    )
    counted = ClaimMetrics(metrics)
    counted.follow(lookups.claims)
    access = _transport(plane, claims.NAME)
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


def _inventory(plane: ControlPlane, manager: Manager) -> Inventory:
    return Inventory(
        slices=manager.informer(SLICES),
        classes=manager.informer(CLASSES),
        rules=manager.informer(RULES),
        # The reference has no such kind.
        patches=None if plane.config.strict_compat else manager.informer(PATCHES),
        features=features(plane.config.gates),
    )


def _add_eviction(
    plane: ControlPlane, manager: Manager, inventory: Inventory, clock: Clock, metrics: Metrics
) -> None:
    strict, name = plane.config.strict_compat, EvictionController.name
    usage = Usage(
        pods=manager.informer(PODS), claims=manager.informer(CLAIMS), extended_resources=not strict
    )
    exposures = Exposures(inventory, usage, clock=clock, strict=strict)
    access = _transport(plane, name)
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


def _transport(plane: ControlPlane, name: str) -> DirectTransport:
    """Return a controller's own access, so that the API can tell who did what."""
    user = User(f"system:serviceaccount:kube-system:{name}", CONTROLLER_GROUPS)
    if name in (MANAGER, SCHEDULER):
        user = User(f"system:{name}", ("system:authenticated",))
    return DirectTransport(InProcess(plane.api, user, agent=name))


def _door(config: Config, api: Api, key: SigningKey, clock: Clock) -> Door:
    """Build the way in, and let those answer who know about tokens."""
    accounts = Accounts(key, api.writer.lookup, clock)
    longest = 0 if config.strict_compat else LONGEST_TOKEN
    issuer = Issuer(key, api.writer, max_seconds=longest)
    api.connector.add("serviceaccounts", "token", issuer.issue)
    api.virtual.add(reviews.GROUP, "tokenreviews", reviews.review_tokens(accounts))
    api.virtual.add(reviews.GROUP, "selfsubjectreviews", reviews.who_am_i(clock))
    return Door(
        Authenticator(clock, accounts),
        api.authorizer,
        Limits(config.allowance),
        clock,
        api.writer.ids,
        api.audit,
        # The reference lets its rules decide, so there it is always so.
        anonymous=config.anonymous or config.strict_compat,
    )


def _audit_log(config: Config) -> AuditLog | None:
    if config.audit_log == "":
        return None
    if config.audit_log == "-":
        return AuditLog(None)
    return AuditLog(Path(config.audit_log or config.data_dir / "audit.log"))


def _names(config: Config) -> list[str]:
    return [*LOCAL_NAMES, *own_names(config.host), *config.names]


class _AdminLogin:
    """The kubeconfig that lets an admin in, made anew at each start and before it ends."""

    def __init__(self, plane: ControlPlane, clock: Clock) -> None:
        self._plane = plane
        self._clock = clock
        self._pair: Pair | None = None
        self.ensure()

    def ensure(self) -> None:
        """Write the file if there is none yet, or if its certificate ends soon."""
        now, authority = self._clock.now(), self._plane.authority
        if self._pair is not None and not expires_soon(self._pair, now):
            return
        pair = self._pair = authority.client(ADMIN.name, [MASTERS], now)
        login = Login(
            server=self._plane.url,
            ca=authority.pair.certificate,
            user=ADMIN.name,
            certificate=pair.certificate,
            key=pair.key,
        )
        write_kubeconfig(self._plane.kubeconfig, kubeconfig(login))

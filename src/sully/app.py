"""The composition root: the one place where things are constructed.

`RunningControlPlane` is a whole embedded control plane: store, API server, controllers. The CLI
runs one in a process of its own; tests run them beside each other in one process.
"""

import asyncio
import hashlib
import os
import random
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from sully.api import build_scheme
from sully.api.cluster.definitions import definitions as cluster_definitions
from sully.api.resource.types import DeviceTaintRule
from sully.client.calls import WriteGuard
from sully.client.direct import DirectTransport
from sully.client.discovery.resources import of_scheme
from sully.client.kubeconfig.writing import Login, kubeconfig, write_kubeconfig
from sully.client.leases import LeaderElector, LeaseTiming
from sully.client.transport import Transport
from sully.controller_context import DEFAULT_RETENTION, LEASE, MANAGER, ControllerConfig
from sully.controller_setup import build_manager
from sully.controllers.framework.leaderelection import LeaderElectedManager, RestartPolicy
from sully.controllers.framework.manager import Manager
from sully.controllers.placement.settings import PlacementSettings, placement_options
from sully.controllers.scheduling.wiring import USER_AGENT as SCHEDULER
from sully.controllers.simulatednodes.wiring import SimulatedNodeSettings
from sully.domain.clusters.rights import agent_user
from sully.domain.devicepolicies.sources.prometheus_servers import PrometheusServer
from sully.domain.notifications.settings import Receiver
from sully.domain.simulated.clusters import Members
from sully.evictor.settings import EvictionSettings
from sully.machinery.compat import Compat
from sully.machinery.gates import Gates
from sully.machinery.runtimeconfig import RuntimeConfig
from sully.runtime.clock import Clock, SystemClock
from sully.runtime.ids import Ids
from sully.runtime.metrics import Metrics, publish_gates, publish_tasks
from sully.server.api import Api, Env
from sully.server.audit.log import AuditLog
from sully.server.authentication import documents, reviews
from sully.server.authentication.authenticator import Authenticator
from sully.server.authentication.groups import MASTERS
from sully.server.authentication.keys import SigningKey
from sully.server.authentication.service_accounts import TokenAuthenticator
from sully.server.authentication.token_requests import Issuer
from sully.server.bootstrap import (
    ensure_authentication,
    ensure_definitions,
    ensure_namespaces,
    ensure_policy,
    ensure_priority_classes,
    ensure_service,
)
from sully.server.customresources.controller import DefinitionController
from sully.server.fleet import StoredFleet
from sully.server.flowcontrol.limits import Allowance, FlowMetrics, Limits
from sully.server.http.access import AccessControl
from sully.server.http.app import AsgiApp, HttpApp
from sully.server.http.metrics import RequestCounter
from sully.server.http.placements.pages import PlacementPages
from sully.server.identity import Identity, IdentityRequest, Pair
from sully.server.inprocess import InProcess
from sully.server.net.listen import ConnectionSettings, Listener, bind, host_names, tls_context
from sully.server.net.renewal import Renewal
from sully.server.requests import User
from sully.server.storage.event_expiry import TTL, EventExpiry
from sully.store.base import Store
from sully.store.compaction import Compactor
from sully.store.directory import DataDirectory
from sully.store.errors import OpenError, StoreError
from sully.store.etcd.address import Address, open_etcd
from sully.store.memory import MemoryStore
from sully.store.sqlite.store import SqliteStore

OpenIdentity = Callable[[IdentityRequest], Identity]
ADMIN = User("kubernetes-admin", ("system:masters", "system:authenticated"))
APISERVER = User("system:apiserver", ("system:masters", "system:authenticated"))
CONTROLLER_GROUPS = (
    "system:serviceaccounts",
    "system:serviceaccounts:kube-system",
    "system:authenticated",
)
MAX_TOKEN_SECONDS = 365 * 24 * 3600
"""The most seconds that a service account token is valid for."""
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc")


class Config(msgspec.Struct, frozen=True):
    """The configuration of a control plane."""

    data_dir: Path
    host: str = "127.0.0.1"
    port: int = 8443
    store: str | Address = "sqlite"  # or memory, or where an etcd is
    gates: Gates = msgspec.field(default_factory=Gates)
    runtime: RuntimeConfig = msgspec.field(
        default_factory=RuntimeConfig
    )  # which versions are served
    compat: Compat = Compat.SULLY
    names: tuple[str, ...] = ()  # additional names of the server certificate
    serving_certificate: tuple[Path, Path] | None = None  # certificate and key; None: our own
    client_ca: Path | None = None  # CA of further client certificates
    anonymous: bool = False  # --anonymous-auth
    # A file, `-` for the standard output, empty for none; None: in the data directory.
    audit_log: str | None = None
    audit_reads: bool = False  # whether the audit log also has reads
    allowance: Allowance = msgspec.field(default_factory=Allowance)
    connections: ConnectionSettings = msgspec.field(default_factory=ConnectionSettings)
    controllers: frozenset[str] | None = None  # which of them run here; None: all
    simulated_nodes: SimulatedNodeSettings | None = None  # simulated nodes, like kwok
    simulated_clusters: Members | None = None  # simulated managed clusters
    # How long records of evictions and deleted rules are kept.
    history: timedelta = DEFAULT_RETENTION
    receivers: tuple[Receiver, ...] = ()  # who is notified of taints and evictions
    prometheus_servers: tuple[PrometheusServer, ...] = ()  # which get credentials
    otlp_endpoint: str = ""  # where traces of evictions are sent
    event_ttl: timedelta = TTL  # how long events are kept; 0: indefinitely
    eviction: EvictionSettings = msgspec.field(default_factory=EvictionSettings)
    placement: PlacementSettings = msgspec.field(default_factory=PlacementSettings)
    leader_elect: bool = False  # whether controllers wait for a lease: for a shared store
    timing: LeaseTiming = msgspec.field(default_factory=LeaseTiming)  # of that lease
    restart_controllers: bool = False  # whether the server goes on when controllers fail


class RunningControlPlane:
    """A running control plane; see `running`."""

    def __init__(self, config: Config, app: HttpApp, listener: Listener, authority: Pair) -> None:
        self.config = config
        self.api = app.api
        self.authority = authority
        self._app = app
        self._listener = listener

    @property
    def url(self) -> str:
        """Return the URL of the API server."""
        host = self.config.host
        shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(
            host, f"[{host}]" if ":" in host else host
        )
        return f"https://{shown}:{self._listener.port}"

    @property
    def kubeconfig(self) -> Path:
        """Return the kubeconfig of the admin."""
        return self.config.data_dir / "kubeconfig"

    @contextmanager
    def mounted(self, prefix: str, app: AsgiApp) -> Iterator[None]:
        """Serve another application below a path, for the duration of the block."""
        self._app.mounts[prefix] = app
        try:
            yield
        finally:
            del self._app.mounts[prefix]

    def direct(self, user: User = ADMIN) -> InProcess:
        """Return the in-process API of a user."""
        return InProcess(self.api, user)


def _open_identity(request: IdentityRequest) -> Identity:
    from sully.server.net.issuing import open_identity  # late: see identity.py

    return open_identity(request)


@asynccontextmanager
async def running(
    config: Config, clock: Clock | None = None, *, open_identity: OpenIdentity = _open_identity
) -> AsyncIterator[RunningControlPlane]:
    """Run a control plane for the duration of the block; at its end watches are closed first."""
    clock = clock or SystemClock()
    listening = bind(config.host, config.port)
    async with AsyncExitStack() as stack:
        stack.callback(listening.close)
        if isinstance(config.store, Address) or config.store == "memory":
            # Replicas may share the objects, but not the keys and the kubeconfig. A store in
            # memory has no files of its own, but these.
            stack.callback(DataDirectory(config.data_dir).release)
        store = await stack.enter_async_context(await _open_store(config))
        env = Env(clock, Ids(), random.Random())
        api = Api(
            scheme=build_scheme(config.compat, runtime=config.runtime),
            store=store,
            env=env,
            gates=config.gates,
            compat=config.compat,
        )
        await api.definitions.start()
        await api.authorizer.start()
        await api.devices.start()
        await api.quotas.start()
        await api.policies.start()
        await api.priorities.start()
        await api.limit_ranges.start()
        await ensure_namespaces(InProcess(api, ADMIN))
        await ensure_policy(InProcess(api, ADMIN), config.gates)
        await ensure_priority_classes(InProcess(api, APISERVER))
        await ensure_definitions(
            InProcess(api, APISERVER),
            cluster_definitions(api.scheme.resources(), api.scheme.tables),
        )
        api.audit = audit = _audit_log(config, clock)
        if audit is not None:
            stack.callback(audit.close)
        identity = open_identity(_identity_request(config, clock))
        async with _serving(config, api, listening, clock, identity) as plane:
            yield plane


async def _open_store(config: Config) -> Store:
    if config.store == "memory":
        return MemoryStore()
    if isinstance(config.store, Address):
        return await open_etcd(config.store)
    return await SqliteStore.open(config.data_dir)


async def _check_identity(store: Store, folder: Path, identity: Identity) -> None:
    """Fail if other replicas of the store have another CA or token key."""
    known = identity.authority.certificate.strip() + identity.token_key.public.id.encode()
    digest = hashlib.sha256(known).hexdigest().encode()
    if await store.agree("identity", digest) != digest:
        raise OpenError(
            f"other replicas of this store have another identity: copy ca.crt, ca.key and sa.key"
            f" of one of them into {folder}, so that every client is accepted by each"
        )


@asynccontextmanager
async def _serving(
    config: Config, api: Api, listening: socket.socket, clock: Clock, identity: Identity
) -> AsyncIterator[RunningControlPlane]:
    certificate, private_key = config.serving_certificate or _own_certificate(config)
    accepted = identity.authority.certificate
    if config.client_ca is not None:
        accepted += b"\n" + config.client_ca.read_bytes()
    context = tls_context(certificate, private_key, accepted)
    metrics = Metrics()
    publish_gates(metrics, config.gates)
    loop = asyncio.get_running_loop()
    publish_tasks(metrics, lambda: len(asyncio.all_tasks(loop)))
    key = identity.token_key
    await _check_identity(api.store, config.data_dir, identity)
    ca = identity.authority.certificate.decode()
    await ensure_authentication(InProcess(api, APISERVER), ca)
    port, alone = listening.getsockname()[1], not isinstance(config.store, Address)
    await ensure_service(InProcess(api, APISERVER), config.host, port, alone=alone)
    access = _access_control(
        config, api, key, clock, Limits(config.allowance, FlowMetrics(metrics))
    )
    body_seconds = config.connections.timeouts.whole_body
    app = HttpApp(api, clock, RequestCounter(metrics), access, body_seconds=body_seconds)
    options = placement_options(config.placement, config.compat)
    app.placements = PlacementPages(StoredFleet(api.store, api.objects, options), access, clock)
    app.health.checks["store"] = lambda: api.store.problem
    listener = Listener(app, listening, context, config.connections)
    await listener.start()
    plane = RunningControlPlane(config, app, listener, identity.authority)
    app.documents |= documents.pages(key, plane.url)
    _write_login(plane, identity.issued.login)
    renew = partial(_renew, plane, context, clock)
    renewal = Renewal(identity.issued.renew_at, renew, clock)
    access_of_server = InProcess(api, APISERVER, agent="kube-apiserver")
    definitions = DefinitionController(api.store, api.definitions, access_of_server, clock)
    controllers = _controllers(config, api, ca, clock, metrics)
    async with asyncio.TaskGroup() as tasks:
        server = tasks.create_task(listener.serve())
        background = [
            tasks.create_task(loop)
            for loop in (
                Compactor(api.store, clock).run(),
                EventExpiry(api.store, clock, config.event_ttl).run(),
                api.authorizer.run(clock),
                api.devices.run(clock),
                api.quotas.run(clock),
                definitions.run(),
                api.policies.run(clock),
                api.priorities.run(clock),
                api.limit_ranges.run(clock),
                app.watches.run(),
                renewal.run(),
            )
        ]
        manager = tasks.create_task(controllers.run())
        try:
            # Clients may create pods in `default` as soon as the server is ready.
            await controllers.settled()
            yield plane
        finally:
            # Controllers first: they use the API.
            controllers.stop()
            await asyncio.wait([manager])
            # Watches end by themselves, then the listener has nothing left to wait for.
            api.watcher.stop()
            listener.stop()
            for task in background:
                task.cancel()
            await server


def _identity_request(config: Config, clock: Clock) -> IdentityRequest:
    names = (*LOCAL_NAMES, *host_names(config.host), *config.names)
    return IdentityRequest(config.data_dir, names, ADMIN.name, (MASTERS,), clock.now())


def _controllers(
    config: Config, api: Api, certificate: str, clock: Clock, metrics: Metrics
) -> LeaderElectedManager:
    """Return the manager of the controllers of this process."""
    ids = api.writer.ids
    elector = None
    if config.leader_elect:
        name = f"{socket.gethostname()}_{os.getpid()}_{ids.suffix()}"
        access = controller_access(api, MANAGER)
        elector = LeaderElector(access, LEASE, name, clock=clock, timing=config.timing)

    def describes_rules(describe: Callable[[DeviceTaintRule], str]) -> None:
        """Let the server warn what a rule selects, from the caches of this process."""
        api.writer.rule_notices.describe = describe

    controller_config = ControllerConfig(
        transport=partial(
            controller_access,
            api,
            guard=elector.time_left if elector else None,
            agent="" if config.compat.names_each_controller else MANAGER,
        ),
        served=of_scheme(api.scheme),
        gates=config.gates,
        ids=ids,
        certificate=certificate,
        compat=config.compat,
        embedded=True,
        simulated_nodes=config.simulated_nodes,
        simulated_clusters=config.simulated_clusters,
        agent=partial(agent_access, api, guard=elector.time_left if elector else None),
        history=config.history,
        receivers=config.receivers,
        prometheus_servers=config.prometheus_servers,
        otlp_endpoint=config.otlp_endpoint,
        eviction=config.eviction,
        placement=config.placement,
        serving_since=clock.now(),
        chosen=config.controllers,
        describes_rules=describes_rules,
    )

    async def build() -> Manager:
        return build_manager(controller_config, clock, metrics)

    def standby() -> Manager:
        """Only keep the caches from which the server describes rules."""
        none = replace(
            controller_config,
            chosen=frozenset(),
            receivers=(),
            simulated_nodes=None,
            simulated_clusters=None,
        )
        return build_manager(none, clock, metrics)

    return LeaderElectedManager(
        build,
        clock=clock,
        elector=elector,
        standby=standby,
        restarts=RestartPolicy((StoreError, OSError)) if config.restart_controllers else None,
    )


def controller_access(
    api: Api, name: str, guard: WriteGuard | None = None, agent: str = ""
) -> Transport:
    """Return a controller's own client, so that audit and RBAC distinguish controllers.

    `agent` is the user agent that all controllers but the scheduler share in Kubernetes; field
    managers are named after it. Without it each controller has its own.
    """
    user = User(f"system:serviceaccount:kube-system:{name}", CONTROLLER_GROUPS)
    if name in (MANAGER, SCHEDULER):
        user = User(f"system:{name}", ("system:authenticated",))
    user_agent = name if name == SCHEDULER else agent or name
    return DirectTransport(InProcess(api, user, agent=user_agent), guard=guard)


def agent_access(api: Api, cluster: str, guard: WriteGuard | None = None) -> Transport:
    """Return the client of a simulated cluster's agent, with the permissions of a real one."""
    name, groups = agent_user(cluster, "simulated")
    return DirectTransport(InProcess(api, User(name, groups), agent="simulated-agent"), guard=guard)


def _access_control(
    config: Config, api: Api, key: SigningKey, clock: Clock, limits: Limits
) -> AccessControl:
    """Build authentication and authorization, and register the token endpoints."""
    token_authenticator = TokenAuthenticator(key, api.writer.lookup, clock)
    max_seconds = MAX_TOKEN_SECONDS if config.compat.limits_token_lifetime else 0
    issuer = Issuer(key, api.writer, max_seconds=max_seconds)
    api.connector.add("serviceaccounts", "token", issuer.issue)
    api.virtual.add(reviews.GROUP, "tokenreviews", reviews.review_tokens(token_authenticator))
    api.virtual.add(reviews.GROUP, "selfsubjectreviews", reviews.who_am_i(clock))
    return AccessControl(
        Authenticator(clock, token_authenticator),
        api.authorizer,
        limits,
        clock,
        api.writer.ids,
        api.audit,
        audit_reads=config.audit_reads,
        anonymous=config.anonymous or not config.compat.rejects_anonymous,
    )


def _audit_log(config: Config, clock: Clock) -> AuditLog | None:
    if config.audit_log == "":
        return None
    if config.audit_log == "-":
        return AuditLog(None, clock=clock)
    return AuditLog(Path(config.audit_log or config.data_dir / "audit.log"), clock=clock)


def _own_certificate(config: Config) -> tuple[Path, Path]:
    return config.data_dir / "server.crt", config.data_dir / "server.key"


def _renew(plane: RunningControlPlane, context: ssl.SSLContext, clock: Clock) -> datetime:
    """Issue certificates again; return when to renew those."""
    from sully.server.net.issuing import issue  # late: see identity.py

    issued = issue(plane.authority, _identity_request(plane.config, clock))
    # A certificate that a user provides is also renewed by the user.
    if plane.config.serving_certificate is None:
        context.load_cert_chain(*_own_certificate(plane.config))
    _write_login(plane, issued.login)
    return issued.renew_at


def _write_login(plane: RunningControlPlane, pair: Pair) -> None:
    """Write the kubeconfig of the admin, as at each start and before its certificate expires."""
    login = Login(
        server=plane.url,
        ca=plane.authority.certificate,
        user=ADMIN.name,
        certificate=pair.certificate,
        key=pair.key,
    )
    write_kubeconfig(plane.kubeconfig, kubeconfig(login))

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
from sully.client.kubeconfig_file import Login, kubeconfig, write_kubeconfig
from sully.controllers.kinds import NAMESPACES, SERVICE_ACCOUNTS
from sully.controllers.manager import Manager
from sully.controllers.namespaces.content import Content, namespaced_kinds
from sully.controllers.namespaces.controller import BACKOFF, NamespacesController
from sully.controllers.rootca.controller import CONFIG_MAPS, PUBLISHED, RootCaController
from sully.controllers.serviceaccounts.controller import ACCOUNTS, ServiceAccountsController
from sully.machinery.gates import Gates
from sully.runtime.clock import Clock, SystemClock
from sully.runtime.files import write_private
from sully.runtime.ids import Ids
from sully.runtime.log import get_logger
from sully.runtime.metrics import Metrics
from sully.server.api import Api, Chance
from sully.server.bootstrap import ensure_namespaces
from sully.server.http.app import HttpApp
from sully.server.http.metrics import RequestCounter
from sully.server.inprocess import InProcess
from sully.server.listen import Listener, bind, tls_context
from sully.server.requests import User
from sully.server.tls import Authority, Pair, expires_soon, names_of
from sully.store.base import Store
from sully.store.compaction import Compactor
from sully.store.memory import MemoryStore
from sully.store.sqlite import SqliteStore

_log = get_logger("app")
ADMIN = User("kubernetes-admin", ("system:masters", "system:authenticated"))
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
        )  # noqa: S104 - compared, not bound
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
        await ensure_namespaces(InProcess(api, ADMIN))
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
    certificate, key = _server_certificate(config, authority, clock)
    context = tls_context(certificate, key, authority.pair.certificate)
    metrics = Metrics()
    app = HttpApp(api, clock, RequestCounter(metrics))
    app.checks["store"] = lambda: ""
    listener = Listener(app, listening, context)
    await listener.start()
    plane = ControlPlane(config, api, listener, authority)
    _write_admin_kubeconfig(plane, clock)
    manager = _controllers(plane, clock, metrics)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(listener.serve())
        compacting = tasks.create_task(Compactor(api.store, clock).run())
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
            await serving


def _controllers(plane: ControlPlane, clock: Clock, metrics: Metrics) -> Manager:
    manager = Manager(_transport(plane, "shared-informers"), clock=clock, metrics=metrics)
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
    return manager


def _transport(plane: ControlPlane, name: str) -> DirectTransport:
    """Return a controller's own access, so that the API can tell who did what."""
    user = User(f"system:serviceaccount:kube-system:{name}", ("system:masters",))
    return DirectTransport(InProcess(plane.api, user, agent=name))


def _server_certificate(config: Config, authority: Authority, clock: Clock) -> tuple[Path, Path]:
    certificate, key = config.data_dir / "server.crt", config.data_dir / "server.key"
    names = sorted({*LOCAL_NAMES, *_names_of_host(config.host)})
    if certificate.exists() and key.exists():
        pair = Pair(certificate.read_bytes(), key.read_bytes())
        if not expires_soon(pair, clock.now()) and set(names) <= names_of(pair):
            return certificate, key
    pair = authority.server(names, clock.now())
    write_private(key, pair.key)
    write_private(certificate, pair.certificate)
    return certificate, key


def _names_of_host(host: str) -> list[str]:
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        return [socket.gethostname()]
    return [host]


def _write_admin_kubeconfig(plane: ControlPlane, clock: Clock) -> None:
    pair = plane.authority.client(ADMIN.name, ["system:masters"], clock.now())
    login = Login(
        server=plane.url,
        ca=plane.authority.pair.certificate,
        user=ADMIN.name,
        certificate=pair.certificate,
        key=pair.key,
    )
    write_kubeconfig(plane.kubeconfig, kubeconfig(login))

"""The composition root of `sully controllers`: controllers in a process of their own.

They use an API server over HTTP, as the user of a kubeconfig, while they hold a Lease.
app.py is the other root, of a control plane with its controllers inside. What the server
supports decides what runs: see `domain.capabilities`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

import msgspec

from sully.client.calls import WriteGuard
from sully.client.discovery.capabilities import Moves, RelocatedTransport, probe, relocated
from sully.client.discovery.resources import APIResource, discover
from sully.client.http.transport import STALL_SECONDS, HttpTransport
from sully.client.kubeconfig.access import Access
from sully.client.leases import LeaderElector, LeaseTiming
from sully.client.metrics_authorizer import MetricsAuthorizer
from sully.client.transport import Key, Transport, UnreachableError, UnreadableError
from sully.controller_context import DEFAULT_RETENTION, LEASE, ControllerConfig
from sully.controller_setup import CONTROLLERS, build_manager
from sully.controllers.framework.leaderelection import LeaderElectedManager
from sully.controllers.framework.manager import Manager
from sully.controllers.placement.settings import PlacementSettings
from sully.domain.capabilities.duties import (
    DutyError,
    Evictor,
    chosen,
    duties,
    evictor,
    moves,
    schedulers,
)
from sully.domain.capabilities.offers import Offer, offer
from sully.domain.devicepolicies.sources.prometheus_servers import PrometheusServer
from sully.domain.notifications.settings import Receiver
from sully.evictor.settings import EvictionSettings
from sully.machinery.compat import Compat
from sully.machinery.errors import ApiError
from sully.machinery.gates import Gates
from sully.runtime.clock import Clock, SystemClock
from sully.runtime.ids import Ids
from sully.runtime.metrics import Metrics, publish_gates
from sully.runtime.metrics_server import PageHandler

DISCOVERY_SECONDS = 60.0
"""Seconds after which another server is discovered again: it may be upgraded."""


class RemoteConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How controllers run against another API server."""

    access: Access
    gates: Gates = msgspec.field(default_factory=Gates)
    compat: Compat = Compat.SULLY
    controllers: frozenset[str] | None = None  # which run; None: all that the server does not run
    evictor: Evictor = "auto"  # what evicts on another server
    eviction: EvictionSettings = msgspec.field(default_factory=EvictionSettings)
    placement: PlacementSettings = msgspec.field(default_factory=PlacementSettings)
    history: timedelta = (
        DEFAULT_RETENTION  # how long records of evictions and deleted rules are kept
    )
    receivers: tuple[Receiver, ...] = ()  # who is notified
    prometheus_servers: tuple[PrometheusServer, ...] = ()  # which get credentials
    otlp_endpoint: str = ""  # where traces of evictions are sent
    leader_elect: bool = True
    lease: Key = LEASE
    timing: LeaseTiming = msgspec.field(default_factory=LeaseTiming)


class Remote:
    """Controllers that run while this process is the leader; see `remote`."""

    def __init__(
        self,
        config: RemoteConfig,
        transport: HttpTransport,
        elector: LeaderElector | None,
        clock: Clock,
    ) -> None:
        self._config = config
        self._transport = transport
        self._clock = clock
        self._ids = Ids()
        self._metrics = Metrics()
        publish_gates(self._metrics, config.gates)
        self._chosen: frozenset[str] = frozenset(config.controllers or CONTROLLERS)
        self._handlers: list[Callable[[Offer], None]] = []
        self.offer: Offer | None = None
        """What the server supports, once it is discovered."""
        self.problem = ""
        """Why the controllers stopped; empty if they did not fail."""
        self.manager = LeaderElectedManager(self._build, clock=clock, elector=elector)

    def on_offer(self, handler: Callable[[Offer], None]) -> None:
        """Call a handler when the server was discovered, and when it has changed."""
        self._handlers.append(handler)

    async def discover(self) -> tuple[Offer, tuple[APIResource, ...]]:
        """Discover the server; raise DutyError if a requested controller must not run there."""
        served = await discover(self._transport)
        server = offer(await probe(self._transport, served))
        if server != self.offer:
            self.offer = server
            for handler in self._handlers:
                handler(server)
        self._chosen = self._duties(server)
        return server, served

    def _duties(self, server: Offer) -> frozenset[str]:
        requested = self._config.evictor
        problem = evictor(server, requested).problem
        if problem:
            raise DutyError(f"--evictor {requested}: {problem}")
        return chosen(duties(server, CONTROLLERS, requested), self._config.controllers)

    def status(self) -> str:
        """Return what this process currently does."""
        since, elector = self.manager.since, self.manager.elector
        count = f"{len(self._chosen)} controllers"
        if since is None:
            holder = elector.holder if elector is not None else ""
            return f"standing by: {holder or 'no process'} leads ({self._config.lease})"
        start = since.isoformat(timespec="seconds")
        if elector is None:
            return f"working since {start} ({count}, no lease)"
        return f"leading since {start} ({count}, lease {elector.key}, {elector.identity})"

    def pages(self) -> dict[str, PageHandler]:
        """Return the pages for metrics and probes."""
        return {
            "/metrics": lambda: (200, self._metrics.render()),
            "/healthz": lambda: (200, b"ok"),
            "/readyz": self._readiness,
        }

    def access(self) -> MetricsAuthorizer:
        """Return what authorizes requests for metrics."""
        return MetricsAuthorizer(self._transport.named("metrics"), self._clock)

    def _readiness(self) -> tuple[int, bytes]:
        """Return the status of this process and why its caches are stale."""
        problems = self.manager.problems()
        lines = [
            self.status(),
            *(f"{name}: {problem}" for name, problem in sorted(problems.items())),
        ]
        return (503 if problems else 200), "\n".join(lines).encode()

    async def _build(self) -> Manager:
        try:
            server, served = await self.discover()
        except DutyError as error:
            self._stop(str(error))
            raise UnreadableError(str(error)) from error
        config = self._config
        moved = moves(server)
        controller_config = ControllerConfig(
            transport=self._named(moved),
            served=relocated(served, moved),
            gates=config.gates,
            ids=self._ids,
            certificate=config.access.ca.decode(),
            compat=config.compat,
            eviction=config.eviction,
            placement=config.placement,
            history=config.history,
            receivers=config.receivers,
            prometheus_servers=config.prometheus_servers,
            otlp_endpoint=config.otlp_endpoint,
            chosen=self._chosen,
            own_server=server.own,
            schedulers=schedulers(server),
        )
        # Each term starts with new metrics, as a process would.
        self._metrics = Metrics()
        publish_gates(self._metrics, config.gates)
        manager = build_manager(controller_config, self._clock, self._metrics)
        if not server.own:
            manager.add_runnable(self._watch_server)
        return manager

    def _named(self, moved: Moves) -> Callable[[str], Transport]:
        elector = self.manager.elector
        guard: WriteGuard | None = elector.time_left if elector is not None else None

        def named(name: str) -> Transport:
            transport = self._transport.named(name, guard)
            return RelocatedTransport(transport, moved) if moved else transport

        return named

    async def _watch_server(self) -> None:
        """Stop when the server has changed: it may run some of the controllers itself."""
        before = self.offer, self._chosen
        while (self.offer, self._chosen) == before:
            await self._clock.sleep(DISCOVERY_SECONDS)
            try:
                await self.discover()
            except (ApiError, UnreachableError, UnreadableError):
                continue  # reported by the informers
            except DutyError as error:
                self._stop(str(error))
                return
        self._stop("the server has changed: restart")

    def _stop(self, problem: str) -> None:
        self.problem = problem
        self.manager.stop()


@asynccontextmanager
async def remote(config: RemoteConfig, clock: Clock | None = None) -> AsyncIterator[Remote]:
    """Connect for the duration of the block."""
    clock = clock or SystemClock()
    elector = None
    async with AsyncExitStack() as stack:
        if config.leader_elect:
            # Separate connections, so that renewals are never queued.
            access = HttpTransport(config.access, request_seconds=config.timing.renew)
            await stack.enter_async_context(access)
            name = f"{socket.gethostname()}_{os.getpid()}_{Ids().suffix()}"
            elector = LeaderElector(access, config.lease, name, clock=clock, timing=config.timing)
        stall = min(STALL_SECONDS, config.eviction.max_staleness or STALL_SECONDS)
        transport = HttpTransport(config.access, stall_seconds=stall)
        await stack.enter_async_context(transport)
        yield Remote(config, transport, elector, clock)


def chosen_controllers(text: str) -> frozenset[str] | None:
    """Read names of controllers; None, for no name, means all."""
    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    unknown = sorted(names - CONTROLLERS.keys())
    if unknown:
        raise ValueError(
            f"unknown controller {', '.join(unknown)} (one of: {', '.join(CONTROLLERS)})"
        )
    return names or None


def lease_of(text: str, chosen: frozenset[str] | None) -> Key:
    """Parse --lease; the default depends on the chosen controllers."""
    if not text:
        return Key(LEASE.namespace, "-".join((LEASE.name, *sorted(chosen or ()))))
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise ValueError(f'--lease must be NAMESPACE/NAME, not "{text}"')
    return Key(namespace, name)

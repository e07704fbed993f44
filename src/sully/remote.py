"""The composition root of `sully controllers`: controllers in a process of their own.

They reach an API server by HTTP, as the user of a kubeconfig, and work while they hold a Lease.
app.py is the other root, of a control plane with its controllers inside. What the server is
decides what runs: `domain.capabilities` says so.
"""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from sully.client.calls import Guard
from sully.client.discovery.capabilities import Moved, Moves, ask, relocated
from sully.client.discovery.resources import Served, discover
from sully.client.http.transport import SILENT_SECONDS, HttpTransport
from sully.client.kubeconfig.access import Access
from sully.client.leases import Elector, Timing
from sully.client.pageaccess import PageAccess
from sully.client.transport import Key, Transport, UnreachableError, UnreadableError
from sully.controller_context import HISTORY_KEPT, LEASE, Given
from sully.controller_setup import CONTROLLERS, build_manager
from sully.controllers.leaderelection import Leading
from sully.controllers.manager import Manager
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
from sully.evictor.settings import EvictionSettings
from sully.machinery.errors import ApiError
from sully.machinery.gates import Gates
from sully.runtime.clock import Clock, SystemClock
from sully.runtime.ids import Ids
from sully.runtime.metrics import Metrics
from sully.runtime.pages import Page

LOOK_AGAIN = 60.0
"""Seconds after which a server that is not ours is asked again what it is: it may be upgraded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteConfig:
    """How controllers are to run beside somebody else's API server."""

    access: Access
    gates: Gates = field(default_factory=Gates)
    strict_compat: bool = False
    controllers: frozenset[str] | None = None  # which run; None: all that the server leaves to us
    evictor: Evictor = "auto"  # who evicts on a server that is not ours
    eviction: EvictionSettings = field(default_factory=EvictionSettings)
    placement: PlacementSettings = field(default_factory=PlacementSettings)
    history: timedelta = HISTORY_KEPT  # how long records of evictions and lifted rules are kept
    leader_elect: bool = True
    lease: Key = LEASE
    timing: Timing = field(default_factory=Timing)


class Remote:
    """Controllers that run, or stand by until they lead; made by `remote`."""

    def __init__(
        self, config: RemoteConfig, transport: HttpTransport, elector: Elector | None, clock: Clock
    ) -> None:
        self._config = config
        self._transport = transport
        self._clock = clock
        self._ids = Ids()
        self._metrics = Metrics()
        self._chosen: frozenset[str] = frozenset(config.controllers or CONTROLLERS)
        self._tell: list[Callable[[Offer], None]] = []
        self.offer: Offer | None = None
        """What the server is, once it has said so."""
        self.problem = ""
        """Why it ended by itself; empty where it was stopped."""
        self.crew = Leading(self._build, clock=clock, elector=elector)

    def on_offer(self, tell: Callable[[Offer], None]) -> None:
        """Call this when it is known what the server is, and when that has changed."""
        self._tell.append(tell)

    async def look(self) -> tuple[Offer, tuple[Served, ...]]:
        """Ask the server what it is; raise DutyError if what was asked for must not run there."""
        served = await discover(self._transport)
        found = offer(await ask(self._transport, served))
        if found != self.offer:
            self.offer = found
            for tell in self._tell:
                tell(found)
        self._chosen = self._duties(found)
        return found, served

    def _duties(self, found: Offer) -> frozenset[str]:
        wanted, said = self._config.controllers, self._config.evictor
        problem = evictor(found, said).problem
        if problem:
            raise DutyError(f"--evictor {said}: {problem}")
        return chosen(duties(found, CONTROLLERS, said), wanted)

    def standing(self) -> str:
        """Say for people what this process does now."""
        since, elector = self.crew.since, self.crew.elector
        count = f"{len(self._chosen)} controllers"
        if since is None:
            holder = elector.holder if elector is not None else ""
            return f"standing by: {holder or 'nobody'} leads ({self._config.lease})"
        shown = since.isoformat(timespec="seconds")
        if elector is None:
            return f"working since {shown} ({count}, no lease)"
        return f"leading since {shown} ({count}, lease {elector.key}, {elector.identity})"

    def pages(self) -> dict[str, Page]:
        """Return what other programs may ask of this process."""
        return {
            "/metrics": lambda: (200, self._metrics.render()),
            "/healthz": lambda: (200, b"ok"),
            "/readyz": self._readiness,
        }

    def access(self) -> PageAccess:
        """Return who says which of others on the network may read the metrics."""
        return PageAccess(self._transport.named("metrics"), self._clock)

    def _readiness(self) -> tuple[int, bytes]:
        """Say what this process does, and what keeps it from doing that with current caches."""
        problems = self.crew.problems()
        lines = [self.standing(), *(f"{what}: {why}" for what, why in sorted(problems.items()))]
        return (503 if problems else 200), "\n".join(lines).encode()

    async def _build(self) -> Manager:
        try:
            found, served = await self.look()
        except DutyError as error:
            self._give_up(str(error))
            raise UnreadableError(str(error)) from error
        config = self._config
        moved = moves(found)
        given = Given(
            transport=self._named(moved),
            served=relocated(served, moved),
            gates=config.gates,
            ids=self._ids,
            certificate=config.access.ca.decode(),
            strict=config.strict_compat,
            eviction=config.eviction,
            placement=config.placement,
            history=config.history,
            chosen=self._chosen,
            schedulers=schedulers(found),
        )
        # A term counts from nothing, as a process would.
        self._metrics = Metrics()
        manager = build_manager(given, self._clock, self._metrics)
        if not found.own:
            manager.alongside(self._stay_right)
        return manager

    def _named(self, moved: Moves) -> Callable[[str], Transport]:
        elector = self.crew.elector
        guard: Guard | None = elector.left if elector is not None else None

        def named(name: str) -> Transport:
            transport = self._transport.named(name, guard)
            return Moved(transport, moved) if moved else transport

        return named

    async def _stay_right(self) -> None:
        """End when a server has become another: what runs may be one too many there."""
        before = self.offer, self._chosen
        while (self.offer, self._chosen) == before:
            await self._clock.sleep(LOOK_AGAIN)
            try:
                await self.look()
            except (ApiError, UnreachableError, UnreadableError):
                continue  # it is away, and what works beside us says so
            except DutyError as error:
                self._give_up(str(error))
                return
        self._give_up("the server offers something else than before: start again")

    def _give_up(self, problem: str) -> None:
        self.problem = problem
        self.crew.stop()


@asynccontextmanager
async def remote(config: RemoteConfig, clock: Clock | None = None) -> AsyncIterator[Remote]:
    """Connect as long as the block lasts."""
    clock = clock or SystemClock()
    elector = None
    async with AsyncExitStack() as stack:
        if config.leader_elect:
            # Connections of its own, which no other work can fill.
            access = HttpTransport(config.access, request_seconds=config.timing.renew)
            await stack.enter_async_context(access)
            name = f"{socket.gethostname()}_{os.getpid()}_{Ids().suffix()}"
            elector = Elector(access, config.lease, name, clock=clock, timing=config.timing)
        silent = min(SILENT_SECONDS, config.eviction.max_staleness or SILENT_SECONDS)
        transport = HttpTransport(config.access, silent_seconds=silent)
        await stack.enter_async_context(transport)
        yield Remote(config, transport, elector, clock)


def chosen_controllers(text: str) -> frozenset[str] | None:
    """Read names of controllers; None, for no name, means all."""
    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    unknown = sorted(names - CONTROLLERS.keys())
    if unknown:
        raise ValueError(
            f"there is no controller {', '.join(unknown)}; there are {', '.join(CONTROLLERS)}"
        )
    return names or None


def lease_of(text: str, chosen: frozenset[str] | None) -> Key:
    """Read the place of a lease; the usual one depends on what it is held for."""
    if not text:
        return Key(LEASE.namespace, "-".join((LEASE.name, *sorted(chosen or ()))))
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise ValueError(f"--lease must be NAMESPACE/NAME, not {text!r}")
    return Key(namespace, name)

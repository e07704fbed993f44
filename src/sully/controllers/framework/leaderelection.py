"""Runs controllers only while this process is the leader.

Each term has its own manager, with empty caches: nothing that was read before the lease was lost is
used afterwards. client/leases.py elects the leader.

A controller that fails, other than by an error of one reconcile, ends the term. In a process of
their own that ends the process, which is restarted from outside. Beside an API server a new term
begins after a back-off, so that the server goes on and whatever the controller fails on can be
deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import msgspec

from sully.client.leases import LeaderElector
from sully.client.transport import UnreachableError, UnreadableError
from sully.controllers.framework.manager import Manager
from sully.machinery.errors import ApiError
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger
from sully.runtime.tasks import wait_first

log = get_logger("controllers")

STABLE = timedelta(minutes=10)
"""Controllers that ran so long start without a longer delay than the first, as containers do."""


class RestartPolicy(msgspec.Struct, frozen=True):
    """What happens after controllers failed; without a policy `run` raises every error."""

    fatal: tuple[type[Exception], ...]
    """Errors that another start would meet again; they are raised."""
    backoff: Backoff = Backoff(base=1.0, cap=60.0)

    def ends_process(self, error: Exception) -> bool:
        """Report whether a fatal error is among those that were raised together."""
        if isinstance(error, ExceptionGroup):
            return error.subgroup(self.fatal) is not None
        return isinstance(error, self.fatal)


Build = Callable[[], Awaitable[Manager]]
Handler = Callable[[], None]


class LeaderElectedManager:
    """Starts a manager when the lease is acquired and stops it before another can acquire it."""

    def __init__(
        self,
        build: Build,
        *,
        clock: Clock,
        elector: LeaderElector | None,
        standby: Callable[[], Manager] | None = None,
        restarts: RestartPolicy | None = None,
    ) -> None:
        self.elector = elector
        self.since: datetime | None = None
        """When all existing objects had been reconciled; None while another leads."""
        self._build = build
        self._standby = standby
        """Builds what runs while another process leads; it must write nothing."""
        self._restarts = restarts
        self._clock = clock
        self._handlers: list[Handler] = []
        self._stopping = asyncio.Event()
        self._decided = asyncio.Event()
        self._backoff = Backoff(base=0.5, cap=10.0)
        self._manager: Manager | None = None

    async def run(self) -> None:
        """Run until `stop`; without an elector, without waiting for a lease."""
        failures = 0
        while not self._stopping.is_set():
            started = self._clock.now()
            try:
                await self._run_term()
            except Exception as error:
                if self._restarts is None or self._restarts.ends_process(error):
                    raise
                failures = 1 if self._clock.now() - started >= STABLE else failures + 1
                await self._report(error, self._restarts.backoff.delay(failures))
        if self.elector is not None:
            await self.elector.release()

    async def _run_term(self) -> None:
        if self.elector is not None:
            await wait_first(self._acquire(self.elector), self._stopping.wait())
        if not self._stopping.is_set():
            await self._lead()

    async def _report(self, error: Exception, delay: float) -> None:
        """Log why controllers failed, and wait before they are started again."""
        log.error("controllers failed, restarting", exc_info=error, retry_in=round(delay, 3))
        # The server is of use without them, at least to delete what they fail on.
        self._notify()
        await wait_first(self._clock.sleep(delay), self._stopping.wait())

    def on_change(self, handler: Handler) -> None:
        """Call a handler when controllers have started, and when another process leads."""
        self._handlers.append(handler)

    def stop(self) -> None:
        """Ask `run` to end: controllers stop first, then the lease is released."""
        self._stopping.set()

    async def settled(self) -> None:
        """Wait until all objects were reconciled once, or another process leads."""
        await self._decided.wait()

    def problems(self) -> dict[str, str]:
        """Return which caches or lease currently fail, and why."""
        problems = self._manager.problems() if self._manager is not None else {}
        if self.elector is not None and self.elector.problem:
            problems["lease"] = self.elector.problem
        return problems

    async def _acquire(self, elector: LeaderElector) -> None:
        """Wait for the lease, and notify if another process holds it."""
        if not await elector.try_acquire_or_renew():
            self._notify()
            standby = self._standby().run() if self._standby else asyncio.Event().wait()
            await wait_first(elector.acquire(), standby)

    async def _lead(self) -> None:
        """Run controllers until the lease is lost or `stop`; the lease is renewed until the end."""
        lease_lost = self.elector.renew() if self.elector is not None else asyncio.Event().wait()
        try:
            await wait_first(lease_lost, self._run_manager())
        finally:
            self.since = self._manager = None

    def _notify(self) -> None:
        self._decided.set()
        for handler in self._handlers:
            handler()

    async def _run_manager(self) -> None:
        manager = self._manager = await self._build_manager()
        if manager is None:
            return
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(manager.run())
            await wait_first(self._wait_settled(manager), self._stopping.wait())
            await self._stopping.wait()
            manager.stop()
            await running

    async def _wait_settled(self, manager: Manager) -> None:
        await manager.settled()
        self.since = self._clock.now()
        self._notify()

    async def _build_manager(self) -> Manager | None:
        """Build a manager, with retries until the server answers; None when stopped."""
        failures = 0
        while not self._stopping.is_set():
            try:
                return await self._build()
            except (ApiError, UnreachableError, UnreadableError) as error:
                failures += 1
                delay = self._backoff.delay(failures)
                log.warning(
                    "failed to start controllers", error=str(error), retry_in=round(delay, 3)
                )
                await wait_first(self._clock.sleep(delay), self._stopping.wait())
        return None

"""Runs controllers only while this process leads, and stands by otherwise.

Each term has a manager of its own, with caches that start empty: nothing that was believed before
the lease was lost is believed afterwards. client/leases.py says who leads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from sully.client.leases import Elector
from sully.client.transport import UnreachableError, UnreadableError
from sully.controllers.manager import Manager
from sully.machinery.errors import ApiError
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger
from sully.runtime.tasks import wait_first

log = get_logger("controllers")

Build = Callable[[], Awaitable[Manager]]
Tell = Callable[[], None]


class Leading:
    """Starts a manager when the lease is won and ends it before another may win it."""

    def __init__(self, build: Build, *, clock: Clock, elector: Elector | None) -> None:
        self.elector = elector
        self.since: datetime | None = None
        """When all objects there were had been dealt with; None while another leads."""
        self._build = build
        self._clock = clock
        self._tell: list[Tell] = []
        self._stopping = asyncio.Event()
        self._known = asyncio.Event()
        self._backoff = Backoff(base=0.5, cap=10.0)
        self._manager: Manager | None = None

    async def run(self) -> None:
        """Compete and work, until `stop`; without an elector, work."""
        while not self._stopping.is_set():
            if self.elector is not None:
                await wait_first(self._compete(self.elector), self._stopping.wait())
            if not self._stopping.is_set():
                await self._term()
        if self.elector is not None:
            await self.elector.release()

    def on_change(self, tell: Tell) -> None:
        """Call this when the work has begun, and when it turns out that another leads."""
        self._tell.append(tell)

    def stop(self) -> None:
        """Ask `run` to end: first the work, then the lease is given up."""
        self._stopping.set()

    async def settled(self) -> None:
        """Wait until all objects were dealt with once, or another turned out to lead."""
        await self._known.wait()

    def problems(self) -> dict[str, str]:
        """Return what cannot be followed or used now, and why; empty if all is well."""
        found = self._manager.problems() if self._manager is not None else {}
        if self.elector is not None and self.elector.problem:
            found["lease"] = self.elector.problem
        return found

    async def _compete(self, elector: Elector) -> None:
        """Wait for the lease, and say so if it is not to be had at once."""
        if not await elector.attempt():
            self._say()
            await elector.win()

    async def _term(self) -> None:
        """Work until the lease is lost or we are stopped; the lease is renewed until the end."""
        lost = self.elector.keep() if self.elector is not None else asyncio.Event().wait()
        try:
            await wait_first(lost, self._work())
        finally:
            self.since = self._manager = None

    def _say(self) -> None:
        self._known.set()
        for tell in self._tell:
            tell()

    async def _work(self) -> None:
        manager = self._manager = await self._built()
        if manager is None:
            return
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(manager.run())
            await wait_first(self._until_settled(manager), self._stopping.wait())
            await self._stopping.wait()
            manager.stop()
            await running

    async def _until_settled(self, manager: Manager) -> None:
        await manager.settled()
        self.since = self._clock.now()
        self._say()

    async def _built(self) -> Manager | None:
        """Make a manager, as often as it takes for the server to answer; None when stopped."""
        failures = 0
        while not self._stopping.is_set():
            try:
                return await self._build()
            except (ApiError, UnreachableError, UnreadableError) as error:
                failures += 1
                delay = self._backoff.delay(failures)
                log.warning("cannot begin", error=str(error), retry_in=round(delay, 3))
                await wait_first(self._clock.sleep(delay), self._stopping.wait())
        return None

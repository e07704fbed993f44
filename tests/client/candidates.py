"""Processes that compete for a lease, in one loop: each can be paused, cut off, or misled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import Any

from controllers.world import NAMESPACES, World
from sully.client.calls import Call
from sully.client.direct import DirectTransport
from sully.client.leases import LEASES, LeaderElector, LeaseTiming, NotLeadingError
from sully.client.transport import Key, UnreachableError
from sully.testing.clock import FakeClock

LEASE = Key("kube-system", "sully-controllers")


class HostClock:
    """The clock of one machine: it may be wrong, and a paused process does not look at it."""

    def __init__(self, true: FakeClock, running: asyncio.Event) -> None:
        self._true = true
        self._running = running
        self.wrong_by = 0.0

    def now(self) -> datetime:
        return self._true.now() + timedelta(seconds=self.wrong_by)

    def monotonic(self) -> float:
        return self._true.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._true.sleep(seconds)
        await self._running.wait()


class Wire(DirectTransport):
    """A way to the server that breaks on purpose."""

    def __init__(self, inner: DirectTransport, running: asyncio.Event) -> None:
        super().__init__(inner._server)
        self._running = running
        self.cut = False
        """Nothing gets through."""
        self.mute = False
        """Requests get through, and no answer comes back."""
        self.quick = asyncio.Event()
        """While not set, the answers to updates are under way."""
        self.quick.set()

    async def _call(self, call: Call) -> Any:
        await self._running.wait()
        if self.cut:
            raise UnreachableError("the line is cut")
        reply = await super()._call(call)
        if self.mute:
            await asyncio.Event().wait()
        if call.verb == "update":
            await self.quick.wait()
        await self._running.wait()
        return reply


class Host:
    """One candidate in a process of its own."""

    def __init__(self, world: World, name: str, timing: LeaseTiming | None = None) -> None:
        self.name = name
        self.running = asyncio.Event()
        self.running.set()
        self.clock = HostClock(world.clock, self.running)
        self.wire = Wire(world.transport(name), self.running)
        self.elector = LeaderElector(self.wire, LEASE, name, clock=self.clock, timing=timing)

    @property
    def leads(self) -> bool:
        """Report whether this process would write, were it to write now."""
        try:
            return self.elector.time_left() > 0
        except NotLeadingError:
            return False

    async def run(self) -> None:
        """Win, keep, and compete again when it is lost."""
        while True:
            await self.elector.acquire()
            await self.elector.renew()


class Contest:
    """Candidates over one server."""

    def __init__(self, world: World, *names: str, timing: LeaseTiming | None = None) -> None:
        self.world = world
        self.hosts = [Host(world, name, timing) for name in names]
        self._stack = AsyncExitStack()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Contest:
        await self.world.admin.create(NAMESPACES, {"metadata": {"name": "kube-system"}})
        self._group = await self._stack.enter_async_context(asyncio.TaskGroup())
        return self

    async def __aexit__(self, *error: Any) -> None:
        for task in self._tasks.values():
            task.cancel()
        await self._stack.aclose()

    def start(self, host: Host) -> None:
        self._tasks[host.name] = self._group.create_task(host.run())

    async def end(self, host: Host) -> None:
        """Let a process stop its work in good order."""
        task = self._tasks.pop(host.name)
        task.cancel()
        await asyncio.wait([task])
        await host.elector.release()

    def kill(self, host: Host) -> None:
        self._tasks.pop(host.name).cancel()

    @property
    def leaders(self) -> list[str]:
        return [host.name for host in self.hosts if host.leads]

    async def spec(self) -> dict[str, Any]:
        lease = await self.world.admin.get(LEASES.read_as(dict), LEASE)
        return dict(lease["spec"])

    async def pass_time(self, seconds: float, check: Callable[[], None] = lambda: None) -> None:
        """Let time pass in small steps; check after each, before and after anyone acts."""
        await self.world.settle()
        for _ in range(round(seconds * 4)):
            self.world.clock.advance(0.25)
            check()
            await self.world.settle()
            check()

"""The environment of the faults: replicas, clients and watches that move between replicas.

`rounds.py` decides what happens; this file starts, stops and waits.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from kills.fleet import CLAIMS, LEASES, NAMESPACES, PODS, SLICES, TEMPLATES
from replicas import work
from replicas.clients import ANSWER_SECONDS, Clients
from replicas.counting import Counter
from replicas.following import WatchHistory
from replicas.ledger import Ledger
from replicas.machines import Machine, Machines
from sully.client.http.transport import HttpTransport
from sully.client.transport import Key, UnreachableError, UnreadableError
from sully.machinery.errors import ApiError

COUNTERS = 3
WATCHES = 3
STUCK_SECONDS = 60.0
"""After so long without any change something hangs."""
POLL_SECONDS = 0.1


class StuckError(Exception):
    """There are no more changes."""


@dataclass(slots=True)
class Scene:
    """Machines, clients, and what they did."""

    machines: Machines
    clients: Clients
    ledger: Ledger = field(default_factory=Ledger)
    counters: list[Counter] = field(default_factory=list)
    histories: list[WatchHistory] = field(default_factory=list)
    _counting: list[asyncio.Task[None]] = field(default_factory=list)

    async def set_up(self, nodes: int) -> None:
        """Create what the pods need."""
        await self.clients.create(NAMESPACES, {"metadata": {"name": work.NAMESPACE}})
        for template in work.templates():
            await self.clients.create(TEMPLATES, template)
        self.histories = [
            WatchHistory(PODS, work.NAMESPACE, self.ledger.saw_pod),
            WatchHistory(CLAIMS, work.NAMESPACE, self.ledger.saw_claim),
            WatchHistory(work.CONFIG_MAPS, work.NAMESPACE, lambda *_: None),
            WatchHistory(LEASES, "kube-system", self.ledger.saw_lease),
        ]
        for history in self.histories:
            await history.begin(self.clients, WATCHES)
        self.counters = [Counter(f"counter-{number}") for number in range(COUNTERS)]
        for counter in self.counters:
            await counter.begin(self.clients)
        while await self._pools() < nodes:
            if problem := self.problem():
                raise StuckError(problem)
            await asyncio.sleep(POLL_SECONDS)

    async def _pools(self) -> int:
        return len((await self.clients.call(lambda api: api.list(SLICES))).items)

    def problem(self) -> str:
        """Return how a replica ended by itself, if one did."""
        return next(filter(None, [m.exit_problem() for m in self.machines.all]), "")

    @asynccontextmanager
    async def busy(self) -> AsyncIterator[None]:
        """Run watches and counters for as long as the block lasts."""
        async with asyncio.TaskGroup() as tasks:
            for counter in self.counters:
                self._counting.append(tasks.create_task(counter.count(self.clients)))
                self._counting.append(tasks.create_task(counter.read_until_cancelled(self.clients)))
            watches = [watch for history in self.histories for watch in history.watches]
            following = [tasks.create_task(watch.run()) for watch in watches]
            yield
            for task in (*self._counting, *following):
                task.cancel()

    def stop_counting(self) -> None:
        """Stop the counters; watches continue."""
        for task in self._counting:
            task.cancel()

    async def leader(self) -> Machine:
        """Return the machine whose replica leads."""
        machines, ledger = self.machines.all, self.ledger
        await self.until(lambda: any(m.leads(ledger.holder) for m in machines))
        return next(m for m in machines if m.leads(ledger.holder))

    def moved_from(self, machine: Machine) -> bool:
        """Report whether another machine leads."""
        return bool(self.ledger.holder) and machine.last not in self.ledger.holder

    async def until(
        self, done: Callable[[], object], missing: Callable[[], Iterable[str]] = lambda: ()
    ) -> None:
        """Wait for a condition, as long as there are changes."""
        began = time.monotonic()
        while not done():
            if problem := self.problem():
                raise StuckError(problem)
            if time.monotonic() - max(began, self.ledger.changed_at) > STUCK_SECONDS:
                raise StuckError(f"there are no more changes: {list(missing())[:5]}")
            await asyncio.sleep(POLL_SECONDS)

    async def wait_healthy(self) -> None:
        """Wait until every member and every replica serves."""
        for machine, api in zip(self.machines.all, self.clients.replicas, strict=True):
            while not (await self._member_serves(machine) and await _serves(api)):
                if problem := machine.exit_problem():
                    raise StuckError(problem)
                await asyncio.sleep(POLL_SECONDS)

    async def _member_serves(self, machine: Machine) -> bool:
        return await asyncio.to_thread(self.machines.etcd.healthy, machine.member)


@asynccontextmanager
async def serving(machines: Machines, rng: random.Random) -> AsyncIterator[Scene]:
    """Start the replicas, the first one first: the others have its identity."""
    first, *others = machines.all
    first.start()
    while not (first.data / "kubeconfig").exists():
        if problem := first.exit_problem():
            raise StuckError(problem)
        await asyncio.sleep(POLL_SECONDS)
    async with AsyncExitStack() as stack:
        replicas = [
            HttpTransport(machines.access(m), request_seconds=ANSWER_SECONDS) for m in machines.all
        ]
        for replica in replicas:
            await stack.enter_async_context(replica)
        scene = Scene(machines, Clients(replicas, rng))
        for machine in others:
            machines.join(machine)
        await scene.wait_healthy()
        yield scene


async def _serves(api: HttpTransport) -> bool:
    try:
        await api.get(NAMESPACES, Key("", "default"))
    except (UnreachableError, UnreadableError, ApiError):
        return False
    return True

"""What goes on around the troubles: replicas that start, clients that ask, watches that wander.

`rounds.py` says what happens; this file has what it needs for that at hand, and waits.
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
from replicas.following import Story
from replicas.ledger import Ledger
from replicas.machines import Machine, Machines
from sully.client.http.transport import HttpTransport
from sully.client.transport import Key, UnreachableError, UnreadableError
from sully.machinery.errors import ApiError

COUNTERS = 3
WATCHES = 3
STUCK_SECONDS = 60.0
"""After so long without any change something hangs."""
LOOK_SECONDS = 0.1


class StuckError(Exception):
    """Nothing happens any more."""


@dataclass(slots=True)
class Scene:
    """Machines, clients, and all that is known about what they did."""

    machines: Machines
    clients: Clients
    ledger: Ledger = field(default_factory=Ledger)
    counters: list[Counter] = field(default_factory=list)
    stories: list[Story] = field(default_factory=list)
    _counting: list[asyncio.Task[None]] = field(default_factory=list)

    async def furnish(self, nodes: int) -> None:
        """Make what has to be there before the first pod."""
        await self.clients.make(NAMESPACES, {"metadata": {"name": work.ROOM}})
        for template in work.templates():
            await self.clients.make(TEMPLATES, template)
        self.stories = [
            Story(PODS, work.ROOM, self.ledger.saw_pod),
            Story(CLAIMS, work.ROOM, self.ledger.saw_claim),
            Story(work.CONFIG_MAPS, work.ROOM, lambda *_: None),
            Story(LEASES, "kube-system", self.ledger.saw_lease),
        ]
        for story in self.stories:
            await story.begin(self.clients, WATCHES)
        self.counters = [Counter(f"counter-{number}") for number in range(COUNTERS)]
        for counter in self.counters:
            await counter.begin(self.clients)
        while await self._pools() < nodes:
            if problem := self.problem():
                raise StuckError(problem)
            await asyncio.sleep(LOOK_SECONDS)

    async def _pools(self) -> int:
        return len((await self.clients.ask(lambda api: api.list(SLICES))).items)

    def problem(self) -> str:
        """Return how a replica ended by itself, if one did."""
        return next(filter(None, [each.look() for each in self.machines.all]), "")

    @asynccontextmanager
    async def busy(self) -> AsyncIterator[None]:
        """Let watches wander and counters count for as long as the block lasts."""
        async with asyncio.TaskGroup() as tasks:
            for counter in self.counters:
                self._counting.append(tasks.create_task(counter.count(self.clients)))
                self._counting.append(tasks.create_task(counter.watch_over(self.clients)))
            watches = [watch for story in self.stories for watch in story.watches]
            following = [tasks.create_task(watch.run()) for watch in watches]
            yield
            for task in (*self._counting, *following):
                task.cancel()

    def stop_counting(self) -> None:
        """Let things come to rest; watches go on."""
        for task in self._counting:
            task.cancel()

    async def leader(self) -> Machine:
        """Return whose controllers work."""
        machines, ledger = self.machines.all, self.ledger
        await self.until(lambda: any(each.leads(ledger.holder) for each in machines))
        return next(each for each in machines if each.leads(ledger.holder))

    def moved_from(self, machine: Machine) -> bool:
        """Report whether another leads than the replica that was last there."""
        return bool(self.ledger.holder) and machine.last not in self.ledger.holder

    async def until(
        self, done: Callable[[], object], missing: Callable[[], Iterable[str]] = lambda: ()
    ) -> None:
        """Wait for something, as long as anything at all happens."""
        began = time.monotonic()
        while not done():
            if problem := self.problem():
                raise StuckError(problem)
            if time.monotonic() - max(began, self.ledger.changed_at) > STUCK_SECONDS:
                raise StuckError(f"nothing happens any more: {list(missing())[:5]}")
            await asyncio.sleep(LOOK_SECONDS)

    async def all_well(self) -> None:
        """Wait until every member and every replica serves."""
        for machine, api in zip(self.machines.all, self.clients.replicas, strict=True):
            while not (await self._member_serves(machine) and await _serves(api)):
                if problem := machine.look():
                    raise StuckError(problem)
                await asyncio.sleep(LOOK_SECONDS)

    async def _member_serves(self, machine: Machine) -> bool:
        return await asyncio.to_thread(self.machines.etcd.healthy, machine.member)


@asynccontextmanager
async def serving(machines: Machines, chance: random.Random) -> AsyncIterator[Scene]:
    """Start the replicas, the first one first: the others have its identity."""
    first, *others = machines.all
    first.start()
    while not (first.data / "kubeconfig").exists():
        if problem := first.look():
            raise StuckError(problem)
        await asyncio.sleep(LOOK_SECONDS)
    async with AsyncExitStack() as stack:
        replicas = [
            HttpTransport(machines.access(m), request_seconds=ANSWER_SECONDS) for m in machines.all
        ]
        for each in replicas:
            await stack.enter_async_context(each)
        scene = Scene(machines, Clients(replicas, chance))
        for machine in others:
            machines.join(machine)
        await scene.all_well()
        yield scene


async def _serves(api: HttpTransport) -> bool:
    try:
        await api.get(NAMESPACES, Key("", "default"))
    except (UnreachableError, UnreadableError, ApiError):
        return False
    return True

"""Rounds of load with faults that a server lives through, and one that ends it.

    python tools/fault_injection.py faults --inject 1000 --seed 7

In a round clients write and read without pause, while one fault follows the other. After each of
them writes must succeed again. Then the server is killed or loses power, the next one starts on
the same data, and everything that clients know is compared with what it has.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from crashes.checks import problems
from crashes.journal import Event, Journal, Name, revision_of
from crashes.load import UNCERTAIN, Tenant, Worker, record
from crashes.rounds import LIST, as_event, read
from crashes.server import Connection, DiedError
from faults.contending import CLIENTS, Contention
from faults.kinds import Kind
from faults.planes import Plane

WORKERS, TENANTS = 4, 1
FAULTS_PER_ROUND = 8
WRITES_BETWEEN = (1, 25)
WRITES_AFTER = 3
RECOVERED_WITHIN = 600.0
"""After so many seconds without a successful write after a fault something is stuck."""
_NUMBERS_PER_ROUND = 1_000_000


@dataclass(slots=True)
class Figures:
    """What a run on one store amounts to."""

    store: str
    faults: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    operations: int = 0
    """Of clients that share objects, checked for linearizability."""
    ready: list[float] = field(default_factory=list)
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Return how many faults were injected."""
        return sum(self.faults.values())

    @property
    def checked(self) -> int:
        """Return how many operations were compared with what was found later."""
        journaled = self.counts["acknowledged"] + self.counts["in doubt"]
        return journaled + self.counts["events replayed"] + self.operations


class Rounds:
    """A run on one store."""

    def __init__(self, plane: Plane, seed: int) -> None:
        self.figures = Figures(plane.name)
        self._plane = plane
        self._rng = random.Random(seed)
        self._number = 0
        self._contention = Contention()
        self._ended = False

    async def run(self, faults: int, progress: Callable[[Figures], None]) -> Figures:
        """Inject so many faults, or a few more."""
        began = time.monotonic()
        async with self._plane:
            server = await self._plane.start()
            async with server.connect() as connection:
                await self._contention.create(connection)
            while self.figures.total < faults and not self.figures.problems:
                await self._round(faults)
                self.figures.seconds = time.monotonic() - began
                progress(self.figures)
            if not self.figures.problems and await self._plane.server.stop() != 0:
                self.figures.problems.append("the server did not end well")
        return self.figures

    async def _round(self, most: int) -> None:
        self._number += 1
        journal, recorded = Journal(), list[Event]()
        texts: list[str] = []
        server = self._plane.server
        async with server.connect() as connection:
            await self._contention.begin(connection)
            listed = await connection.get(LIST)
            before = {event.name: event for event in map(as_event, listed["items"])}
            try:
                await self._load(connection, journal, before, (revision_of(listed), recorded), most)
            except* (DiedError, TimeoutError) as errors:
                texts += [f"{error}" or "time-out" for error in _leaves(errors)]
        if not texts:
            texts += await self._restart()
            server = self._plane.server
            async with server.connect() as connection:
                watched = (revision_of(listed), recorded)
                seen = await read(connection, before, watched, self._number, self._rng)
                texts += problems(journal, seen)
                texts += await self._contention.check(connection)
            self.figures.counts["events replayed"] += len(seen.replayed)
        self.figures.problems += [f"{self._plane.name} round {self._number}: {t}" for t in texts]
        self.figures.operations = self._contention.checked
        self.figures.counts += journal.counts
        self.figures.counts["in doubt"] += len(journal.in_doubt)

    async def _load(
        self,
        connection: Connection,
        journal: Journal,
        before: dict[Name, Event],
        watch: tuple[int, list[Event]],
        most: int,
    ) -> None:
        self._ended = False
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(record(connection, *watch))
            for run in self._clients(connection, journal, before):
                tasks.create_task(self._client(run))
            for kind in self._plan(most):
                await self._inject(kind, journal)
            self._ended = True
            self.figures.faults[await self._plane.end(self._rng)] += 1

    def _clients(
        self, connection: Connection, journal: Journal, before: dict[Name, Event]
    ) -> list[Coroutine[Any, Any, None]]:
        held = {name: event.number for name, event in before.items()}
        workers: list[Worker] = [
            Worker(n, connection, journal, held, tolerates=UNCERTAIN) for n in range(WORKERS)
        ]
        workers += [
            Tenant(WORKERS + n, connection, journal, self._number, tolerates=UNCERTAIN)
            for n in range(TENANTS)
        ]
        runs: list[Coroutine[Any, Any, None]] = []
        for number, worker in enumerate(workers):
            first = (self._number * 100 + number) * _NUMBERS_PER_ROUND
            runs.append(worker.run(random.Random(self._rng.random()), first))
        runs += [
            self._contention.run(connection, random.Random(self._rng.random()))
            for _ in range(CLIENTS)
        ]
        return runs

    async def _client(self, run: Coroutine[Any, Any, None]) -> None:
        await run
        if not self._ended:
            raise DiedError(f"a connection was closed: {self._plane.last_words()}")

    def _plan(self, most: int) -> Sequence[Kind]:
        left = most - self.figures.total - 1
        number = min(max(left, 0), FAULTS_PER_ROUND)
        kinds = self._plane.kinds()
        chosen: list[Kind] = []
        while len(chosen) < number:
            chosen += self._rng.sample(kinds, len(kinds))
        return chosen[:number]

    async def _inject(self, kind: Kind, journal: Journal) -> None:
        await self._progress(journal, self._rng.randint(*WRITES_BETWEEN), "before", kind)
        if await kind.inject(self._rng):
            self.figures.faults[kind.name] += 1
        await self._progress(journal, WRITES_AFTER, "after", kind)

    async def _progress(self, journal: Journal, writes: int, when: str, kind: Kind) -> None:
        """Wait until more writes were acknowledged."""
        try:
            async with asyncio.timeout(RECOVERED_WITHIN):
                await journal.grown(journal.counts["acknowledged"] + writes)
        except TimeoutError:
            raise DiedError(f"no write succeeds {when} {kind.name!r}") from None

    async def _restart(self) -> list[str]:
        texts = await self._plane.faults_at_start(self._rng, self.figures.faults)
        if not texts:
            server = await self._plane.start()
            self.figures.ready.append(server.ready_after)
        return texts


def _leaves(group: BaseExceptionGroup) -> list[BaseException]:
    leaves: list[BaseException] = []
    for error in group.exceptions:
        leaves += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return leaves

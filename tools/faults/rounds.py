"""Rounds of load with faults that a server lives through, and one that ends it.

    python tools/fault_injection.py faults --inject 1000 --seed 7

In a round clients write and read without pause, while one fault follows the other. After each of
them writes must succeed again. Then the server is killed or loses power, the next one starts on
the same data, and everything that clients know is compared with what it has.

The next server may be of an earlier release. It gets no faults, which may have been fixed since,
but makes a backup under load. Then the current one takes over. Sometimes the earlier one follows
again, with that backup.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from crashes.checks import Seen, problems
from crashes.journal import Event, Journal, Name, revision_of
from crashes.load import UNCERTAIN, Tenant, Worker, record
from crashes.rounds import LIST, as_event, read, settled
from crashes.server import Connection, DiedError
from faults.backups import Saved, expired, lost, marked
from faults.contending import CLIENTS, Contention
from faults.fleet import Fleet
from faults.kinds import Kind
from faults.planes import Plane
from faults.releases import CURRENT, Release
from sully.store.compaction import Retention

WORKERS, TENANTS = 4, 1
FAULTS_PER_ROUND = 8
WRITES_BETWEEN = (1, 25)
WRITES_AFTER = 3
RECOVERED_WITHIN = 600.0
"""After so many seconds without a successful write after a fault something is stuck."""
WRITES_OF_EARLIER = (20, 120)
"""Before and after the backup of an earlier release."""
CHANGES = 0.2
"""The share of restarts with an earlier release."""
GOING_BACK = 0.5
"""The share of upgrades that end with the backup from before."""
_NUMBERS_PER_ROUND = 1_000_000
_FOLLOWED = 0.9
"""Which part of the history of a store a round may have: its first writes come before its list."""
_MOST_TOO_LONG = 0.1
"""The share of rounds that no watch can follow; a run with more of them shows too little."""


@dataclass(slots=True)
class Figures:
    """What a run on one store amounts to."""

    store: str
    rounds: int = 0
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
    def too_long(self) -> int:
        """Return in how many rounds only lists were compared."""
        return self.counts["rounds too long"]

    @property
    def checked(self) -> int:
        """Return how many operations were compared with what was found later."""
        journaled = self.counts["acknowledged"] + self.counts["in doubt"]
        return journaled + self.counts["events replayed"] + self.operations


@dataclass(slots=True)
class Known:
    """What clients know of one round."""

    journal: Journal = field(default_factory=Journal)
    before: dict[Name, Event] = field(default_factory=dict)
    revision: int = 0
    """Of a list at the beginning."""
    recorded: list[Event] = field(default_factory=list)
    """What a watch from there reported."""
    begun: float = 0.0

    async def begin(self, connection: Connection) -> None:
        """Read what there is before the round."""
        self.begun = time.monotonic()
        listed = await connection.get(LIST)
        self.revision = revision_of(listed)
        self.before = {event.name: event for event in map(as_event, listed["items"])}

    @property
    def revisions(self) -> int:
        """Return how many revisions the round has so far, or at least."""
        return self.recorded[-1].revision - self.revision if self.recorded else 0

    async def read(self, connection: Connection, number: int, rng: random.Random) -> Seen:
        """Read what there is after it."""
        return await read(connection, self.before, (self.revision, self.recorded), number, rng)


class Rounds:
    """A run on one store."""

    def __init__(
        self,
        plane: Plane,
        seed: int,
        earlier: Sequence[Release] = (),
        *,
        changes: float = CHANGES,
        going_back: float = GOING_BACK,
    ) -> None:
        self.figures = Figures(plane.name)
        self._plane = plane
        self._rng = random.Random(seed)
        self._number = 0
        self._contention = Contention()
        self._fleet = Fleet()
        self._earlier = earlier
        self._changes = changes
        self._going_back = going_back
        self._saved: Saved | None = None
        self._ended = False

    async def run(self, faults: int, progress: Callable[[Figures], None]) -> Figures:
        """Inject so many faults, or a few more."""
        began = time.monotonic()
        async with self._plane:
            server = await self._plane.start()
            async with server.connect() as connection:
                await self._contention.create(connection)
                await self._fleet.create(connection)
            while self.figures.total < faults and not self.figures.problems:
                await self._round(faults)
                self.figures.seconds = time.monotonic() - began
                progress(self.figures)
            if not self.figures.problems and await self._plane.server.stop() != 0:
                self.figures.problems.append("the server did not end well")
        done, too_long = self.figures.rounds, self.figures.too_long
        if too_long > _MOST_TOO_LONG * done + 1:
            self.figures.problems.append(f"watches cannot follow {too_long} of {done} rounds")
        return self.figures

    async def _round(self, most: int) -> None:
        self._number += 1
        self.figures.rounds += 1
        known = Known()
        texts: list[str] = []
        try:
            async with self._plane.server.connect() as connection:
                await self._contention.begin(connection)
                await known.begin(connection)
                await self._load(connection, known, most)
            texts += await self._restart(known)
        except* (DiedError, TimeoutError) as errors:
            texts += [f"{error}" or "time-out" for error in _leaves(errors)]
        self.figures.problems += [f"{self._plane.name} round {self._number}: {t}" for t in texts]
        self.figures.operations = self._contention.checked
        self.figures.counts += known.journal.counts
        self.figures.counts["in doubt"] += len(known.journal.in_doubt)

    async def _load(self, connection: Connection, known: Known, most: int) -> None:
        self._ended = False
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(record(connection, known.revision, known.recorded))
            for run in self._clients(connection, known.journal, known.before):
                tasks.create_task(self._client(run))
            if self._plane.release.is_current:
                await self._faults(known, most)
            else:
                await self._back_up(known)
            self._ended = True
            self.figures.faults[await self._plane.end(self._rng)] += 1

    async def _faults(self, known: Known, most: int) -> None:
        for kind in self._plan(most):
            # After a restart a watch from before the round must still be possible.
            if known.revisions > self._plane.history / 2:
                return
            await self._inject(kind, known.journal)

    async def _back_up(self, known: Known) -> None:
        """Let an earlier release work, and save its data meanwhile."""
        await self._progress(known.journal, self._rng.randint(*WRITES_OF_EARLIER), "on", "release")
        file = self._plane.directory.parent / f"{self._number}.sully"
        acknowledged = marked(known.journal)
        if await self._plane.back_up(file):
            self._saved = Saved(
                file,
                self._plane.release,
                known.revision,
                known.before,
                known.journal,
                acknowledged,
            )
        await self._progress(known.journal, self._rng.randint(*WRITES_OF_EARLIER), "on", "release")

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
        # Of writers that race, earlier releases answer some with errors that have been fixed since.
        runs += [
            self._contention.run(connection, random.Random(self._rng.random()))
            for _ in range(CLIENTS if self._plane.release.is_current else 0)
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
        await self._progress(journal, self._rng.randint(*WRITES_BETWEEN), "before", kind.name)
        if await kind.inject(self._rng):
            self.figures.faults[kind.name] += 1
        await self._progress(journal, WRITES_AFTER, "after", kind.name)

    async def _progress(self, journal: Journal, writes: int, when: str, what: str) -> None:
        """Wait until more writes were acknowledged."""
        try:
            async with asyncio.timeout(RECOVERED_WITHIN):
                await journal.grown(journal.counts["acknowledged"] + writes)
        except TimeoutError:
            raise DiedError(f"no write succeeds {when} {what!r}") from None

    async def _restart(self, known: Known) -> list[str]:
        """Start the next server, and compare everything that clients know with what it has."""
        texts = await self._plane.faults_at_start(self._rng, self.figures.faults)
        if texts:
            return texts
        before = self._plane.release
        saved = self._change_release()
        changed = self._plane.release != before
        if saved is not None:
            await self._plane.restore(saved)
        server = await self._plane.start()
        self.figures.ready.append(server.ready_after)
        async with server.connect() as connection:
            if saved is not None:
                return await self._check_restored(connection, saved)
            if await self._is_too_long(connection, known):
                return await self._check_list(connection, known, works=changed)
            seen = await known.read(connection, self._number, self._rng)
            texts = list(problems(known.journal, seen))
            texts += await self._contention.check(connection)
            texts += await self._fleet.check(connection, self._plane.release, works=changed)
            self.figures.counts["events replayed"] += len(seen.replayed)
        return texts

    async def _is_too_long(self, connection: Connection, known: Known) -> bool:
        """Report whether no watch can follow a round: clients went on during a slow repair."""
        written = revision_of(await connection.get(LIST)) - known.revision
        took = time.monotonic() - known.begun
        return written > _FOLLOWED * self._plane.history or took > Retention().seconds

    async def _check_list(self, connection: Connection, known: Known, *, works: bool) -> list[str]:
        """Compare only the last writes, with what there is now."""
        self.figures.counts["rounds too long"] += 1
        await settled(connection)
        listed = await connection.get(LIST)
        texts = list(lost(known.before, known.journal, marked(known.journal), listed))
        return texts + await self._fleet.check(connection, self._plane.release, works=works)

    def _change_release(self) -> Saved | None:
        """Choose the next release; return the backup that it begins with, if any."""
        current = self._plane.release
        saved, self._saved = self._saved, None
        if not current.is_current:
            # Its backup is for the time after this upgrade.
            self._saved, self._plane.release = saved, CURRENT
            self.figures.faults[f"upgrade from {current.version}"] += 1
        elif saved is not None and self._rng.random() < self._going_back:
            self._plane.release = saved.release
            self.figures.faults[f"downgrade to {saved.release.version} with its backup"] += 1
            return saved
        elif self._earlier and self._rng.random() < self._changes:
            self._plane.release = self._rng.choice(self._earlier)
            self.figures.faults[f"downgrade to {self._plane.release.version}"] += 1
        return None

    async def _check_restored(self, connection: Connection, saved: Saved) -> list[str]:
        texts = list(saved.problems(await connection.get(LIST)))
        texts += await expired(connection, saved.revision)
        return texts + await self._fleet.check(connection, self._plane.release, works=True)


def _leaves(group: BaseExceptionGroup) -> list[BaseException]:
    leaves: list[BaseException] = []
    for error in group.exceptions:
        leaves += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return leaves

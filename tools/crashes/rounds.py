"""Rounds of load, kill, restart and check on one data directory.

    python tools/fault_injection.py crashes --kills 300 --seed 7

A seed decides the moments, the writes and their order per client; how requests of different
clients interleave is up to the machine, so a seed gives back the kind of a failure, not each byte.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crashes.checks import Seen, problems
from crashes.journal import Event, Journal, Name, body, name_of, number_of, revision_of
from crashes.load import EVERYWHERE, HOME, SELECTION, Tenant, Worker, collection, event_of, record
from crashes.server import Connection, DiedError, Server
from sully.testing.patience import PATIENCE

Obj = dict[str, Any]

WORKERS = 5
TENANTS = 2
_NUMBERS_PER_ROUND = 1_000_000
_WRITES_PER_ROUND = 400
"""The most that are acknowledged before a kill, or little more."""
_SUSPENDED = 0.3
"""The share of servers that are suspended at work (SIGSTOP) and resumed before they are killed."""
_SENTINEL = "sentinel"
LIST = f"{EVERYWHERE}?labelSelector=robust%3Dload"


@dataclass(slots=True)
class Figures:
    """What a run amounts to."""

    kills: int = 0
    early_kills: int = 0
    suspensions: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    ready: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Rounds:
    """A run on one data directory."""

    def __init__(self, directory: Path, seed: int, *, flags: tuple[str, ...] = ()) -> None:
        self.figures = Figures()
        self._directory = directory
        self._rng = random.Random(seed)
        self._flags = (*flags, "--log-level", "error")
        self._number = 0
        self._server: Server | None = None

    async def run(self, kills: int, progress: Callable[[Figures], None]) -> Figures:
        """Kill so many times, then stop as a user would."""
        try:
            self._server = await self._start()
            while self.figures.kills < kills and not self.figures.problems:
                await self._round()
                progress(self.figures)
            if not self.figures.problems and await self._server.stop() != 0:
                self.figures.problems.append("the server did not end well")
        finally:
            if self._server is not None:
                await self._server.kill()
        return self.figures

    async def _round(self) -> None:
        self._number += 1
        server = self._running()
        journal, recorded = Journal(), list[Event]()
        async with server.connect() as connection:
            listed = await connection.get(LIST)
            before = {event.name: event for event in map(as_event, listed["items"])}
            await self._load(connection, journal, before, (revision_of(listed), recorded))
        self._server = await self._restart()
        async with self._server.connect() as connection:
            watched = (revision_of(listed), recorded)
            seen = await read(connection, before, watched, self._number, self._rng)
        texts = list(problems(journal, seen))
        self.figures.problems += [f"round {self._number}: {text}" for text in texts]
        self.figures.counts += journal.counts
        self.figures.counts["in doubt"] += len(journal.in_doubt)
        self.figures.counts["events replayed"] += len(seen.replayed)

    def _running(self) -> Server:
        if self._server is None:
            raise DiedError("there is no server")
        return self._server

    async def _load(
        self,
        connection: Connection,
        journal: Journal,
        before: dict[Name, Event],
        watch: tuple[int, list[Event]],
    ) -> None:
        held = {name: event.number for name, event in before.items()}
        workers: list[Worker] = [Worker(n, connection, journal, held) for n in range(WORKERS)]
        workers += [Tenant(WORKERS + n, connection, journal, self._number) for n in range(TENANTS)]
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(record(connection, *watch))
            at_work = []
            for number, worker in enumerate(workers):
                first = (self._number * 100 + number) * _NUMBERS_PER_ROUND
                run = worker.run(random.Random(self._rng.random()), first)
                at_work.append(tasks.create_task(run))
            # By what was done, not by the clock: on a busy machine that may be nothing at all.
            enough = tasks.create_task(journal.grown(self._rng.randint(1, _WRITES_PER_ROUND)))
            await asyncio.wait([enough, *at_work], return_when=asyncio.FIRST_COMPLETED)
            enough.cancel()
            if self._rng.random() < _SUSPENDED:
                await self._running().suspend(self._rng.uniform(0.05, 1.0))
                self.figures.suspensions += 1
            await asyncio.sleep(self._rng.uniform(0, 0.02))
            await self._running().kill()
            self.figures.kills += 1

    async def _restart(self) -> Server:
        # Some are killed again while they start.
        while self._rng.random() < 0.1:
            server = await Server.start(self._directory, *self._flags)
            try:
                await asyncio.sleep(self._rng.uniform(0.0, 0.6))
            finally:
                await server.kill()
            self.figures.kills += 1
            self.figures.early_kills += 1
        return await self._start()

    async def _start(self) -> Server:
        server = await Server.start(self._directory, *self._flags)
        try:
            await server.ready()
        except BaseException:
            await server.kill()
            raise
        self.figures.ready.append(server.ready_after)
        return server


async def read(
    connection: Connection,
    before: dict[Name, Event],
    watch: tuple[int, list[Event]],
    number: int,
    rng: random.Random,
) -> Seen:
    """Read everything that the checks compare, once the server is idle.

    `watch` is what a watcher saw before the kill, and the revision where it began.
    """
    start, recorded = watch
    namespaces = await settled(connection)
    listed = await connection.get(LIST)
    code, end = await connection.call(
        "POST", collection(HOME), body(Name(HOME, f"{_SENTINEL}-{number}"), 0)
    )
    if code != 201:
        raise DiedError(f"the server takes no writes after the restart: {code} {end}")
    replayed = await _replay(connection, start, end)
    seen = Seen(before, recorded, replayed, listed=listed, namespaces=namespaces)
    revisions = sorted({event.revision for event in replayed})
    for revision in rng.sample(revisions, min(3, len(revisions))):
        seen.partial[revision] = await _replay(connection, revision, end)
    await connection.call("DELETE", f"{collection(HOME)}/{end['metadata']['name']}")
    return seen


async def settled(connection: Connection) -> Obj:
    """Wait until terminating namespaces are deleted; return the others."""
    give_up = time.monotonic() + PATIENCE
    while True:
        namespaces = await connection.get("/api/v1/namespaces")
        terminating = [i for i in namespaces["items"] if i["metadata"].get("deletionTimestamp")]
        if not terminating or time.monotonic() > give_up:
            return namespaces
        await asyncio.sleep(0.05)


async def _replay(connection: Connection, after: int, end: Obj) -> list[Event]:
    """Follow a watch from a revision up to the object that marks the end."""
    events: list[Event] = []
    query = {**SELECTION, "resourceVersion": str(after)}
    async with aclosing(connection.watch(EVERYWHERE, query)) as reported:
        async for event in reported:
            if event["type"] == "ERROR":
                raise DiedError(f"the watch from {after} was refused: {event['object']}")
            if event["object"]["metadata"]["name"] == end["metadata"]["name"]:
                return events
            events.append(event_of(event))
    raise DiedError("the watch ended before its end")


def as_event(item: Obj) -> Event:
    """Return the state of an object as an event."""
    return Event("ADDED", name_of(item), revision_of(item), number_of(item))

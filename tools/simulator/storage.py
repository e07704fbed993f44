"""The durable store on a simulated disk: Sully's own, without its thread, and with an observer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from simulator.disk import SimulatedDisk
from simulator.loop import Process
from sully.store.base import Commit
from sully.store.errors import StoreError
from sully.store.sqlite.database import Database
from sully.store.sqlite.store import SqliteStore
from sully.store.sqlite.writer import Pending, Report, WriterThread
from sully.store.state import State
from sully.store.transactions import Transaction

PATH = Path("/simulated/store.db")


@dataclass(frozen=True, slots=True)
class Actor:
    """Who sent the request that a transaction belongs to."""

    process: Process | None
    user: str
    verb: str = ""
    sent: float = 0.0


NOBODY = Actor(None, "server")
ACTOR: ContextVar[Actor] = ContextVar("actor", default=NOBODY)


class Observer(Protocol):
    """Sees what the store accepts and acknowledges."""

    def accepted(self, transaction: Transaction, actor: Actor) -> None:
        """Note a transaction that may become durable."""
        ...

    def settled(self, transactions: Sequence[Transaction], *, written: bool) -> None:
        """Note transactions that are acknowledged, or reported as not written."""
        ...

    def recovered(self, state: State) -> None:
        """Check what a start found on the disk."""
        ...


class _NoHandover:
    """There is no thread that had to be lent the interpreter."""

    def submitted(self) -> None: ...
    def reported(self, jobs: int) -> None: ...
    def posted(self) -> None: ...


class SimulatedWriter(WriterThread):
    """The writer, as callbacks of the event loop: each batch takes a random time."""

    def __init__(self, database: Database, report: Report, *, rng: random.Random) -> None:
        super().__init__(database, report)
        self._rng = rng
        self._handover: Any = _NoHandover()

    def start(self) -> None:
        """Start no thread."""

    async def stop(self) -> None:
        """Nothing to stop: simulated servers are killed."""

    def _send(self) -> None:
        super()._send()
        if not self._jobs.empty():
            self._loop.call_later(self._rng.choice((0.0002, 0.001, 0.02)), self._work)

    def _work(self) -> None:
        if self._jobs.empty():
            return
        self._take()
        taken, self._taken = self._taken, []
        for is_write, jobs in groupby(taken, lambda job: isinstance(job, Pending)):
            (self._write if is_write else self._maintain)(list(jobs))
        if self._log_bytes > 1 << 20:
            self._checkpoint()


class _Directory:
    """The data directory; nobody else can use it."""

    def release(self) -> None: ...


class ObservedStore(SqliteStore):
    """A store whose transactions an observer sees."""

    def __init__(self, observer: Observer, *args: Any, **options: Any) -> None:
        self._observer = observer
        super().__init__(*args, **options)

    async def _accept(self, transaction: Transaction) -> Commit:
        if transaction.events:
            self._observer.accepted(transaction, ACTOR.get())
        return await super()._accept(transaction)

    def _settle(self, batch: list[Pending], error: StoreError | None) -> None:
        super()._settle(batch, error)
        transactions = [pending.transaction for pending in batch if pending.transaction.events]
        self._observer.settled(transactions, written=error is None)


async def open_store(disk: SimulatedDisk, observer: Observer, rng: random.Random) -> ObservedStore:
    """Open the store on a disk, as a server does when it starts."""
    disk.create(str(PATH))
    await asyncio.sleep(rng.choice((0.05, 0.5, 5.0)))
    database = Database(PATH, vfs=disk.name)
    disk.users.append(database)
    state = database.load()
    observer.recovered(state)
    writer = partial(SimulatedWriter, rng=rng)
    return ObservedStore(observer, _Directory(), database, state, writer)

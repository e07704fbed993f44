"""A store on the disk of one machine: SQLite underneath, reads from memory.

    commit ─ plan against newest() ─ overlay ─ queue ─▶ writer thread ─ COMMIT ─┐
       ▲                                                                       │
       └── future ◀── State.apply, watchers wake ◀── report on the event loop ◀─┘

Conflicts are decided on the event loop, before the disk is asked, against everything accepted so
far. The overlay holds what was accepted and is not durable yet; readers do not see it. If a batch
cannot be written, everything accepted since it was built may rest on it and fails with it.
`directory.py` has the lock, `database.py` the file, `writer.py` the thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from sully.store.backup.copying import Copy
from sully.store.base import Commit, Event, Op, Record, StoreKey
from sully.store.directory import DataDirectory
from sully.store.errors import ClosedError, ConflictError, StoreError, UnavailableError
from sully.store.memory import ReadSide
from sully.store.replay import Version, superseded
from sully.store.sqlite.database import Database
from sully.store.sqlite.writer import Pending, Report, Trim, WriterThread, settle
from sully.store.state import State
from sully.store.transactions import Transaction, plan

_ROWS_PER_TRIM = 500
"""Writers wait for at most one such step of a compaction."""


class SqliteStore(ReadSide):
    """A durable store of one process. Make one with `open`."""

    def __init__(
        self,
        directory: DataDirectory,
        database: Database,
        state: State,
        writer: Callable[[Database, Report], WriterThread] = WriterThread,
    ) -> None:
        super().__init__(state)
        self._directory = directory
        self._assigned = state.revision
        self._overlay: dict[StoreKey, Event] = {}
        self._epoch = 0
        self._copying = asyncio.Lock()
        self._closed: asyncio.Future[None] | None = None
        self._writer = writer(database, self._settle)
        self._writer.start()

    @classmethod
    async def open(cls, path: Path) -> SqliteStore:
        """Open the store in a directory, which is created if it does not exist.

        Raises `OpenError` if another process has it, or it cannot be read or written.
        """
        directory = DataDirectory(path)
        try:
            database, state = await asyncio.to_thread(_load, directory)
        except BaseException:
            directory.release()
            raise
        return cls(directory, database, state)

    def newest(self, key: StoreKey) -> Record | None:
        """Return the newest state, including writes that are accepted but not yet durable."""
        event = self._overlay.get(key)
        if event is None:
            return self._state.get(key)
        return None if event.kind == "DELETED" else event.record

    async def commit(self, ops: Sequence[Op]) -> Commit:
        """Do all operations at one new revision, or none of them."""
        self._check_open()
        try:
            transaction = plan(ops, self.newest, revision=self._assigned + 1)
        except ConflictError as conflict:
            # What it conflicts with may still fail; do not report it before.
            if conflict.key in self._overlay:
                await self._accept(self._nothing())
            raise
        if not transaction.events:
            transaction = self._nothing(transaction.records)
        return await self._accept(transaction)

    async def compact(self, revision: int) -> None:
        """Forget the history up to and including this revision; current records stay."""
        self._check_open()
        before = self.compacted
        versions = superseded(self._state.compact(revision))
        if revision <= before:
            return
        failure: StoreError | None = None
        rows = list(islice(versions, _ROWS_PER_TRIM))
        while True:
            try:
                await self._trim(revision, rows)
            except StoreError as error:
                # The database repeats a step that failed, but the others must reach it, too.
                failure = failure or error
            rows = list(islice(versions, _ROWS_PER_TRIM))
            if not rows:
                break
        if failure is not None:
            raise failure

    async def _trim(self, revision: int, rows: list[Version]) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._writer.submit(Trim(revision, rows, done))
        await done

    async def snapshot(self) -> BinaryIO:
        """Return an open, nameless file with a copy of everything; the caller closes it."""
        async with self._copying:
            self._check_open()
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            try:
                path = self._directory.copy()
            except OSError as error:
                raise UnavailableError(f"cannot copy the database: {error}") from error
            try:
                self._writer.submit(Copy(path, done))
                # The writer uses the file until it is done, also after a cancellation.
                await _to_the_end(done)
                return path.open("rb")
            finally:
                path.unlink(missing_ok=True)

    async def close(self) -> None:
        """Finish what was accepted, wake every waiter, release the directory."""
        if self._closed is None:
            self._closed = asyncio.ensure_future(self._close())
        # Others may wait for the end too.
        await asyncio.shield(self._closed)

    async def _close(self) -> None:
        await self._writer.stop()
        self._state.close()
        self._directory.release()

    def _check_open(self) -> None:
        if self._closed is not None:
            raise ClosedError("the store is closed")

    def _nothing(self, records: tuple[Record | None, ...] = ()) -> Transaction:
        """Return a transaction that only waits for what was accepted before it."""
        return Transaction(self._assigned if self._overlay else self.revision, [], records)

    async def _accept(self, transaction: Transaction) -> Commit:
        if not transaction.events and not self._overlay:
            return Commit(transaction.revision, transaction.records)
        done: asyncio.Future[Commit] = asyncio.get_running_loop().create_future()
        self._writer.submit(Pending(transaction, done, self._epoch))
        # The report comes through the event loop, so it cannot come before this.
        for event in transaction.events:
            self._overlay[event.record.key] = event
        self._assigned = transaction.revision
        return await done

    def _settle(self, batch: list[Pending], error: StoreError | None) -> None:
        """Apply the result of a batch."""
        if error is None:
            self._state.apply(pending.transaction for pending in batch)
            self._clear_overlay(batch)
        elif batch and batch[-1].epoch == self._epoch:
            # Revisions assigned to what failed are not assigned again: a client may hold a
            # write that expects them, and it must find a conflict.
            self._epoch += 1
            self._overlay.clear()
        for pending in batch:
            transaction = pending.transaction
            settle(pending.future, Commit(transaction.revision, transaction.records), error)

    def _clear_overlay(self, batch: list[Pending]) -> None:
        for pending in batch:
            for event in pending.transaction.events:
                if self._overlay.get(event.record.key) is event:
                    del self._overlay[event.record.key]


async def _to_the_end(done: asyncio.Future[None]) -> None:
    """Wait for a job, also if the waiting task is cancelled."""
    try:
        await asyncio.shield(done)
    except asyncio.CancelledError:
        await asyncio.wait([done])
        raise


def _load(directory: DataDirectory) -> tuple[Database, State]:
    database = Database(directory.database())
    try:
        return database, database.load()
    except BaseException:
        database.close()
        raise

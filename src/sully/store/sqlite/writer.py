"""The thread that writes, and why many writers share one flush.

A flush to disk takes as long for one transaction as for a hundred. So transactions that arrive
while a batch is being written are collected, and sent to the thread as the next batch; the first
one after a pause waits for those of other requests that have already arrived. The thread
reports back to the event loop, where `store.py` shows the result to readers; the waiting callers
run first, so what they write next is in the next batch too. With fewer, larger batches the two
threads also compete less for the interpreter. Checkpoints run here too, while there are no writes.

A lone writer would be served a little sooner on the event loop itself (0.25 ms instead of 0.4 ms
where a flush takes 0.2 ms), but then a disk that hangs would hang every reader and watcher.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import TypeVar

import msgspec

from sully.runtime.log import get_logger
from sully.store.backup.copying import Copy, Copying
from sully.store.base import Commit
from sully.store.errors import StoreError, UnavailableError
from sully.store.replay import Version
from sully.store.sqlite.database import Database
from sully.store.sqlite.handover import Handover
from sully.store.transactions import Transaction

T = TypeVar("T")

_log = get_logger("store")

_MAX_JOBS = 256
_PAUSE = 0.05
"""After this many seconds without a write, a checkpoint delays no write."""
_CHECKPOINT_BYTES = 1 << 20
_MAX_LOG_BYTES = 16 << 20
"""Larger checkpoints are not faster per byte, and writers wait for a whole one."""


class Pending(msgspec.Struct, eq=False):
    """A transaction that was accepted and is not durable yet."""

    transaction: Transaction
    future: asyncio.Future[Commit]
    epoch: int
    """Transactions of one epoch may build on each other, so they fail together."""


class Trim(msgspec.Struct, eq=False):
    """Rows to be deleted because their history was compacted."""

    compacted: int
    versions: Sequence[Version]
    future: asyncio.Future[None]


Job = Pending | Trim | Copy | None
"""`None` is the end."""

Report = Callable[[list[Pending], StoreError | None], None]
"""Called on the event loop with transactions, in order, and why they failed, if they did."""


class WriterThread:
    """Owns the database and its thread from `start` to `stop`."""

    def __init__(self, database: Database, report: Report, *, pause: float = _PAUSE) -> None:
        self._database = database
        self._report = report
        self._pause = pause
        self._loop = asyncio.get_running_loop()
        self._handover = Handover(self._loop.call_later)
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._next_batch: list[Pending | Trim | Copy] = []
        self._in_progress = 0
        self._stopped: asyncio.Future[None] = self._loop.create_future()
        self._taken: list[Job] = []
        self._failed_epoch, self._failure = -1, ""
        self._log_bytes = 0
        self._copying: tuple[Copy, Copying] | None = None
        # A daemon, so that a forgotten store does not keep the process alive: whatever was
        # acknowledged is durable without it.
        self._thread = threading.Thread(target=self._run, name="sully-store", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, job: Pending | Trim | Copy) -> None:
        """Submit a job; jobs are done in order and reported on the event loop."""
        if self._stopped.done():
            raise UnavailableError("the store's writer has stopped")
        if not self._next_batch and not self._in_progress:
            # After requests that have arrived meanwhile: the event loop polls once in between.
            self._loop.call_soon(self._loop.call_soon, self._send)
        self._next_batch.append(job)

    async def stop(self) -> None:
        """Finish every job that was submitted, then close the database."""
        self._send()
        self._jobs.put(None)
        await asyncio.shield(self._stopped)
        self._thread.join()

    def _send(self) -> None:
        """Send the gathered jobs to the thread."""
        jobs, self._next_batch = self._next_batch, []
        for job in jobs:
            # A copy takes long, and writes do not wait for it.
            self._in_progress += not isinstance(job, Copy)
            self._handover.submitted()
            self._jobs.put(job)

    def _run(self) -> None:
        try:
            while self._take():
                for is_write, jobs in groupby(self._taken, lambda job: isinstance(job, Pending)):
                    (self._write if is_write else self._maintain)(list(jobs))
                self._taken = []
        finally:
            # Also where a bug ended the loop: nothing may wait indefinitely.
            try:
                self._stop_copying()
                self._database.close()
            finally:
                self._post(self._end)

    def _take(self) -> bool:
        """Wait for jobs and take all of them; report whether to continue."""
        if self._copying is not None:
            self._copy_more()
            if self._jobs.empty():
                return True
        try:
            is_due = self._log_bytes >= _CHECKPOINT_BYTES
            job = self._jobs.get(timeout=self._pause if is_due else None)
        except Empty:
            self._checkpoint()
            job = self._jobs.get()
        while job is not None:
            self._taken.append(job)
            if len(self._taken) == _MAX_JOBS or self._jobs.empty():
                return True
            job = self._jobs.get_nowait()
        # The stop is the last job; those before it are done first, in another iteration.
        self._jobs.put(None)
        return bool(self._taken)

    def _write(self, batch: Sequence[Job]) -> None:
        pending = [job for job in batch if isinstance(job, Pending)]
        doomed = [job for job in pending if job.epoch <= self._failed_epoch]
        if doomed:
            self._reply(
                doomed, UnavailableError(f"a write before this one failed: {self._failure}")
            )
        alive = pending[len(doomed) :]
        error: UnavailableError | None = None
        try:
            if any(job.transaction.events for job in alive):
                self._log_bytes += self._database.write(job.transaction.events for job in alive)
        except UnavailableError as failure:
            error = failure
            self._failed_epoch, self._failure = alive[-1].epoch, str(failure)
        if alive:
            self._reply(alive, error)
        if self._log_bytes >= _MAX_LOG_BYTES:
            self._checkpoint()

    def _maintain(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            if isinstance(job, Trim):
                error: UnavailableError | None = None
                try:
                    self._database.trim(job.compacted, job.versions)
                except UnavailableError as failure:
                    error = failure
                self._log_bytes += 100 * len(job.versions)
                self._reply([job], error)
            elif isinstance(job, Copy):
                self._begin_copy(job)

    def _begin_copy(self, job: Copy) -> None:
        try:
            self._copying = (job, self._database.copy(job.path))
        except UnavailableError as failure:
            self._reply([job], failure)

    def _copy_more(self) -> None:
        """Do one step of a copy; writes run between two of them."""
        if self._copying is None:
            return
        job, copying = self._copying
        error: UnavailableError | None = None
        try:
            if not self._database.copy_more(copying, job.path):
                return
        except UnavailableError as failure:
            error = failure
        self._copying = None
        self._reply([job], error)

    def _stop_copying(self) -> None:
        if self._copying is not None:
            job, copying = self._copying
            self._copying = None
            copying.abandon()
            self._reply([job], UnavailableError("the store was closed during the copy"))

    def _checkpoint(self) -> None:
        try:
            self._database.checkpoint()
        except UnavailableError as error:
            # Nothing is lost: the log keeps what could not be moved, until the next attempt.
            _log.warning("checkpoint failed", error=str(error))
        self._log_bytes = 0

    def _reply(self, jobs: Sequence[Pending | Trim | Copy], error: StoreError | None) -> None:
        self._post(self._done, jobs, error)
        self._handover.posted()

    def _done(self, jobs: Sequence[Pending | Trim | Copy], error: StoreError | None) -> None:
        """Report the result of jobs, on the event loop."""
        self._handover.reported(len(jobs))
        self._in_progress -= sum(not isinstance(job, Copy) for job in jobs)
        self._report([job for job in jobs if isinstance(job, Pending)], error)
        for job in jobs:
            if not isinstance(job, Pending):
                settle(job.future, None, error)
        if self._next_batch and not self._in_progress:
            # Not immediately: callers of these jobs run first, and may write more.
            self._loop.call_soon(self._send)

    def _post(self, callback: Callable[..., None], *args: object) -> None:
        # The loop is closed if the program ends without closing the store.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, *args)

    def _end(self) -> None:
        """Fail what is left, on the event loop; after a proper stop nothing is."""
        self._stopped.set_result(None)
        self._send()
        remaining = self._taken
        while not self._jobs.empty():
            remaining.append(self._jobs.get_nowait())
        error = UnavailableError("the store's writer has stopped")
        self._done([job for job in remaining if job is not None], error)


def settle(future: asyncio.Future[T], result: T, error: StoreError | None) -> None:
    """Complete a future, unless its waiter was cancelled."""
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)

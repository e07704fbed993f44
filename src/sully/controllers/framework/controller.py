"""What a controller is, and the loop that runs it: take a key, reconcile, requeue.

A controller gets a key, never an event, so any number of events costs one reconcile, and the next
event makes up for a missed one. Errors end up in the loop here, which requeues the key with
exponential backoff. sources.py has what keys come from; manager.py starts and stops these loops
together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from sully.client.events import EventRecorder
from sully.client.informers.outages import Outages, is_outage
from sully.client.transport import Key, Transport, UnreachableError, UnreadableError
from sully.controllers.framework.sources import Source
from sully.machinery.errors import ApiError, Conflict, Forbidden, NotFound
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger
from sully.runtime.workqueue import QueueObserver, ShutDown, WorkQueue

T = TypeVar("T")

log = get_logger("controllers")

YIELD_AFTER = 0.001
"""Seconds that a worker may run without yielding to the event loop."""
NAMESPACE_TERMINATING = "NamespaceTerminating"
"""The cause of an error when nothing can be created because the namespace is terminating."""


class Watch(msgspec.Struct, Generic[T], frozen=True):
    """A source of changes, and how a changed object maps to keys."""

    source: Source[T]
    to_keys: Callable[[T], Iterable[Key]]


class Result(msgspec.Struct, frozen=True):
    """When to requeue a key, if no event does so before."""

    requeue_after: timedelta | None = None
    requeue: bool = False
    """Requeue with backoff; for a condition that sends no event when it is met."""


class ControllerEnv(NamedTuple):
    """What a controller acts with: its own client, its events, and the time."""

    transport: Transport
    recorder: EventRecorder
    clock: Clock


DONE = Result()
REQUEUE = Result(requeue=True)


class Controller(Protocol):
    """Reconciles one kind of object, key by key."""

    name: str

    def watches(self) -> Iterable[Watch[Any]]:
        """Yield what triggers a reconcile."""
        ...

    async def reconcile(self, key: Key) -> Result:
        """Reconcile a key; idempotent, and never concurrent for one key."""
        ...


class Runner:
    """Runs one controller: its queue, and a bounded number of workers."""

    def __init__(
        self,
        controller: Controller,
        *,
        clock: Clock,
        workers: int = 2,
        backoff: Backoff | None = None,
        observer: QueueObserver | None = None,
        outages: Outages | None = None,
    ) -> None:
        self.controller = controller
        self.queue: WorkQueue[Key] = WorkQueue(clock, backoff=backoff, observer=observer)
        self._clock = clock
        self._more_workers = workers
        self._idle_workers = 0
        self._tasks = asyncio.TaskGroup()
        self._outages = outages or Outages(clock)
        self._unavailable: set[Key] = set()
        """Keys that failed because the server was unavailable; others may succeed without it."""
        self._stopping = False
        for watch in controller.watches():
            watch.source.enqueue(self.queue.add, watch.to_keys)

    async def run(self) -> None:
        """Work until `stop`."""
        async with self._tasks:
            self._start_worker()

    def _start_worker(self) -> None:
        """Start a worker if none waits for a key: most controllers never need a second one."""
        if self._idle_workers == 0 and self._more_workers > 0:
            self._more_workers -= 1
            self._idle_workers += 1
            self._tasks.create_task(self._work())

    def stop(self) -> None:
        """Let workers finish the current key and take no more.

        Queued keys are dropped: the next start reconciles every object.
        """
        self._stopping = True
        self.queue.shut_down()

    async def _work(self) -> None:
        started = self._clock.monotonic()
        while True:
            try:
                key = await self.queue.get()
            except ShutDown:
                return
            finally:
                self._idle_workers -= 1
            self._start_worker()
            try:
                # A queue that is shut down still returns keys that were ready.
                if not self._stopping:
                    await self._reconcile(key)
            finally:
                self.queue.done(key)
                self._idle_workers += 1
            # A store in memory answers without yielding, so a long queue would block the server and
            # all other controllers.
            if self._clock.monotonic() - started >= YIELD_AFTER:
                await self._clock.sleep(0)
                started = self._clock.monotonic()

    async def _reconcile(self, key: Key) -> None:
        try:
            result = await self.controller.reconcile(key)
        except Exception as error:  # noqa: BLE001 - the one place where no error may end the loop
            self._failed(key, error)
            return
        self._recovered(key, answered=False)
        if result.requeue:
            self.queue.retry(key)
            return
        self.queue.forget(key)
        if result.requeue_after is not None:
            self.queue.add_after(key, result.requeue_after.total_seconds())

    def _failed(self, key: Key, error: Exception) -> None:
        fields: dict[str, Any] = {
            "controller": self.controller.name,
            "key": str(key),
            "error": str(error),
            "retry_in": round(self.queue.retry(key), 3),
        }
        if not is_outage(error):
            self._recovered(key, answered=isinstance(error, ApiError))
        if _cache_was_behind(error):
            log.debug("cache was behind, requeued", **fields)
        elif is_outage(error):
            self._unavailable.add(key)
            report = log.warning if self._outages.failed(self, error) else log.debug
            report("reconcile failed", failures=self.queue.failures(key), **fields)
        elif isinstance(error, ApiError | UnreachableError | UnreadableError):
            log.warning("reconcile failed", failures=self.queue.failures(key), **fields)
        else:
            # Not a response of the server, so a bug: log the traceback.
            log.error("reconcile failed unexpectedly", exc_info=error, **fields)

    def _recovered(self, key: Key, *, answered: bool) -> None:
        """Record that a key no longer fails because the server is unavailable."""
        if key not in self._unavailable:
            return
        self._unavailable.discard(key)
        if self._unavailable:
            return
        if answered:
            self._outages.recovered(self, self.controller.name)
        else:
            # It may have sent no request. If it did, the watch is about to deliver the result.
            self._outages.cleared(self)


def has_status_cause(error: ApiError, reason: str) -> bool:
    """Report whether the server gave a cause for an error, as apimachinery's HasStatusCause."""
    causes = (error.details or {}).get("causes") or ()
    return any(cause.get("reason") == reason for cause in causes)


def _cache_was_behind(error: Exception) -> bool:
    """Report whether objects changed or were deleted since they were read; a retry sees that."""
    if isinstance(error, Forbidden):
        return has_status_cause(error, NAMESPACE_TERMINATING)
    return isinstance(error, Conflict | NotFound)

"""What a controller is, and the loop that runs it: take a key, reconcile, look again when told.

A controller gets a key, never an event, so any number of events costs one reconcile, and whatever
was missed is made up for by the next one. Errors rise to the loop here, which brings the key back
after a delay that grows per key. `manager.py` starts and stops these loops together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, Protocol, TypeVar

from sully.client.informers.outages import Troubles, is_outage
from sully.client.transport import Key, UnreachableError, UnreadableError
from sully.machinery.errors import ApiError, Conflict, Forbidden, NotFound
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger
from sully.runtime.workqueue import QueueObserver, ShutDown, WorkQueue

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

log = get_logger("controllers")

TURN = 0.001
"""Seconds that a worker may go on without a pause while others wait for the loop."""


class Source(Protocol[T_co]):
    """Tells of changes: an informer, or a view that joins several."""

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[T_co], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the keys that each change touches; return how to stop that."""
        ...


class Once:
    """Keys that are to be looked at once, at the start: a source like an informer."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._keys = tuple(keys)

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[Key], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add all keys; there will be no more."""
        for key in self._keys:
            for wanted in to_keys(key):
                add(wanted)
        return lambda: None


@dataclass(frozen=True, slots=True)
class Watch(Generic[T]):
    """What wakes a controller, and which keys a changed object means."""

    source: Source[T]
    to_keys: Callable[[T], Iterable[Key]]


@dataclass(frozen=True, slots=True)
class Result:
    """When to look at a key again, if no event comes before."""

    requeue_after: timedelta | None = None
    back_off: bool = False
    """Look again after a delay that grows each time; for what sends no event when it is over."""


DONE = Result()
AGAIN = Result(back_off=True)


class Controller(Protocol):
    """Brings one aspect of the world to what the objects say, key by key."""

    name: str

    def watches(self) -> Iterable[Watch[Any]]:
        """Say what wakes the controller."""
        ...

    async def reconcile(self, key: Key) -> Result:
        """Look at a key and act; safe to run twice, and never for one key at the same time."""
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
        troubles: Troubles | None = None,
    ) -> None:
        self.controller = controller
        self.queue: WorkQueue[Key] = WorkQueue(clock, backoff=backoff, observer=observer)
        self._clock = clock
        self._workers = workers
        self._troubles = troubles or Troubles(clock)
        self._unanswered: set[Key] = set()
        """Keys that failed because the server was away; others may succeed without asking it."""
        self._stopping = False
        for watch in controller.watches():
            watch.source.enqueue(self.queue.add, watch.to_keys)

    async def run(self) -> None:
        """Work until `stop`."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._workers):
                tasks.create_task(self._work())

    def stop(self) -> None:
        """Let workers end what they are doing and take nothing more.

        What waits is dropped: whoever starts next sees every object anew.
        """
        self._stopping = True
        self.queue.shut_down()

    async def _work(self) -> None:
        began = self._clock.monotonic()
        while True:
            try:
                key = await self.queue.get()
            except ShutDown:
                return
            try:
                # A queue that was shut down still hands out what was ready.
                if not self._stopping:
                    await self._reconcile(key)
            finally:
                self.queue.done(key)
            # A store in memory answers without a pause, so a long queue would be worked off in one
            # go, with the server and all other controllers standing still.
            if self._clock.monotonic() - began >= TURN:
                await self._clock.sleep(0)
                began = self._clock.monotonic()

    async def _reconcile(self, key: Key) -> None:
        try:
            result = await self.controller.reconcile(key)
        except Exception as error:  # noqa: BLE001 - the one place where no error may end the loop
            self._failed(key, error)
            return
        self._recovered(key, answered=False)
        if result.back_off:
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
        if _lost_a_race(error):
            log.debug("reconcile overtaken", **fields)
        elif is_outage(error):
            self._unanswered.add(key)
            tell = log.warning if self._troubles.began(self, error) else log.debug
            tell("reconcile failed", failures=self.queue.failures(key), **fields)
        elif isinstance(error, ApiError | UnreachableError | UnreadableError):
            log.warning("reconcile failed", failures=self.queue.failures(key), **fields)
        else:
            # Not an answer of a server, so a mistake of ours: say where.
            log.error("reconcile broke", exc_info=error, **fields)

    def _recovered(self, key: Key, *, answered: bool) -> None:
        """Note that a key did not fail for want of a server, surely answered by one or not."""
        if key not in self._unanswered:
            return
        self._unanswered.discard(key)
        if self._unanswered:
            return
        if answered:
            self._troubles.over(self, self.controller.name)
        else:
            # It may have found nothing to ask. What it wrote, if it did, is about to be told.
            self._troubles.relieved(self)


def _lost_a_race(error: Exception) -> bool:
    """Say whether the world only moved on since the cache was read; the next look will see it."""
    if isinstance(error, Forbidden):
        causes = (error.details or {}).get("causes") or ()
        return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
    return isinstance(error, Conflict | NotFound)

"""The work queue of a controller, with the semantics of client-go: keys, not events.

A key that is added ten times while it is queued is returned once, and a key that is being processed
is never returned to a second worker: it is queued again when the first is done. So a burst of
events costs one reconcile, and a reconcile needs no lock.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, Protocol, TypeVar

from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock
from sully.runtime.tasks import wait_first

K = TypeVar("K", bound=Hashable)

TIMERS_KEPT = 64
"""Below so many, obsolete delays are left in the heap."""


class ShutDown(Exception):  # noqa: N818 - an ending, not an error
    """The queue was shut down and holds nothing more."""


class QueueObserver(Protocol):
    """Observes a queue; `metrics.py` has one."""

    def added(self) -> None:
        """Count a queued key."""
        ...

    def started(self, waited: float) -> None:
        """Observe how long a key was queued."""
        ...

    def finished(self, worked: float) -> None:
        """Observe how long a key was processed."""
        ...

    def retried(self) -> None:
        """Count a retry."""
        ...

    def observe(self, queue: Running) -> None:
        """Publish the waiting and unfinished work of a queue."""
        ...


class Running(Protocol):
    """Reports waiting and unfinished work; a queue is one."""

    def __len__(self) -> int:
        """Return how many keys are queued."""
        ...

    def unfinished(self) -> float:
        """Return the seconds spent so far on all keys that are being worked on."""
        ...

    def longest(self) -> float:
        """Return the seconds spent so far on the key that has been worked on longest."""
        ...


class WorkQueue(Generic[K]):
    """Returns keys, each to one worker at a time."""

    def __init__(
        self,
        clock: Clock,
        *,
        backoff: Backoff | None = None,
        observer: QueueObserver | None = None,
    ) -> None:
        self._clock = clock
        self._backoff = backoff or Backoff()
        self._observer = observer
        self._ready: deque[K] = deque()
        self._dirty: dict[K, float] = {}
        """Queued keys with the time they were queued."""
        self._working: dict[K, float] = {}
        self._due: dict[K, float] = {}
        self._timers: list[tuple[float, int, K]] = []
        self._order = count()
        self._failures: dict[K, int] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timekeeper: asyncio.Future[None] | None = None
        """The one waiter that sleeps until the next delayed key is due; the others only wait."""
        self._drained: list[asyncio.Future[None]] = []
        self._closed = False
        if observer is not None:
            observer.observe(self)

    def __len__(self) -> int:
        """Return how many keys are queued."""
        return len(self._ready)

    @property
    def delayed(self) -> int:
        """Return how many keys are delayed."""
        return len(self._due)

    def add(self, key: K) -> None:
        """Queue a key, once."""
        if self._closed or key in self._dirty:
            return
        self._dirty[key] = self._clock.monotonic()
        if key not in self._working:
            self._queue(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Add a key later. Of several times for one key the earliest counts."""
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.monotonic() + seconds
        if self._closed or due >= self._due.get(key, float("inf")):
            return
        self._due[key] = due
        if len(self._timers) > 2 * len(self._due) + TIMERS_KEPT:
            self._clear_timers()
        heappush(self._timers, (due, next(self._order), key))
        if self._timers[0][2] == key:
            # The timekeeper sleeps until a later time, or there is none.
            self._wake_timekeeper() or self._wake_waiter()

    def retry(self, key: K) -> float:
        """Add a key that failed, after a delay that grows with each failure; return the delay."""
        self._failures[key] = self._failures.get(key, 0) + 1
        delay = self._backoff.delay(self._failures[key])
        self.add_after(key, delay)
        if self._observer:
            self._observer.retried()
        return delay

    def forget(self, key: K) -> None:
        """Reset the backoff of a key."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """Return how often a key failed in a row."""
        return self._failures.get(key, 0)

    async def get(self) -> K:
        """Wait for a key and take it; `done` must be called for it.

        Raises `ShutDown` when there will be no more.
        """
        while True:
            self._release_due()
            if self._ready:
                return self._take()
            if self._closed:
                raise ShutDown
            await self._changed()

    def done(self, key: K) -> None:
        """Mark a key as processed; if it was added meanwhile, it is queued again."""
        worked = self._clock.monotonic() - self._working.pop(key)
        if self._observer:
            self._observer.finished(worked)
        if key in self._dirty:
            self._queue(key)
        self._notify_drained()

    def shut_down(self) -> None:
        """Accept nothing more and drop what is delayed; queued keys are still returned."""
        self._closed = True
        self._due.clear()
        self._timers.clear()
        self._wake_all()
        self._notify_drained()

    def unfinished(self) -> float:
        """Return the seconds spent so far on all keys that are being worked on."""
        now = self._clock.monotonic()
        return sum(now - since for since in self._working.values())

    def longest(self) -> float:
        """Return the seconds spent so far on the key that has been worked on longest."""
        now = self._clock.monotonic()
        return max((now - since for since in self._working.values()), default=0.0)

    async def drained(self) -> None:
        """Wait until nothing is queued or processed."""
        if self._ready or self._working:
            future = asyncio.get_running_loop().create_future()
            self._drained.append(future)
            await future

    def _queue(self, key: K) -> None:
        self._ready.append(key)
        if self._observer:
            self._observer.added()
        # The timekeeper last: a worker that takes a key no longer keeps the time.
        self._wake_waiter() or self._wake_timekeeper()

    def _take(self) -> K:
        key = self._ready.popleft()
        now = self._clock.monotonic()
        since = self._dirty.pop(key)
        self._working[key] = now
        if self._observer:
            self._observer.started(now - since)
        return key

    def _release_due(self) -> None:
        now = self._clock.monotonic()
        while self._timers and self._timers[0][0] <= now:
            due, _, key = heappop(self._timers)
            # A later entry of a key that got an earlier time, or was released by it.
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)

    def _clear_timers(self) -> None:
        """Drop the times of keys that got an earlier one: busy keys leave many behind."""
        self._timers = [timer for timer in self._timers if self._due.get(timer[2]) == timer[0]]
        heapify(self._timers)

    async def _changed(self) -> None:
        """Wait until a key is ready, or may be."""
        waiter = asyncio.get_running_loop().create_future()
        try:
            if self._timers and self._timekeeper is None:
                self._timekeeper = waiter
                pause = self._timers[0][0] - self._clock.monotonic()
                await wait_first(waiter, self._clock.sleep(pause))
            else:
                self._waiting.append(waiter)
                await waiter
        except asyncio.CancelledError:
            if self._timekeeper is waiter or (waiter.done() and not waiter.cancelled()):
                # Another waiter must keep the time, or take the key that this one was woken for.
                self._wake_all()
            raise
        finally:
            if self._timekeeper is waiter:
                self._timekeeper = None
            if waiter in self._waiting:
                self._waiting.remove(waiter)

    def _wake_waiter(self) -> bool:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return True
        return False

    def _wake_timekeeper(self) -> bool:
        """Wake it; from now on the next that waits keeps the time."""
        waiter, self._timekeeper = self._timekeeper, None
        if waiter is None or waiter.done():
            return False
        waiter.set_result(None)
        return True

    def _wake_all(self) -> None:
        self._wake_timekeeper()
        while self._wake_waiter():
            pass

    def _notify_drained(self) -> None:
        if not self._ready and not self._working:
            for future in self._drained:
                if not future.done():
                    future.set_result(None)
            self._drained.clear()

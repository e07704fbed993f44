"""The event log of one resource, and the cursors into it.

The log is shared: a watcher is a position, not a queue, so 200 watchers cost 200 integers and
a slow one holds nothing back. Positions count events since the process started, so compaction
moves the beginning of the log without touching any cursor.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import islice
from operator import attrgetter

from sully.store.base import Event, Subscription
from sully.store.errors import ClosedError, CompactedError

revision_of: Callable[[Event], int] = attrgetter("revision")
"""Events are in this order."""
TURN = 200
"""Waiters that are woken before other callbacks run."""


class EventLog:
    """The events of one resource, oldest first, and their waiters."""

    __slots__ = ("_waiting", "base", "events")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.base = 0
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def end(self) -> int:
        """Return the position of the next event."""
        return self.base + len(self.events)

    def position_after(self, revision: int) -> int:
        """Return the position of the first event that is newer than this revision."""
        return self.base + bisect_right(self.events, revision, key=revision_of)

    def since(self, position: int) -> list[Event]:
        """Return the events from this position on, which must not be compacted."""
        return self.events[position - self.base :]

    def drop(self, revision: int) -> list[Event]:
        """Forget the events up to and including this revision, and return them."""
        count = bisect_right(self.events, revision, key=revision_of)
        dropped = self.events[:count]
        del self.events[:count]
        self.base += count
        return dropped

    def forget(self) -> None:
        """Drop all events, and leave a gap: no cursor can continue."""
        self.base += len(self.events) + 1
        self.events.clear()

    def waiter(self) -> asyncio.Future[None]:
        """Return a future that the next `wake` completes."""
        # One per waiter: cancelling a task cancels the future it waits on, and a shared one
        # would take the other watchers with it.
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        return future

    def remove_waiter(self, waiter: asyncio.Future[None]) -> None:
        """Remove a waiter."""
        self._waiting.discard(waiter)

    def wake(self) -> None:
        """Wake all waiters."""
        waiting, self._waiting = self._waiting, set()
        if waiting:
            _wake_some(iter(waiting))


def _wake_some(waiting: Iterator[asyncio.Future[None]]) -> None:
    """Wake waiters in turns with everything else: each of them writes to a connection."""
    woken = list(islice(waiting, TURN))
    for future in woken:
        if not future.done():
            future.set_result(None)
    if len(woken) == TURN:
        asyncio.get_running_loop().call_soon(_wake_some, waiting)


class Horizon:
    """The revisions between which a store can answer, as all its cursors see them."""

    __slots__ = ("closed", "compacted", "revision")

    def __init__(self, revision: int, compacted: int) -> None:
        self.revision = revision
        self.compacted = compacted
        self.closed = False


class Cursor(Subscription):
    """A subscription as a position in an `EventLog`."""

    __slots__ = ("_closed", "_horizon", "_log", "_namespace", "_position", "_seen", "_waiter")

    def __init__(
        self, log: EventLog, horizon: Horizon, *, namespace: str | None, after: int
    ) -> None:
        self._log = log
        self._horizon = horizon
        self._namespace = namespace
        self._position = log.position_after(after)
        self._seen = after
        self._closed = False
        self._waiter: asyncio.Future[None] | None = None

    def take(self) -> list[Event]:
        """Return all events since the last call, oldest first; never wait."""
        if self._closed or self._horizon.closed:
            raise ClosedError("the subscription is closed")
        if self._position < self._log.base:
            raise CompactedError(self._seen, compacted=self._horizon.compacted)
        self._seen = self._horizon.revision
        events = self._log.since(self._position)
        if not events:
            # Called often, and mostly there is nothing.
            return events
        self._position += len(events)
        if self._namespace is None:
            return events
        return [event for event in events if event.record.key.namespace == self._namespace]

    async def wait(self) -> None:
        """Wait until `take` returns events or raises."""
        if self._position != self._log.end or self._closed or self._horizon.closed:
            return
        self._waiter = waiter = self._log.waiter()
        try:
            await waiter
        finally:
            self._log.remove_waiter(waiter)
            self._waiter = None

    @property
    def progress(self) -> int:
        """Return the newest revision up to which every event has been taken."""
        if self._position == self._log.end:
            return self._horizon.revision
        if self._position < self._log.base:
            return self._seen
        return self._log.events[self._position - self._log.base].revision - 1

    def wake(self) -> None:
        """End a `wait` early, though nothing happened."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        """End the subscription and wake its waiter."""
        self._closed = True
        self.wake()

"""Deletes Events after their time to live, as Kubernetes does with etcd leases.

An event expires when it was not written for that long; a repeated one is written again and stays.
It is part of the server, not a controller, as in Kubernetes. All events are listed once, at the
start; after that a round costs what was written since the last one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from sully.api.core.events import STORAGE
from sully.machinery.codec import from_json
from sully.machinery.timestamps import parse_time
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger
from sully.store.base import Delete, Event, Record, Store, StoreKey, Subscription
from sully.store.errors import CompactedError, ConflictError, StoreError

_log = get_logger("server")
LIFETIME = timedelta(hours=1)
"""As in Kubernetes."""
_LONGEST_ROUND = 60.0
_LATER = datetime.max.replace(tzinfo=UTC)
"""The time of an event without one: it expires an hour after the start."""
_AT_ONCE = 64
_TOGETHER = 1000
"""Events that are checked before yielding."""


class EventExpiry:
    """Deletes expired events of a store."""

    def __init__(self, store: Store, clock: Clock, lifetime: timedelta = LIFETIME) -> None:
        self._store = store
        self._clock = clock
        self._lifetime = lifetime
        self._start = store.revision
        # Revisions by time: what is not newer was written before.
        self._seen = deque([(clock.monotonic(), store.revision)])
        self._old = 0
        self._subscription: Subscription | None = None
        self._last: OrderedDict[StoreKey, int] = OrderedDict()
        """When each was last written, as a revision, in that order."""
        self._inherited: deque[tuple[datetime, StoreKey, int]] = deque()
        """When the events from before the start were written, in that order."""

    async def run(self) -> None:
        """Expire events until cancelled; a time to live of 0 keeps them indefinitely."""
        seconds = self._lifetime.total_seconds()
        while seconds > 0:
            try:
                await self.expire()
            except StoreError as error:
                # They may stay a little longer.
                _log.warning("failed to delete expired events", error=str(error))
            await self._clock.sleep(min(_LONGEST_ROUND, seconds / 10))

    async def expire(self) -> None:
        """Delete expired events."""
        self._look_back()
        await self._catch_up()
        # What cannot be deleted now is retried the next time.
        over = list(dict.fromkeys((*self._outlived(), *self._outdated())))
        for begin in range(0, len(over), _AT_ONCE):
            await asyncio.gather(*map(self._remove, over[begin : begin + _AT_ONCE]))

    async def _catch_up(self) -> None:
        """Apply what was written and deleted since the last call."""
        if self._subscription is not None:
            try:
                for event in self._subscription.take():
                    self._note(event)
                return
            except CompactedError:
                # The watch was compacted: list again.
                self._subscription.close()
                self._subscription = None
        await self._read_all()

    def _note(self, event: Event) -> None:
        key = event.record.key
        self._last.pop(key, None)
        if event.kind != "DELETED":
            self._last[key] = event.revision

    async def _read_all(self) -> None:
        page = await self._store.list(STORAGE)
        subscription = self._store.watch(STORAGE, after=page.revision)
        records = sorted(page.records, key=lambda record: record.revision)
        inherited: list[tuple[datetime, StoreKey, int]] = []
        for place, record in enumerate(records):
            if place % _TOGETHER == _TOGETHER - 1:
                await self._clock.sleep(0)
            if self._old < record.revision <= self._start:
                inherited.append((_written(record), record.key, record.revision))
        self._subscription = subscription
        self._last = OrderedDict((record.key, record.revision) for record in records)
        self._inherited = deque(sorted(inherited))

    def _look_back(self) -> None:
        now = self._clock.monotonic()
        self._seen.append((now, self._store.revision))
        while self._seen[0][0] <= now - self._lifetime.total_seconds():
            self._old = self._seen.popleft()[1]
        if self._old >= self._start:
            self._inherited.clear()

    def _outlived(self) -> Iterator[tuple[StoreKey, int]]:
        """Yield the events whose time to live has passed."""
        for key, revision in self._last.items():
            if revision > self._old:
                return
            yield key, revision

    def _outdated(self) -> Iterator[tuple[StoreKey, int]]:
        """Yield the expired events from before the start."""
        inherited, limit = self._inherited, self._clock.now() - self._lifetime
        while inherited and self._last.get(inherited[0][1]) != inherited[0][2]:
            # It was deleted or written again.
            inherited.popleft()
        for written, key, revision in inherited:
            if written > limit:
                return
            if self._last.get(key) == revision:
                yield key, revision

    async def _remove(self, event: tuple[StoreKey, int]) -> None:
        # It was written or deleted meanwhile.
        with suppress(ConflictError):
            await self._store.commit([Delete(*event)])


def _written(record: Record) -> datetime:
    """Return when the server last wrote an event; times in the event are chosen by clients."""
    metadata = from_json(record.value)["metadata"]
    managed: Iterable[dict[str, str]] = metadata.get("managedFields", ())
    times = [metadata.get("creationTimestamp"), *(entry.get("time") for entry in managed)]
    return max((parse_time(text) for text in times if text), default=_LATER)

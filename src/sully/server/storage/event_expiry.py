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
from sully.machinery.formats.timestamps import parse_time
from sully.machinery.serialization.codec import from_json
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger
from sully.store.base import Delete, Event, Record, Store, StoreKey, Subscription
from sully.store.errors import CompactedError, ConflictError, StoreError

_log = get_logger("server")
TTL = timedelta(hours=1)
"""The default of Kubernetes."""
_MAX_ROUND_SECONDS = 60.0
_NEVER_WRITTEN = datetime.max.replace(tzinfo=UTC)
"""The time of an event without one: it expires an hour after the start."""
_DELETE_BATCH = 64
_YIELD_EVERY = 1000
"""Events that are checked before yielding."""


class EventExpiry:
    """Deletes expired events of a store."""

    def __init__(self, store: Store, clock: Clock, ttl: timedelta = TTL) -> None:
        self._store = store
        self._clock = clock
        self._ttl = ttl
        self._start = store.revision
        # Revisions by time: records up to a revision were written before that time.
        self._checkpoints = deque([(clock.monotonic(), store.revision)])
        self._expired_revision = 0
        self._subscription: Subscription | None = None
        self._revisions: OrderedDict[StoreKey, int] = OrderedDict()
        """The revision of the last write of each event, oldest first."""
        self._initial: deque[tuple[datetime, StoreKey, int]] = deque()
        """When the events from before the start were written, oldest first."""

    async def run(self) -> None:
        """Expire events until cancelled; a time to live of 0 keeps them indefinitely."""
        seconds = self._ttl.total_seconds()
        while seconds > 0:
            try:
                await self.expire()
            except StoreError as error:
                # Retried in the next round.
                _log.warning("failed to delete expired events", error=str(error))
            await self._clock.sleep(min(_MAX_ROUND_SECONDS, seconds / 10))

    async def expire(self) -> None:
        """Delete expired events."""
        self._advance()
        await self._catch_up()
        # What cannot be deleted now is retried the next time.
        expired = list(dict.fromkeys((*self._expired(), *self._expired_initial())))
        for start in range(0, len(expired), _DELETE_BATCH):
            await asyncio.gather(*map(self._remove, expired[start : start + _DELETE_BATCH]))

    async def _catch_up(self) -> None:
        """Apply what was written and deleted since the last call."""
        if self._subscription is not None:
            try:
                for event in self._subscription.take():
                    self._apply(event)
                return
            except CompactedError:
                # The watch was compacted: list again.
                self._subscription.close()
                self._subscription = None
        await self._relist()

    def _apply(self, event: Event) -> None:
        key = event.record.key
        self._revisions.pop(key, None)
        if event.kind != "DELETED":
            self._revisions[key] = event.revision

    async def _relist(self) -> None:
        page = await self._store.list(STORAGE)
        subscription = self._store.watch(STORAGE, after=page.revision)
        records = sorted(page.records, key=lambda record: record.revision)
        initial: list[tuple[datetime, StoreKey, int]] = []
        for index, record in enumerate(records):
            if index % _YIELD_EVERY == _YIELD_EVERY - 1:
                await self._clock.sleep(0)
            if self._expired_revision < record.revision <= self._start:
                initial.append((_written(record), record.key, record.revision))
        self._subscription = subscription
        self._revisions = OrderedDict((record.key, record.revision) for record in records)
        self._initial = deque(sorted(initial))

    def _advance(self) -> None:
        now = self._clock.monotonic()
        self._checkpoints.append((now, self._store.revision))
        while self._checkpoints[0][0] <= now - self._ttl.total_seconds():
            self._expired_revision = self._checkpoints.popleft()[1]
        if self._expired_revision >= self._start:
            self._initial.clear()

    def _expired(self) -> Iterator[tuple[StoreKey, int]]:
        """Yield the events whose time to live has passed."""
        for key, revision in self._revisions.items():
            if revision > self._expired_revision:
                return
            yield key, revision

    def _expired_initial(self) -> Iterator[tuple[StoreKey, int]]:
        """Yield the expired events from before the start."""
        initial, limit = self._initial, self._clock.now() - self._ttl
        while initial and self._revisions.get(initial[0][1]) != initial[0][2]:
            # It was deleted or written again.
            initial.popleft()
        for written, key, revision in initial:
            if written > limit:
                return
            if self._revisions.get(key) == revision:
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
    return max((parse_time(text) for text in times if text), default=_NEVER_WRITTEN)

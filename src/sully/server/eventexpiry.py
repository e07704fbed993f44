"""Forgets events: they are news, and pile up for ever unless somebody takes them away.

An event goes when nobody has written it for so long; a repeated one is written again and so stays.
Kubernetes lets its store do that, so no controller may: on another server it is that server's
business. `app.py` runs one of these per server, beside the `Compactor`, which forgets states.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from sully.api.core.events import STORAGE
from sully.machinery.codec import from_json
from sully.machinery.timestamps import parse_time
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger
from sully.store.base import Delete, Key, Record, Store
from sully.store.errors import ConflictError, StoreError

_log = get_logger("server")
LIFETIME = timedelta(hours=1)
"""As in Kubernetes."""
_LONGEST_ROUND = 60.0
_LATER = datetime.max.replace(tzinfo=UTC)
"""When something was written that does not say so: it goes an hour after the start."""
_AT_ONCE = 64
_TOGETHER = 1000
"""Events looked at before others get a turn."""


class EventExpiry:
    """Deletes events of a store that were last written so long ago."""

    def __init__(self, store: Store, clock: Clock, lifetime: timedelta = LIFETIME) -> None:
        self._store = store
        self._clock = clock
        self._lifetime = lifetime
        self._start = store.revision
        # When which revision was the newest: what is not newer was last written before.
        self._seen = deque([(clock.monotonic(), store.revision)])
        self._old = 0
        self._inherited: dict[Key, datetime] = {}
        """When those were written that were there before us."""

    async def run(self) -> None:
        """Look again and again; a lifetime of nothing means for ever."""
        seconds = self._lifetime.total_seconds()
        while seconds > 0:
            try:
                await self.expire()
            except StoreError as error:
                # Nobody is hurt if they stay a little longer.
                _log.warning("events could not be forgotten", error=str(error))
            await self._clock.sleep(min(_LONGEST_ROUND, seconds / 10))

    async def expire(self) -> None:
        """Delete the events whose time is over."""
        self._look_back()
        page = await self._store.list(STORAGE)
        over: list[Record] = []
        for place, record in enumerate(page.records):
            if place % _TOGETHER == _TOGETHER - 1:
                await self._clock.sleep(0)
            if self._is_over(record):
                over.append(record)
        for begin in range(0, len(over), _AT_ONCE):
            await asyncio.gather(*map(self._remove, over[begin : begin + _AT_ONCE]))

    def _look_back(self) -> None:
        now = self._clock.monotonic()
        self._seen.append((now, self._store.revision))
        while self._seen[0][0] <= now - self._lifetime.total_seconds():
            self._old = self._seen.popleft()[1]
        if self._old >= self._start:
            self._inherited.clear()

    def _is_over(self, record: Record) -> bool:
        if record.revision <= self._old:
            return True
        return record.revision <= self._start and self._is_outdated(record)

    def _is_outdated(self, record: Record) -> bool:
        """Say whether the time is over of an event that was there before us."""
        written = self._inherited.get(record.key)
        if written is None:
            written = self._inherited[record.key] = _written(record)
        return written <= self._clock.now() - self._lifetime

    async def _remove(self, record: Record) -> None:
        # Whoever wrote it meanwhile, or deleted it, was quicker.
        with suppress(ConflictError):
            await self._store.commit([Delete(record.key, record.revision)])


def _written(record: Record) -> datetime:
    """Return when the server last wrote an event; what clients say in it can be any time."""
    metadata = from_json(record.value)["metadata"]
    managed: Iterable[dict[str, str]] = metadata.get("managedFields", ())
    times = [metadata.get("creationTimestamp"), *(each.get("time") for each in managed)]
    return max((parse_time(each) for each in times if each), default=_LATER)

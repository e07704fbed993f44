"""Records Events: what a controller did to an object, and why.

Recording never blocks and never fails, because no work may depend on it. A repeated event
increments a count. Events expire: what must be kept is an object of its own.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from datetime import datetime
from typing import Any, Literal

import msgspec

from sully.client.objects import key_of, uid_of, version_of
from sully.client.transactions import Writes, transactional
from sully.client.transport import TRANSIENT, Key, Kind, Transport, UnreachableError
from sully.machinery.errors import (
    AlreadyExists,
    ApiError,
    NotFound,
)
from sully.machinery.formats.timestamps import format_time
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger

log = get_logger("client")

EVENTS: Kind[dict[str, Any]] = Kind("", "v1", "events", "Event", dict)
MAX_QUEUED = 1000
"""How many events are queued; beyond this the oldest are dropped."""
MAX_CACHED = 4096
"""How many written events are cached, to increment their counts."""
LEAST_TOGETHER = 2
"""How many events a transaction is worth for."""
MAX_WRITES = 16
"""How many events are written at the same time."""
ATTEMPTS = 8
MAX_MESSAGE = 1024


class Reference(msgspec.Struct, frozen=True):
    """The object that an event is about."""

    api_version: str
    kind: str
    key: Key
    uid: str = ""
    resource_version: str = ""

    def to_wire(self) -> dict[str, str]:
        """Return the `involvedObject`."""
        fields = {
            "kind": self.kind,
            "namespace": self.key.namespace,
            "name": self.key.name,
            "uid": self.uid,
            "apiVersion": self.api_version,
            "resourceVersion": self.resource_version,
        }
        return {name: value for name, value in fields.items() if value}


def reference(kind: Kind[Any], obj: object) -> Reference:
    """Refer to an object that was read as a kind."""
    return Reference(kind.api_version, kind.kind, key_of(obj), uid_of(obj), version_of(obj))


class _Event(msgspec.Struct, frozen=True):
    about: Reference
    type: str
    reason: str
    message: str
    at: datetime
    action: str = ""
    related: Reference | None = None

    @property
    def identity(self) -> tuple[object, ...]:
        # Without the resourceVersion: the same event of a changed object is a repetition.
        about = self.about
        same = about.kind, about.key, about.uid, self.type, self.reason, self.message
        # About another object: a new event for each version of this one.
        return same if self.related is None else (*same, self.related, about.resource_version)

    @property
    def namespace(self) -> str:
        # Events have a namespace even if what they are about has none.
        return self.about.key.namespace or "default"


class _Written(msgspec.Struct):
    name: str
    count: int


class EventRecorder:
    """Writes events in the name of one component."""

    def __init__(
        self,
        transport: Transport,
        component: str,
        *,
        clock: Clock,
        host: str = "",
        backoff: Backoff | None = None,
    ) -> None:
        self._transport = transport
        self._transactional = transactional(transport)
        self._source = {"component": component} | ({"host": host} if host else {})
        self._clock = clock
        self._backoff = backoff or Backoff(base=0.5, cap=10.0, jitter=1.0)
        self._queue: deque[_Event] = deque()
        self._queued = asyncio.Event()
        self._written: OrderedDict[tuple[object, ...], _Written] = OrderedDict()
        self._last_name = 0
        self._dropped = 0

    def event(
        self,
        about: Reference,
        type_: Literal["Normal", "Warning"],
        reason: str,
        message: str,
        *,
        action: str = "",
        related: Reference | None = None,
    ) -> None:
        """Record an event about an object; `action` and `related` as in events.k8s.io."""
        if len(self._queue) >= MAX_QUEUED:
            self._drop(self._queue.popleft())
        text, now = message[:MAX_MESSAGE], self._clock.now()
        event = _Event(about, type_, reason, text, now, action, related)
        self._queue.append(event)
        self._queued.set()

    async def run(self) -> None:
        """Write events until cancelled."""
        while True:
            await self._queued.wait()
            self._queued.clear()
            await self.flush()

    async def flush(self) -> None:
        """Write all events that wait."""
        while self._queue:
            batch = self._next_batch()
            if not await self._create_all(batch):
                # At the same time, because concurrent writes share one flush of the store.
                await asyncio.gather(*map(self._write_with_retries, batch))
        if self._dropped:
            log.warning("events dropped", count=self._dropped)
            self._dropped = 0

    def _next_batch(self) -> list[_Event]:
        """Take events from the queue, up to one that repeats another: it only counts that one."""
        batch: dict[tuple[object, ...], _Event] = {}
        while self._queue and len(batch) < MAX_WRITES and self._queue[0].identity not in batch:
            event = self._queue.popleft()
            batch[event.identity] = event
        return list(batch.values())

    def _drop(self, event: _Event) -> None:
        # Log the first and the total: a line for each would be a flood of its own.
        if not self._dropped:
            log.warning("event dropped", about=str(event.about.key), reason=event.reason)
        self._dropped += 1

    async def _create_all(self, batch: list[_Event]) -> bool:
        """Create new events in one transaction; return whether that was possible."""
        is_new = all(event.identity not in self._written for event in batch)
        if self._transactional is None or len(batch) < LEAST_TOGETHER or not is_new:
            return False
        writes, names = Writes(), list(map(self._new_name, batch))
        for event, name in zip(batch, names, strict=True):
            await writes.create(EVENTS, self._body(event, name))
        try:
            await self._transactional.commit(writes.calls)
        except (ApiError, UnreachableError):
            # It may be one of them, such as one of a terminating namespace.
            return False
        for event, name in zip(batch, names, strict=True):
            self._cache(event, _Written(name, 1))
        return True

    async def _write_with_retries(self, event: _Event) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._write(event)
                return
            except TRANSIENT as error:
                if attempt < ATTEMPTS:
                    await self._clock.sleep(self._backoff.delay(attempt))
                    continue
                self._give_up(event, error)
            except ApiError as error:
                # For example a terminating namespace: a retry does not help.
                self._give_up(event, error)
                return

    def _give_up(self, event: _Event, error: Exception) -> None:
        log.warning(
            "event not written", about=str(event.about.key), reason=event.reason, error=str(error)
        )

    async def _write(self, event: _Event) -> None:
        written = self._written.get(event.identity)
        if written is not None:
            try:
                await self._increment(event, written)
                return
            except NotFound:
                # It expired or was deleted: create a new one.
                del self._written[event.identity]
        self._cache(event, _Written(await self._create(event), 1))

    async def _create(self, event: _Event) -> str:
        while True:
            name = self._new_name(event)
            try:
                await self._transport.create(EVENTS, self._body(event, name))
            except AlreadyExists:
                # Another component recorded an event in the same moment.
                continue
            return name

    async def _increment(self, event: _Event, written: _Written) -> None:
        count = written.count + 1
        change = {"count": count, "lastTimestamp": format_time(event.at)}
        await self._transport.patch(EVENTS, Key(event.namespace, written.name), change)
        written.count = count
        self._written.move_to_end(event.identity)

    def _cache(self, event: _Event, written: _Written) -> None:
        self._written[event.identity] = written
        if len(self._written) > MAX_CACHED:
            self._written.popitem(last=False)

    def _new_name(self, event: _Event) -> str:
        # As client-go names them: after the object and the time, which must differ.
        self._last_name = max(self._last_name + 1, int(event.at.timestamp() * 1_000_000_000))
        return f"{event.about.key.name}.{self._last_name:x}"

    def _body(self, event: _Event, name: str) -> dict[str, Any]:
        body: dict[str, Any] = {
            "metadata": {"name": name, "namespace": event.namespace},
            "involvedObject": event.about.to_wire(),
            "reason": event.reason,
            "message": event.message,
            "source": self._source,
            "firstTimestamp": format_time(event.at),
            "lastTimestamp": format_time(event.at),
            "count": 1,
            "type": event.type,
            "reportingComponent": self._source["component"],
            "reportingInstance": self._source.get("host", ""),
        }
        body |= {"action": event.action} if event.action else {}
        return body | ({"related": event.related.to_wire()} if event.related else {})

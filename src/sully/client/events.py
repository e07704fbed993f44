"""Events for people: what a controller did to an object, and why.

Recording never waits and never fails, because no work should depend on being told of. The same
thing said again raises a count instead of adding an event. Events are hints that expire, not
memory: what must be kept is an object of its own.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sully.client.objects import key_of, uid_of, version_of
from sully.client.transport import TRANSIENT, Key, Kind, Transport
from sully.machinery.errors import (
    AlreadyExists,
    ApiError,
    NotFound,
)
from sully.machinery.timestamps import format_time
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger

log = get_logger("client")

EVENTS: Kind[dict[str, Any]] = Kind("", "v1", "events", "Event", dict)
WAITING = 1000
"""How many events wait to be written; beyond this the oldest are dropped."""
REMEMBERED = 4096
"""How many written events are remembered, to count them on."""
TRIES = 8
MAX_MESSAGE = 1024


@dataclass(frozen=True, slots=True)
class Reference:
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


@dataclass(frozen=True, slots=True)
class _Said:
    about: Reference
    type: str
    reason: str
    message: str
    at: datetime
    action: str = ""
    related: Reference | None = None

    @property
    def sameness(self) -> tuple[object, ...]:
        # Not the version: an object that changes in between had the same happen to it twice.
        about = self.about
        same = about.kind, about.key, about.uid, self.type, self.reason, self.message
        # Done to another object because of this one: told anew for each state of this one.
        return same if self.related is None else (*same, self.related, about.resource_version)

    @property
    def namespace(self) -> str:
        # Events have a namespace even if what they are about has none.
        return self.about.key.namespace or "default"


@dataclass(slots=True)
class _Written:
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
        self._source = {"component": component} | ({"host": host} if host else {})
        self._clock = clock
        self._backoff = backoff or Backoff(base=0.5, cap=10.0, jitter=1.0)
        self._waiting: deque[_Said] = deque()
        self._news = asyncio.Event()
        self._written: OrderedDict[tuple[object, ...], _Written] = OrderedDict()
        self._last_name = 0
        self._lost = 0

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
        """Say what happened to an object, and where readers expect it, what was done to which."""
        if len(self._waiting) >= WAITING:
            self._drop(self._waiting.popleft())
        text, now = message[:MAX_MESSAGE], self._clock.now()
        said = _Said(about, type_, reason, text, now, action, related)
        self._waiting.append(said)
        self._news.set()

    async def run(self) -> None:
        """Write events until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            await self.flush()

    async def flush(self) -> None:
        """Write all events that wait."""
        while self._waiting:
            await self._write_patiently(self._waiting.popleft())
        if self._lost:
            log.warning("events dropped in all", count=self._lost)
            self._lost = 0

    def _drop(self, said: _Said) -> None:
        # Of a storm the first and the sum are told: a line for each would be a storm of its own.
        if not self._lost:
            log.warning("event dropped", about=str(said.about.key), reason=said.reason)
        self._lost += 1

    async def _write_patiently(self, said: _Said) -> None:
        for tries in range(1, TRIES + 1):
            try:
                await self._write(said)
                return
            except TRANSIENT as error:
                if tries < TRIES:
                    await self._clock.sleep(self._backoff.delay(tries))
                    continue
                self._give_up(said, error)
            except ApiError as error:
                # A namespace that goes away takes no events; asking again changes nothing.
                self._give_up(said, error)
                return

    def _give_up(self, said: _Said, error: Exception) -> None:
        log.warning(
            "event not written", about=str(said.about.key), reason=said.reason, error=str(error)
        )

    async def _write(self, said: _Said) -> None:
        written = self._written.get(said.sameness)
        if written is not None:
            try:
                await self._count_on(said, written)
                return
            except NotFound:
                # It expired, or someone cleaned up: the story begins anew.
                del self._written[said.sameness]
        self._remember(said, _Written(await self._create(said), 1))

    async def _create(self, said: _Said) -> str:
        while True:
            name = self._new_name(said)
            try:
                await self._transport.create(EVENTS, self._body(said, name))
            except AlreadyExists:
                # Another component said something about the object in the same moment.
                continue
            return name

    async def _count_on(self, said: _Said, written: _Written) -> None:
        count = written.count + 1
        change = {"count": count, "lastTimestamp": format_time(said.at)}
        await self._transport.patch(EVENTS, Key(said.namespace, written.name), change)
        written.count = count
        self._written.move_to_end(said.sameness)

    def _remember(self, said: _Said, written: _Written) -> None:
        self._written[said.sameness] = written
        if len(self._written) > REMEMBERED:
            self._written.popitem(last=False)

    def _new_name(self, said: _Said) -> str:
        # As others name them: after the object and the moment. Two in one moment must differ.
        self._last_name = max(self._last_name + 1, int(said.at.timestamp() * 1_000_000_000))
        return f"{said.about.key.name}.{self._last_name:x}"

    def _body(self, said: _Said, name: str) -> dict[str, Any]:
        body: dict[str, Any] = {
            "metadata": {"name": name, "namespace": said.namespace},
            "involvedObject": said.about.to_wire(),
            "reason": said.reason,
            "message": said.message,
            "source": self._source,
            "firstTimestamp": format_time(said.at),
            "lastTimestamp": format_time(said.at),
            "count": 1,
            "type": said.type,
            "reportingComponent": self._source["component"],
            "reportingInstance": self._source.get("host", ""),
        }
        body |= {"action": said.action} if said.action else {}
        return body | ({"related": said.related.to_wire()} if said.related else {})

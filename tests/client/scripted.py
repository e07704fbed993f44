"""A foreign API server as a script: what it lists and what its watches bring, step by step.

It stands for servers that misbehave on purpose (410, broken connections, watches that end at
once). It answers only `list` and `watch`: all that a reflector asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sully.client.options import DEFAULT_LIST, DEFAULT_WATCH, ListOptions, WatchOptions
from sully.client.transport import Kind, Page, UnreachableError, WatchEvent
from sully.machinery.errors import Expired
from sully.machinery.meta import ObjectMeta, Wire


class Thing(Wire, frozen=True, kw_only=True):
    """An object with nothing but a colour."""

    metadata: ObjectMeta
    color: str = ""


THINGS = Kind("example.dev", "v1", "things", "Thing", Thing)


def thing(name: str, version: int, color: str = "", uid: str = "") -> Thing:
    metadata = ObjectMeta(
        name=name, namespace="default", uid=uid or f"uid-{name}", resource_version=str(version)
    )
    return Thing(metadata=metadata, color=color)


def added(obj: Thing) -> WatchEvent[Thing]:
    return WatchEvent("ADDED", obj, obj.metadata.resource_version)


def modified(obj: Thing) -> WatchEvent[Thing]:
    return WatchEvent("MODIFIED", obj, obj.metadata.resource_version)


def deleted(obj: Thing) -> WatchEvent[Thing]:
    return WatchEvent("DELETED", obj, obj.metadata.resource_version)


def bookmark(version: int) -> WatchEvent[Thing]:
    return WatchEvent("BOOKMARK", None, str(version))


def after(events: Iterable[WatchEvent[Thing]]) -> dict[str, Thing]:
    """Return what is there once all this has happened, the last that came last."""
    result: dict[str, Thing] = {}
    for event in events:
        assert event.object is not None
        name = event.object.metadata.name
        result.pop(name, None)
        if event.type != "DELETED":
            result[name] = event.object
    return result


def page(*items: Thing, version: int, more: str = "") -> Page[Thing]:
    return Page(items, str(version), more)


Step = WatchEvent[Thing] | Exception
PartialTransport: Any = object
"""The base of transports that have only the methods that a test needs."""


@dataclass
class ScriptedTransport(PartialTransport):
    """Answers each list and each watch with the next part of its script.

    A watch without a script stays open without events; `quiet` is set when one is reached.
    """

    lists: Sequence[Page[Thing] | Exception]
    watches: Sequence[Iterable[Step]] = ()
    listed: list[ListOptions] = field(default_factory=list)
    watched: list[WatchOptions] = field(default_factory=list)
    quiet: asyncio.Event = field(default_factory=asyncio.Event)
    closed: int = 0

    async def list(
        self, kind: Kind[Any], namespace: str = "", options: ListOptions = DEFAULT_LIST
    ) -> Page[Any]:
        self.listed.append(options)
        answer = self.lists[len(self.listed) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def watch(
        self, kind: Kind[Any], namespace: str = "", options: WatchOptions = DEFAULT_WATCH
    ) -> AsyncGenerator[WatchEvent[Any], None]:
        self.watched.append(options)
        try:
            if len(self.watched) > len(self.watches):
                self.quiet.set()
                await asyncio.Event().wait()
            for step in self.watches[len(self.watched) - 1]:
                if isinstance(step, Exception):
                    raise step
                yield step
        finally:
            self.closed += 1


Interruption = Literal["end", "break", "gone", "bookmark"]


class LoggedServer:
    """A server with a history, whose watches are interrupted on demand.

    `plan` maps the number of events a watch may deliver before something happens; each entry is
    used once. After a "gone" the server has forgotten all it sent before.
    """

    def __init__(self, history: Sequence[WatchEvent[Thing]], plan: Sequence[tuple[int, str]]):
        self.history = list(history)
        self.plan = list(plan)
        self.forgotten = 0
        self.quiet = asyncio.Event()

    @property
    def version(self) -> int:
        return len(self.history)

    def state(self, version: int) -> dict[str, Thing]:
        return after(self.history[:version])

    async def list(
        self, kind: Kind[Any], namespace: str = "", options: ListOptions = DEFAULT_LIST
    ) -> Page[Any]:
        # The first list sees an empty store: all history comes through watches and relists.
        version = self.forgotten
        return Page(list(self.state(version).values()), str(version))

    async def watch(
        self, kind: Kind[Any], namespace: str = "", options: WatchOptions = DEFAULT_WATCH
    ) -> AsyncGenerator[WatchEvent[Any], None]:
        start = int(options.resource_version)
        if start < self.forgotten:
            raise Expired("too old resource version")
        room, how = self.plan.pop(0) if self.plan else (self.version, "quiet")
        for event in self.history[start : start + room]:
            yield event
        reported = min(start + room, self.version)
        match how:
            case "bookmark":
                yield bookmark(reported)
            case "break":
                raise UnreachableError("connection reset")
            case "gone":
                # Everything up to a later point is compacted: what lies between is only listed.
                self.forgotten = min(reported + 2, self.version)
                raise Expired("too old resource version")
            case "quiet":
                self.quiet.set()
                await asyncio.Event().wait()

"""Watches that move from replica to replica, and must deliver the same events on each.

Several of them watch each kind, each in its own order of replicas. Every one must get every change
once and in order, so all must have the same list in the end; the first to get a change passes it to
the ledger.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from kills.fleet import Obj
from replicas.clients import PAUSE_SECONDS, TRY_ANOTHER, Clients
from sully.client.options import WatchOptions
from sully.client.transport import Kind, WatchEvent
from sully.machinery.errors import Gone

STAY_SECONDS = (2.0, 8.0)
"""How long a watch stays at one replica, at the most; shorter where that one does not answer."""
Saw = Callable[[str, Obj], None]
Change = tuple[int, str, str]
"""The version, the type of the event, the name."""


@dataclass(slots=True)
class WatchHistory:
    """All changes of the objects of a kind, as several watches deliver them."""

    kind: Kind[Obj]
    namespace: str
    saw: Saw
    begun: int = 0
    reported: int = 0
    """The version of the newest change that the ledger got."""
    last: int = 0
    """The version up to which the watches are compared."""
    watches: list[Watch] = field(default_factory=list)

    async def begin(self, clients: Clients, watches: int) -> None:
        """List the existing objects and start the watches from there."""
        page = await clients.call(lambda api: api.list(self.kind, self.namespace))
        self.begun = self.reported = int(page.resource_version)
        for item in page.items:
            self.saw("ADDED", item)
        self.watches = [Watch(self, clients, self.begun) for _ in range(watches)]

    def take(self, version: int, event: WatchEvent[Obj]) -> None:
        """Pass on a change once; other watches deliver it again."""
        if version > self.reported and event.object is not None:
            self.reported = version
            self.saw(event.type, event.object)

    def problems(self) -> list[str]:
        """Return how the watches differ; they must have reached the same version."""
        texts = [text for watch in self.watches for text in watch.problems]
        first, *others = (watch.until(self.last) for watch in self.watches)
        for number, other in enumerate(others, 1):
            if first != other:
                missing = sorted(set(first) ^ set(other))[:3]
                name = f"watches 0 and {number} of {self.kind.plural}"
                texts.append(f"{name} delivered different events: {missing or 'another order'}")
        return texts


@dataclass(slots=True)
class Watch:
    """A watch that moves between replicas."""

    history: WatchHistory
    clients: Clients
    version: int
    changes: list[Change] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    moves: int = 0

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                async with asyncio.timeout(self.clients.rng.uniform(*STAY_SECONDS)):
                    await self._follow()
            except Gone as error:
                self.problems.append(f"a watch of {self.history.kind.plural} has a gap: {error}")
                return
            except TRY_ANOTHER:
                await asyncio.sleep(PAUSE_SECONDS)
            self.moves += 1

    async def _follow(self) -> None:
        options = WatchOptions(resource_version=str(self.version))
        watch = self.clients.any().watch(self.history.kind, self.history.namespace, options)
        async with aclosing(watch) as events:
            async for event in events:
                self.take(event)

    def take(self, event: WatchEvent[Obj]) -> None:
        """Note one event."""
        version = int(event.resource_version)
        if event.object is None:
            self.version = max(self.version, version)
            return
        change = (version, event.type, event.object["metadata"]["name"])
        # Each of these objects is changed alone, so no two changes share a version.
        if version <= self.version:
            self.problems.append(f"received {change} after version {self.version}")
            return
        self.version = version
        self.changes.append(change)
        self.history.take(version, event)

    def until(self, last: int) -> list[Change]:
        """Return what was reported up to a version."""
        return [change for change in self.changes if change[0] <= last]

    def state(self, last: int) -> dict[str, int]:
        """Return the versions of the objects that existed at a version, by name."""
        versions: dict[str, int] = {}
        for version, event_type, name in self.until(last):
            if event_type == "DELETED":
                versions.pop(name, None)
            else:
                versions[name] = version
        return versions

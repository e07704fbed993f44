"""Watches that wander from replica to replica, and must tell the same story wherever they are.

Several of them follow each kind, each on its own way. Every one must get every change once and in
order, so all must have the same list in the end, and the first to tell of a change feeds the
ledger.
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
"""The version, what happened, the name."""


@dataclass(slots=True)
class Story:
    """A kind and all that happened to its objects, as several watches tell it."""

    kind: Kind[Obj]
    namespace: str
    saw: Saw
    begun: int = 0
    told: int = 0
    """The version of the newest change that the ledger knows."""
    last: int = 0
    """The version up to which the watches are compared."""
    watches: list[Watch] = field(default_factory=list)

    async def begin(self, clients: Clients, watches: int) -> None:
        """Begin with what there is now."""
        page = await clients.ask(lambda api: api.list(self.kind, self.namespace))
        self.begun = self.told = int(page.resource_version)
        for item in page.items:
            self.saw("ADDED", item)
        self.watches = [Watch(self, clients, self.begun) for _ in range(watches)]

    def take(self, version: int, event: WatchEvent[Obj]) -> None:
        """Hear of a change; the others tell of it again."""
        if version > self.told and event.object is not None:
            self.told = version
            self.saw(event.type, event.object)

    def problems(self) -> list[str]:
        """Return how the watches contradict each other; they must have come to the same end."""
        found = [text for each in self.watches for text in each.problems]
        first, *others = (each.until(self.last) for each in self.watches)
        for number, other in enumerate(others, 1):
            if first != other:
                missing = sorted(set(first) ^ set(other))[:3]
                name = f"watches 0 and {number} of {self.kind.plural}"
                found.append(f"{name} tell different stories: {missing or 'another order'}")
        return found


@dataclass(slots=True)
class Watch:
    """One that wanders."""

    story: Story
    clients: Clients
    version: int
    changes: list[Change] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    moves: int = 0

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                async with asyncio.timeout(self.clients.chance.uniform(*STAY_SECONDS)):
                    await self._follow()
            except Gone as error:
                self.problems.append(f"a watch of {self.story.kind.plural} has a gap: {error}")
                return
            except TRY_ANOTHER:
                await asyncio.sleep(PAUSE_SECONDS)
            self.moves += 1

    async def _follow(self) -> None:
        options = WatchOptions(resource_version=str(self.version))
        watch = self.clients.any().watch(self.story.kind, self.story.namespace, options)
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
            self.problems.append(f"told of {change} after version {self.version}")
            return
        self.version = version
        self.changes.append(change)
        self.story.take(version, event)

    def until(self, last: int) -> list[Change]:
        """Return what was told up to a version."""
        return [change for change in self.changes if change[0] <= last]

    def state(self, last: int) -> dict[str, int]:
        """Return which objects there were at a version, with their own, as far as was told."""
        found: dict[str, int] = {}
        for version, happened, name in self.until(last):
            if happened == "DELETED":
                found.pop(name, None)
            else:
                found[name] = version
        return found

"""Counters that show whether a read can be older than what was acknowledged before it.

Each counter has one writer, who counts on only when the last number was acknowledged by some
replica. Readers ask any replica, without a version: what they get must be at least what had been
acknowledged, or read by anyone, before they asked.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial

from kills.fleet import Obj
from replicas.clients import Clients
from replicas.work import CONFIG_MAPS, ROOM
from sully.client.http.transport import HttpTransport
from sully.client.transport import Key
from sully.machinery.errors import Conflict

EVERY_SECONDS = 0.1


def counter(name: str, number: int) -> Obj:
    """Return a counter that shows a number."""
    return {"metadata": {"namespace": ROOM, "name": name}, "data": {"n": str(number)}}


def shown(obj: Obj) -> int:
    """Return the number that a counter shows."""
    return int(obj["data"]["n"])


@dataclass(slots=True)
class Counter:
    """One counter, and what is known of it."""

    name: str
    acknowledged: int = 0
    """The newest number that its writer was told is there, or that anyone has read."""
    written: int = 0
    reads: int = 0
    versions: set[int] = field(default_factory=set)
    """Of the acknowledged writes."""
    problems: list[str] = field(default_factory=list)

    @property
    def key(self) -> Key:
        """Return where it lies."""
        return Key(ROOM, self.name)

    def read(self, floor: int, number: int) -> None:
        """Judge what a read showed that began when `floor` was known."""
        self.reads += 1
        if number < floor:
            self.problems.append(f"{self.name} showed {number} after {floor} was acknowledged")
        self.acknowledged = max(self.acknowledged, number)

    async def begin(self, clients: Clients) -> None:
        """Make it."""
        await clients.make(CONFIG_MAPS, counter(self.name, 0))

    async def count(self, clients: Clients) -> None:
        """Count on until cancelled."""
        number = 0
        while True:
            number += 1
            await self._write(clients, number)
            self.written = number
            self.acknowledged = max(self.acknowledged, number)
            await asyncio.sleep(EVERY_SECONDS)

    async def _write(self, clients: Clients, number: int) -> None:
        """Write the next number once, however often an answer is lost."""
        while True:
            before = await clients.ask(self._get)
            found = shown(before)
            if found == number:
                return
            if found != number - 1:
                self.problems.append(f"{self.name} is at {found}, its writer at {number}")
                return
            wanted = before | {"data": {"n": str(number)}}
            try:
                written = await clients.ask(partial(_replace, wanted))
            except Conflict:
                # Perhaps by a try of our own whose answer was lost: what is there now tells.
                continue
            self.versions.add(int(written["metadata"]["resourceVersion"]))
            return

    async def watch_over(self, clients: Clients) -> None:
        """Read it at any replica until cancelled."""
        while True:
            await clients.ask(clients.chance.choice((self._look, self._look_in_list)))
            await asyncio.sleep(EVERY_SECONDS)

    async def _look(self, api: HttpTransport) -> None:
        floor = self.acknowledged
        self.read(floor, shown(await self._get(api)))

    async def _look_in_list(self, api: HttpTransport) -> None:
        floor = self.acknowledged
        page = await api.list(CONFIG_MAPS, ROOM)
        found = {item["metadata"]["name"]: item for item in page.items}
        self.read(floor, shown(found[self.name]))

    async def _get(self, api: HttpTransport) -> Obj:
        return await api.get(CONFIG_MAPS, self.key)


async def _replace(wanted: Obj, api: HttpTransport) -> Obj:
    return await api.update(CONFIG_MAPS, wanted)

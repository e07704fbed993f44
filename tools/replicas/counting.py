"""Counters that show whether a read can be older than what was acknowledged before it.

Each counter has one writer, which continues only when the last number was acknowledged by some
replica. Readers read from any replica, without a version: the result must be at least what had
been acknowledged, or read by any client, before the request.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial

from kills.fleet import Obj
from replicas.clients import Clients
from replicas.work import CONFIG_MAPS, NAMESPACE
from sully.client.http.transport import HttpTransport
from sully.client.transport import Key
from sully.machinery.errors import Conflict

EVERY_SECONDS = 0.1


def counter(name: str, number: int) -> Obj:
    """Return a counter that shows a number."""
    return {"metadata": {"namespace": NAMESPACE, "name": name}, "data": {"n": str(number)}}


def shown(obj: Obj) -> int:
    """Return the number that a counter shows."""
    return int(obj["data"]["n"])


@dataclass(slots=True)
class Counter:
    """One counter, and its acknowledged state."""

    name: str
    acknowledged: int = 0
    """The newest number that was acknowledged or read."""
    written: int = 0
    reads: int = 0
    versions: set[int] = field(default_factory=set)
    """Of the acknowledged writes."""
    problems: list[str] = field(default_factory=list)

    @property
    def key(self) -> Key:
        """Return its namespace and name."""
        return Key(NAMESPACE, self.name)

    def read(self, floor: int, number: int) -> None:
        """Check the result of a read that began when `floor` was acknowledged."""
        self.reads += 1
        if number < floor:
            self.problems.append(f"{self.name} showed {number} after {floor} was acknowledged")
        self.acknowledged = max(self.acknowledged, number)

    async def begin(self, clients: Clients) -> None:
        """Create it."""
        await clients.create(CONFIG_MAPS, counter(self.name, 0))

    async def count(self, clients: Clients) -> None:
        """Count until cancelled."""
        number = 0
        while True:
            number += 1
            await self._write(clients, number)
            self.written = number
            self.acknowledged = max(self.acknowledged, number)
            await asyncio.sleep(EVERY_SECONDS)

    async def _write(self, clients: Clients, number: int) -> None:
        """Write the next number once, however often a response is lost."""
        while True:
            before = await clients.call(self._get)
            current = shown(before)
            if current == number:
                return
            if current != number - 1:
                self.problems.append(f"{self.name} is at {current}, its writer at {number}")
                return
            update = before | {"data": {"n": str(number)}}
            try:
                written = await clients.call(partial(_replace, update))
            except Conflict:
                # Perhaps by an attempt of our own whose response was lost: read again.
                continue
            self.versions.add(int(written["metadata"]["resourceVersion"]))
            return

    async def read_until_cancelled(self, clients: Clients) -> None:
        """Read it at any replica until cancelled."""
        while True:
            await clients.call(clients.rng.choice((self._read_one, self._read_list)))
            await asyncio.sleep(EVERY_SECONDS)

    async def _read_one(self, api: HttpTransport) -> None:
        floor = self.acknowledged
        self.read(floor, shown(await self._get(api)))

    async def _read_list(self, api: HttpTransport) -> None:
        floor = self.acknowledged
        page = await api.list(CONFIG_MAPS, NAMESPACE)
        maps = {item["metadata"]["name"]: item for item in page.items}
        self.read(floor, shown(maps[self.name]))

    async def _get(self, api: HttpTransport) -> Obj:
        return await api.get(CONFIG_MAPS, self.key)


async def _replace(update: Obj, api: HttpTransport) -> Obj:
    return await api.update(CONFIG_MAPS, update)

"""The load: workers that write without pause, and a watcher that records its events."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

from crashes.journal import (
    LABEL,
    Event,
    Journal,
    Name,
    Write,
    body,
    content,
    name_of,
    number_of,
    revision_of,
)
from crashes.server import CLOSED, Connection, DiedError

EVERYWHERE = "/api/v1/configmaps"
HOME = "default"
SELECTION = {"labelSelector": f"{LABEL}=load"}
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
_NAMES_PER_WORKER = 6
UNCERTAIN = (503, 504)
"""Codes after which it is unknown whether a write was done."""


def collection(namespace: str) -> str:
    """Return the path of the ConfigMaps of a namespace."""
    return f"/api/v1/namespaces/{namespace}/configmaps"


class Worker:
    """Writes its own objects, one request at a time."""

    def __init__(
        self,
        number: int,
        connection: Connection,
        journal: Journal,
        held: dict[Name, int],
        *,
        tolerates: tuple[int, ...] = (),
    ) -> None:
        """Begin with what it wrote before; after an answer that it `tolerates` it continues."""
        self._tolerates = tolerates
        self._slots: dict[int, Name] = {}
        self._connection = connection
        self._journal = journal
        self._prefix = f"w{number}"
        self._held = {name: at for name, at in held.items() if self._is_mine(name)}
        self._numbers = 0

    def _is_mine(self, name: Name) -> bool:
        return name.namespace == HOME and name.name.startswith(f"{self._prefix}-")

    async def run(self, rng: random.Random, first: int) -> None:
        """Write until the server dies."""
        self._numbers = first
        try:
            while True:
                await self._once(rng)
        except CLOSED:
            return

    async def _once(self, rng: random.Random) -> None:
        slot = rng.randrange(_NAMES_PER_WORKER)
        name = self._slots.get(slot, Name(HOME, f"{self._prefix}-{slot}"))
        if name in self._journal.in_doubt:
            # Only one write of an object may be in doubt, so it is not written again.
            self._slots[slot] = Name(HOME, f"{self._prefix}-{slot}-{self._next()}")
        elif name not in self._held:
            await self.create(name)
        elif rng.random() < 0.04:
            await self._sweep()
        else:
            await self._change(name, rng)

    async def _change(self, name: Name, rng: random.Random) -> None:
        verbs: list[Callable[[Name], Awaitable[None]]] = [
            self._replace,
            self._merge,
            self._json_patch,
            self._apply,
            self._delete,
        ]
        await rng.choice(verbs)(name)

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    async def create(self, name: Name) -> None:
        """Create an object."""
        number = self._next()
        sent = Write(name, "ADDED", number)
        await self._send(sent, "POST", collection(name.namespace), body(name, number))

    async def _replace(self, name: Name) -> None:
        number = self._next()
        path = f"{collection(name.namespace)}/{name.name}"
        await self._send(Write(name, "MODIFIED", number), "PUT", path, body(name, number))

    async def _merge(self, name: Name) -> None:
        number = self._next()
        await self._patch(name, number, {"data": content(number)}, MERGE)

    async def _json_patch(self, name: Name) -> None:
        number = self._next()
        steps = [
            {"op": "replace", "path": f"/data/{key}", "value": value}
            for key, value in content(number).items()
        ]
        await self._patch(name, number, steps, JSON_PATCH)

    async def _apply(self, name: Name) -> None:
        number = self._next()
        await self._patch(
            name, number, body(name, number), APPLY, "?fieldManager=robust&force=true"
        )

    async def _patch(
        self, name: Name, number: int, patch: object, media: str, query: str = ""
    ) -> None:
        path = f"{collection(name.namespace)}/{name.name}{query}"
        await self._send(Write(name, "MODIFIED", number), "PATCH", path, patch, media)

    async def _delete(self, name: Name) -> None:
        sent = Write(name, "DELETED", self._held[name])
        await self._send(sent, "DELETE", f"{collection(name.namespace)}/{name.name}")

    async def _sweep(self) -> None:
        """Delete several objects with one request."""
        held = (name for name in self._held if name.namespace == HOME)
        names = sorted(name for name in held if name not in self._journal.in_doubt)
        writes = [Write(name, "DELETED", self._held[name]) for name in names]
        for write in writes:
            self._journal.send(write)
        selector = ",".join(name.name for name in names)
        # Only a label can choose several; each object has its name as one.
        query = f"?labelSelector={LABEL}%3Dload,{LABEL}-name+in+({selector})"
        code, answer = await self._connection.call("DELETE", collection(HOME) + query)
        if not self._answered(code, answer):
            return
        swept = {item["metadata"]["name"] for item in answer["items"]}
        for write in writes:
            if write.name.name in swept:
                self._journal.acknowledge(write, 0)
                self._held.pop(write.name)
            else:
                self._journal.withdraw(write)

    async def _send(
        self,
        write: Write,
        method: str,
        path: str,
        sent: Any = None,
        media: str = "application/json",
    ) -> None:
        if isinstance(sent, dict) and "metadata" in sent:
            sent["metadata"]["labels"][f"{LABEL}-name"] = write.name.name
        self._journal.send(write)
        code, answer = await self._connection.call(method, path, sent, media)
        if not self._answered(code, answer):
            return
        self._journal.acknowledge(write, revision_of(answer) if write.kind != "DELETED" else 0)
        if write.kind == "DELETED":
            self._held.pop(write.name, None)
        else:
            self._held[write.name] = write.number

    def _answered(self, code: int, answer: Any) -> bool:
        """Report whether a request was done; False if that is unknown."""
        if code in self._tolerates:
            self._journal.counts[f"answered {code}"] += 1
            return False
        # No other client writes these objects, so every other response is wrong.
        if code not in (200, 201):
            raise DiedError(f"worker {self._prefix}: {code} {answer}")
        return True


class Tenant(Worker):
    """Creates namespaces, fills and deletes them: one request, many effects."""

    def __init__(
        self,
        number: int,
        connection: Connection,
        journal: Journal,
        where: int,
        *,
        tolerates: tuple[int, ...] = (),
    ) -> None:
        super().__init__(number, connection, journal, {}, tolerates=tolerates)
        self._place = f"round-{where}-{number}"
        self._made = 0

    async def _once(self, rng: random.Random) -> None:
        self._made += 1
        namespace = f"{self._place}-{self._made}"
        states = self._journal.namespaces
        states[namespace] = "creating"
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        if not self._answered(*await self._connection.call("POST", "/api/v1/namespaces", made)):
            return
        states[namespace] = "active"
        for number in range(rng.randint(1, 5)):
            await self.create(Name(namespace, f"c{number}"))
        states[namespace] = "deleting"
        path = f"/api/v1/namespaces/{namespace}"
        if self._answered(*await self._connection.call("DELETE", path)):
            states[namespace] = "deleted"


async def record(connection: Connection, after: int, events: list[Event]) -> None:
    """Record the events of a watch, until the server dies."""
    query = {**SELECTION, "resourceVersion": str(after)}
    try:
        async for reported in connection.watch(EVERYWHERE, query):
            # One by one: events before the end count.
            events.append(event_of(reported))  # noqa: PERF401 - a comprehension would lose them
    except CLOSED:
        return


def event_of(reported: dict[str, Any]) -> Event:
    """Reduce an event of a watch to what is compared."""
    if reported["type"] not in ("ADDED", "MODIFIED", "DELETED"):
        raise DiedError(f"unexpected watch event {reported}")
    obj = reported["object"]
    return Event(reported["type"], name_of(obj), revision_of(obj), number_of(obj))

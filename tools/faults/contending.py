"""Clients that write and read the same objects, and record what they did for `histories`."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from crashes.journal import revision_of
from crashes.load import HOME, MERGE, UNCERTAIN, collection
from crashes.server import CLOSED, Connection, DiedError
from faults.histories import Operation, Outcome, violations

OBJECTS = 3
CLIENTS = 4
PAUSE_SECONDS = 0.02
"""Between two requests of a client: the journaled writes are the main load."""
END = "contended-end"
_PATH = collection(HOME)
_LABELS = {"robust": "contended"}
_SELECTION = {"labelSelector": "robust=contended"}


def _body(name: str, value: int, **metadata: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": _LABELS, **metadata},
        "data": {"value": str(value)},
    }


def _value(obj: dict[str, Any]) -> int:
    return int(obj["data"]["value"])


@dataclass(slots=True)
class Contention:
    """The shared objects of one run, and the operations of the current round."""

    operations: dict[str, list[Operation]] = field(default_factory=dict)
    checked: int = 0
    _values: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _start: dict[str, int] = field(default_factory=dict)
    """The revision of each object when the round began."""

    @property
    def names(self) -> list[str]:
        """Return the names of the objects."""
        return [f"contended-{number}" for number in range(OBJECTS)]

    async def create(self, connection: Connection) -> None:
        """Create the objects."""
        for name in self.names:
            code, answer = await connection.call("POST", _PATH, _body(name, next(self._values)))
            if code != 201:
                raise DiedError(f"creating {name} answered {code}: {answer}")

    async def begin(self, connection: Connection) -> None:
        """Start a round with a write of each object.

        Its history then begins with the round, also if the last write of an object was rounds ago,
        before the oldest revision that a watch can begin from.
        """
        for name in self.names:
            code, answer = await self._send(connection, name, next(self._values), 0)
            if code != 200:
                raise DiedError(f"writing {name} answered {code}: {answer}")
            self.operations[name] = []
            self._start[name] = revision_of(answer)

    async def run(self, connection: Connection, rng: random.Random) -> None:
        """Be one client, until the server dies."""
        known = dict.fromkeys(self.names, 0)
        try:
            while True:
                name = rng.choice(self.names)
                chosen = rng.random()
                if chosen < 0.5:
                    known[name] = await self._read(connection, name) or known[name]
                else:
                    expect = known[name] if chosen < 0.8 else 0
                    known[name] = await self._write(connection, name, expect) or known[name]
                await asyncio.sleep(PAUSE_SECONDS)
        except CLOSED:
            return

    async def _read(self, connection: Connection, name: str) -> int:
        begun = time.monotonic()
        code, found = await connection.call("GET", f"{_PATH}/{name}")
        if code != 200:
            if code not in UNCERTAIN:
                raise DiedError(f"reading {name} answered {code}: {found}")
            return 0
        self._note(name, Operation("read", begun, _now(), _value(found), revision_of(found)))
        return revision_of(found)

    async def _write(self, connection: Connection, name: str, expect: int) -> int:
        begun, value = time.monotonic(), next(self._values)
        outcome: Outcome = "unknown"
        revision = 0
        try:
            code, found = await self._send(connection, name, value, expect)
            if code == 200:
                outcome, revision = "ok", revision_of(found)
            elif code == 409:
                outcome = "conflict"
            elif code not in UNCERTAIN:
                raise DiedError(f"writing {name} answered {code}: {found}")
        finally:
            # Also if the server died: the write may have been done.
            operation = Operation("write", begun, _now(), value, revision, expect, outcome)
            self._note(name, operation)
        return revision

    async def _send(
        self, connection: Connection, name: str, value: int, expect: int
    ) -> tuple[int, Any]:
        if expect:
            update = _body(name, value, resourceVersion=str(expect))
            return await connection.call("PUT", f"{_PATH}/{name}", update)
        patch = {"data": {"value": str(value)}}
        return await connection.call("PATCH", f"{_PATH}/{name}", patch, MERGE)

    def _note(self, name: str, operation: Operation) -> None:
        self.operations[name].append(operation)

    async def check(self, connection: Connection) -> list[str]:
        """Compare the operations of the round with the states that a watch reports."""
        states = await self._states(connection)
        problems = []
        for name, operations in self.operations.items():
            self.checked += len(operations)
            found = states.get(name, {})
            if not found:
                problems.append(f"LOST {name}: the watch does not report it")
                continue
            problems += [f"{name}: {text}" for text in violations(operations, found)]
        return problems

    async def _states(self, connection: Connection) -> dict[str, dict[int, int]]:
        code, answer = await connection.call("POST", _PATH, _body(END, 0))
        if code != 201:
            raise DiedError(f"creating {END} answered {code}: {answer}")
        states: dict[str, dict[int, int]] = {}
        # A watch from just before the oldest state reports all of them.
        query = {**_SELECTION, "resourceVersion": str(min(self._start.values()) - 1)}
        async with aclosing(connection.watch(_PATH, query)) as reported:
            async for event in reported:
                obj = event["object"]
                if event["type"] == "ERROR":
                    raise DiedError(f"the watch from {query['resourceVersion']} was refused: {obj}")
                name = obj["metadata"]["name"]
                if name == END and revision_of(obj) >= revision_of(answer):
                    break
                if name != END and revision_of(obj) >= self._start[name]:
                    states.setdefault(name, {})[revision_of(obj)] = _value(obj)
        await connection.call("DELETE", f"{_PATH}/{END}")
        return states


def _now() -> float:
    return time.monotonic()

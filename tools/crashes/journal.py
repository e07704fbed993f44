"""What was sent and what was acknowledged: all that a client can rely on.

Each object is written by one worker, which waits for an answer before it writes it again. So of
each object at most one write is in doubt when the server dies, and everything else is certain.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

LABEL = "robust"


class Name(NamedTuple):
    """Names a ConfigMap of the load."""

    namespace: str
    name: str


class Event(NamedTuple):
    """One event of a watch; for a deletion `number` is that of the last state."""

    kind: str
    name: Name
    revision: int
    number: int


@dataclass(slots=True)
class Write:
    """One request that changes one object."""

    name: Name
    kind: str  # of the event it causes
    number: int
    revision: int = 0  # of the response; 0: none, or without a revision


@dataclass(slots=True)
class Journal:
    """One round: from a start of the server to the check after the next."""

    acknowledged: dict[Name, list[Write]] = field(default_factory=dict)
    in_doubt: dict[Name, Write] = field(default_factory=dict)
    namespaces: dict[str, str] = field(default_factory=dict)
    """Namespaces of this round: creating, active, deleting (sent), deleted (acknowledged)."""
    counts: Counter[str] = field(default_factory=Counter)
    _longer: asyncio.Event = field(default_factory=asyncio.Event)

    async def grown(self, acknowledged: int) -> None:
        """Wait until so many requests were answered with success."""
        while self.counts["acknowledged"] < acknowledged:
            self._longer.clear()
            await self._longer.wait()

    def send(self, write: Write) -> None:
        """Note a request before it is sent."""
        self.in_doubt[write.name] = write
        self.counts["sent"] += 1

    def acknowledge(self, write: Write, revision: int) -> None:
        """Note that a request was answered with success."""
        write.revision = revision
        del self.in_doubt[write.name]
        self.acknowledged.setdefault(write.name, []).append(write)
        self.counts["acknowledged"] += 1
        self._longer.set()

    def withdraw(self, write: Write) -> None:
        """Note that a request was refused, so it did nothing."""
        del self.in_doubt[write.name]
        self.counts["refused"] += 1


def content(number: int) -> dict[str, str]:
    """Return the data of a state: each part contains its number, so a partial write is detected."""
    padding = f"{number}." * (20 + number % 200)
    return {"number": str(number), "padding": padding, "sum": _sum(str(number), padding)}


def _sum(number: str, padding: str) -> str:
    return hashlib.sha256(f"{number}|{padding}".encode()).hexdigest()


def number_of(obj: Mapping[str, Any]) -> int:
    """Return the number of a state; -1 if it is not whole."""
    data = obj.get("data") or {}
    if set(data) != {"number", "padding", "sum"}:
        return -1
    whole = data["sum"] == _sum(data["number"], data["padding"])
    return int(data["number"]) if whole else -1


def name_of(obj: Mapping[str, Any]) -> Name:
    """Return the name of an object."""
    return Name(obj["metadata"]["namespace"], obj["metadata"]["name"])


def revision_of(obj: Mapping[str, Any]) -> int:
    """Return the revision of an object or list."""
    return int(obj["metadata"].get("resourceVersion") or 0)


def body(name: Name, number: int) -> dict[str, Any]:
    """Return the object of a state."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name.name, "labels": {LABEL: "load"}},
        "data": content(number),
    }

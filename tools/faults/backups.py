"""A backup that an older release made under load, and what must be there when it is restored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crashes.journal import Event, Journal, Name, name_of, number_of
from crashes.load import EVERYWHERE, HOME
from crashes.server import Connection, DiedError
from faults.releases import Release

State = int | None
"""The number of an object, or None if there is none."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A backup, and what clients knew when it began."""

    file: Path
    release: Release
    revision: int
    """Of a list before the backup."""
    before: dict[Name, Event]
    """The objects at the beginning of the round."""
    journal: Journal
    """Of the round."""
    acknowledged: dict[Name, int]
    """How many writes of each object had been acknowledged when the backup began."""

    def problems(self, listed: Mapping[str, Any]) -> Iterator[str]:
        """Yield which objects are not as they were when the backup began, or later in the round."""
        return lost(self.before, self.journal, self.acknowledged, listed)


def lost(
    before: Mapping[Name, Event],
    journal: Journal,
    acknowledged: Mapping[Name, int],
    listed: Mapping[str, Any],
) -> Iterator[str]:
    """Yield which objects lack one of so many acknowledged writes, or have what nobody wrote."""
    found = {name_of(item): number_of(item) for item in listed["items"]}
    names = before.keys() | journal.acknowledged.keys() | journal.in_doubt.keys()
    for name in sorted(names | found.keys()):
        possible = _states(before, journal, name)[acknowledged.get(name, 0) :]
        # Tenants delete their namespaces, and with them what is inside.
        if name.namespace == HOME and found.get(name) not in possible:
            yield f"LOST {name}: the list has {found.get(name)}, not {possible}"


def _states(before: Mapping[Name, Event], journal: Journal, name: Name) -> list[State]:
    """Return the state at the beginning of a round, and all later ones."""
    begun = before.get(name)
    states: list[State] = [begun.number if begun else None]
    writes = list(journal.acknowledged.get(name, []))
    if name in journal.in_doubt:
        writes.append(journal.in_doubt[name])
    return states + [None if write.kind == "DELETED" else write.number for write in writes]


def marked(journal: Journal) -> dict[Name, int]:
    """Return how many writes of each object are acknowledged."""
    return {name: len(writes) for name, writes in journal.acknowledged.items()}


async def expired(connection: Connection, revision: int) -> list[str]:
    """Return a problem unless a watch from a revision is refused as expired."""
    query = {"resourceVersion": str(revision), "timeoutSeconds": "5"}
    try:
        async with aclosing(connection.watch(EVERYWHERE, query)) as events:
            async for event in events:
                if event["type"] == "ERROR" and event["object"]["code"] == 410:
                    return []
                return [f"a watch from before the restore reports {event}"]
    except DiedError as error:
        return [] if "answered 410" in str(error) else [str(error)]
    return ["a watch from before the restore was not refused"]

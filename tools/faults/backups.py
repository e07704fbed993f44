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
        found = {name_of(item): number_of(item) for item in listed["items"]}
        names = self.before.keys() | self.journal.acknowledged.keys() | self.journal.in_doubt.keys()
        for name in sorted(names | found.keys()):
            # Tenants delete their namespaces, and with them what is inside.
            if name.namespace == HOME and found.get(name) not in self._states(name):
                state = found.get(name)
                yield f"LOST {name}: the restored backup has {state}, not {self._states(name)}"

    def _states(self, name: Name) -> list[State]:
        """Return the state when the backup began, and all later ones."""
        begun = self.before.get(name)
        states: list[State] = [begun.number if begun else None]
        writes = list(self.journal.acknowledged.get(name, []))
        if name in self.journal.in_doubt:
            writes.append(self.journal.in_doubt[name])
        states += [None if write.kind == "DELETED" else write.number for write in writes]
        return states[self.acknowledged.get(name, 0) :]


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

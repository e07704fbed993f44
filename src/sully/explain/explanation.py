"""What `sully explain` prints: sentences, remedies and tables.

The sentences are for people and may change; `state`, `cause` and `because` are for programs and do
not. render.py makes these values, commands print them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Table:
    """Details in rows. Columns are words that also serve as names in JSON."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def as_json(self) -> dict[str, Any]:
        """Return the same for programs, a row as an object."""
        names = [_camel(column) for column in self.columns]
        return {
            "title": self.title,
            "rows": [dict(zip(names, row, strict=True)) for row in self.rows],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why one object is in its state."""

    kind: str
    name: str
    namespace: str = ""
    state: str
    """The state: `Pending`, `Evicted`, `InUse`."""
    cause: str
    """The cause: `DevicesTainted`, `ToleratedTemporarily`."""
    summary: tuple[str, ...]
    """What, since when, because of which object from which source; the most important first."""
    because: tuple[str, ...] = ()
    """The objects that cause the state, as `Kind/name`."""
    remedies: tuple[str, ...] = ()
    """What would change it, the smallest change first."""
    details: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be read."""

    @property
    def title(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}: {self.state} ({self.cause})"

    def as_json(self) -> dict[str, Any]:
        """Return the same for programs; every part is there, if only empty."""
        namespace = {"namespace": self.namespace} if self.namespace else {}
        return {
            "kind": self.kind,
            **namespace,
            "name": self.name,
            "state": self.state,
            "cause": self.cause,
            "because": list(self.because),
            "summary": list(self.summary),
            "remedies": list(self.remedies),
            "details": [table.as_json() for table in self.details],
            "notes": list(self.notes),
        }


def tables(*candidates: Table) -> tuple[Table, ...]:
    """Return the tables that have rows."""
    return tuple(table for table in candidates if table.rows)


def _camel(text: str) -> str:
    first, *others = text.split()
    return first + "".join(word.capitalize() for word in others)

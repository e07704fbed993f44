"""What an explanation is: a few sentences, what would help, and tables for who wants to know more.

The sentences are for people and may change; `state`, `cause` and `because` are for programs and do
not. Every module beside this one makes such values; commands and pages only print them.
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
        names = [_camel(each) for each in self.columns]
        return {
            "title": self.title,
            "rows": [dict(zip(names, row, strict=True)) for row in self.rows],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why one object is as it is."""

    kind: str
    name: str
    namespace: str = ""
    state: str
    """In a word, how it is: `Pending`, `Evicted`, `InUse`."""
    cause: str
    """In a word, why: `DevicesTainted`, `ToleratedForNow`."""
    summary: tuple[str, ...]
    """What, since when, because of which object set by whom; the most important first."""
    because: tuple[str, ...] = ()
    """The objects that make it so, as `Kind/name`."""
    remedies: tuple[str, ...] = ()
    """What would change it, the nearest first."""
    details: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    """What the answer had to go without."""

    @property
    def title(self) -> str:
        """Name the object as people do."""
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}: {self.state} ({self.cause})"

    def as_json(self) -> dict[str, Any]:
        """Return the same for programs; every part is there, if only empty."""
        place = {"namespace": self.namespace} if self.namespace else {}
        return {
            "kind": self.kind,
            **place,
            "name": self.name,
            "state": self.state,
            "cause": self.cause,
            "because": list(self.because),
            "summary": list(self.summary),
            "remedies": list(self.remedies),
            "details": [each.as_json() for each in self.details],
            "notes": list(self.notes),
        }


def tables(*given: Table) -> tuple[Table, ...]:
    """Return the tables that have anything in them."""
    return tuple(each for each in given if each.rows)


def _camel(words: str) -> str:
    first, *others = words.split()
    return first + "".join(each.capitalize() for each in others)

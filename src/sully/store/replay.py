"""Turns the rows of the log back into the state and the history they recorded.

Rows up to the compacted revision only restore the state; the later ones are also events that
a watcher may still request. `sqlite/database.py` reads the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from sys import intern

from sully.store.base import Event, Record, StoreKey
from sully.store.state import State

PLACES = 128
"""Ids per revision: more than a transaction has operations, and part of the file's format."""

Row = tuple[int, str, str, str, int, bytes | None]
"""id, resource, namespace, name, revision of creation, value (`None`: deleted)."""

Version = tuple[int, StoreKey]
"""Names one row: when it was written, and of which key."""


class ReplayError(Exception):
    """The rows contradict each other."""


def superseded(events: Iterable[Event]) -> Iterator[Version]:
    """Yield the rows that cannot be read once these events are compacted.

    The rows of a key come oldest first: if only some of them can be deleted, the newest one that
    is left is still correct.
    """
    for event in events:
        if event.previous is not None:
            yield event.previous.revision, event.previous.key
        if event.kind == "DELETED":
            yield event.revision, event.record.key


def replay(rows: Iterable[Row], compacted: int) -> tuple[State, list[Version]]:
    """Build a state from rows in the order of their ids.

    Also return the rows that an interrupted compaction should have deleted.
    """
    records: dict[StoreKey, Record] = {}
    history: list[Event] = []
    leftover: list[Version] = []
    revision = compacted
    for row in rows:
        revision = row[0] // PLACES
        key = StoreKey(intern(row[1]), intern(row[2]), row[3])
        event = _event(row, key, records.get(key), revision)
        if event is None:
            if revision > compacted:
                raise ReplayError(f"{key} was deleted at {revision} but did not exist")
            leftover.append((revision, key))
            continue
        if event.kind == "DELETED":
            del records[key]
        else:
            records[key] = event.record
        if revision > compacted:
            history.append(event)
        else:
            leftover.extend(superseded((event,)))
    state = State(revision=max(revision, compacted), compacted=compacted)
    state.restore(records.values(), history)
    return state, leftover


def _event(row: Row, key: StoreKey, previous: Record | None, revision: int) -> Event | None:
    """Return the event of a row; `None` if it deletes a key that does not exist."""
    *_, created, value = row
    if value is None:
        return None if previous is None else Event("DELETED", previous, previous, revision)
    record = Record(key, value, created, revision)
    return Event("MODIFIED" if previous else "ADDED", record, previous, revision)

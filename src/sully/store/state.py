"""The records and events a store holds in memory: the read side of every implementation.

Knows nothing of durability: a transaction is applied when readers may see it.
`events.py` has the log and the cursors, `transactions.py` decides what happens.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from heapq import merge
from itertools import islice

from sully.store.base import Event, Record, RecordPage, StoreKey
from sully.store.errors import CompactedError, FutureRevisionError
from sully.store.events import Cursor, EventLog, Horizon, revision_of
from sully.store.sqlite.packing import CurrentPacker, Packer
from sully.store.transactions import Transaction


class Table:
    """The current records of one resource, and what happened to them."""

    __slots__ = ("keys", "log", "packer", "records")

    def __init__(self) -> None:
        self.records: dict[StoreKey, Record] = {}
        self.keys: list[StoreKey] = []
        self.log = EventLog()
        self.packer = CurrentPacker(lambda record: self.records.get(record.key) is record)

    def put(self, record: Record) -> None:
        """Make this the current record of its key."""
        if record.key not in self.records:
            insort(self.keys, record.key)
        self.records[record.key] = record
        self.packer.add(record)

    def remove(self, key: StoreKey) -> None:
        """Forget the current record of a key."""
        del self.records[key]
        del self.keys[bisect_left(self.keys, key)]

    def apply(self, event: Event) -> None:
        """Apply an event."""
        if event.kind == "DELETED":
            self.remove(event.record.key)
        else:
            self.put(event.record)
        self.log.events.append(event)


class State:
    """All tables of a store at its newest acknowledged revision."""

    def __init__(self, *, revision: int, compacted: int) -> None:
        self.horizon = Horizon(revision, compacted)
        self._tables: dict[str, Table] = {}
        # Of the events that are still held, over all tables.
        self._count = self._size = 0
        self._packer = Packer()

    @property
    def revision(self) -> int:
        """Return the newest revision that readers see."""
        return self.horizon.revision

    @property
    def compacted(self) -> int:
        """Return the oldest revision that can still be read."""
        return self.horizon.compacted

    def table(self, resource: str) -> Table:
        """Return the table of a resource, which is created on first use."""
        table = self._tables.get(resource)
        if table is None:
            table = self._tables[resource] = Table()
        return table

    def resources(self) -> list[str]:
        """Return the resources of which there are records, in order."""
        return sorted(resource for resource, table in self._tables.items() if table.records)

    def get(self, key: StoreKey) -> Record | None:
        """Return the current record of a key."""
        table = self._tables.get(key.resource)
        return None if table is None else table.records.get(key)

    def apply(self, transactions: Iterable[Transaction]) -> None:
        """Show these transactions, which are in order, to readers and wake the watchers once."""
        changed: dict[str, Table] = {}
        for transaction in transactions:
            for event in transaction.events:
                resource = event.record.key.resource
                table = changed.get(resource)
                if table is None:
                    table = changed[resource] = self.table(resource)
                table.apply(event)
                self._track(event)
            if transaction.events:
                self.horizon.revision = transaction.revision
        for table in changed.values():
            table.log.wake()

    def restore(self, records: Iterable[Record], history: Iterable[Event]) -> None:
        """Fill an empty state with current records, in any order, and recent events."""
        for record in records:
            table = self.table(record.key.resource)
            table.records[record.key] = record
            table.keys.append(record.key)
        for table in self._tables.values():
            table.keys.sort()
            table.packer.restore(map(table.records.__getitem__, table.keys))
        for event in history:
            self.table(event.record.key.resource).log.events.append(event)
            self._track(event)

    def reset(self, records: Iterable[Record], revision: int) -> None:
        """Replace all records; watchers must list again."""
        for table in self._tables.values():
            table.records.clear()
            table.keys.clear()
            table.packer.clear()
            table.log.forget()
        self._count = self._size = 0
        self._packer.clear()
        self.horizon.revision = self.horizon.compacted = revision
        self.restore(records, ())
        for table in self._tables.values():
            table.log.wake()

    def watch(self, resource: str, namespace: str | None, *, after: int) -> Cursor:
        """Return a cursor behind this revision."""
        self.check_revision(after)
        return Cursor(self.table(resource).log, self.horizon, namespace=namespace, after=after)

    def check_revision(self, revision: int) -> None:
        """Reject a revision that cannot be read."""
        if revision < self.compacted:
            raise CompactedError(revision, compacted=self.compacted)
        if revision > self.revision:
            raise FutureRevisionError(revision, current=self.revision)

    def page(
        self,
        resource: str,
        namespace: str | None,
        *,
        at: int,
        start: tuple[str, str] | None,
        limit: int | None,
    ) -> RecordPage:
        """Return one page of the records as they were at a revision."""
        self.check_revision(at)
        table = self.table(resource)
        records_at = _records_at(table, at)
        low, high = _bounds(table.keys, resource, namespace, start)
        if not records_at:
            selected = table.keys[low : high if limit is None else min(high, low + limit)]
            records = [table.records[key] for key in selected]
            return RecordPage(records, at, high - low - len(records))
        older = sorted(key for key, record in records_at.items() if record is not None)
        first, last = _bounds(older, resource, namespace, start)
        keys = [key for key in islice(table.keys, low, high) if key not in records_at]
        # Two sorted runs, which sorting merges in linear time.
        keys = sorted(keys + older[first:last])
        records = [records_at.get(key) or table.records[key] for key in keys[:limit]]
        return RecordPage(records, at, len(keys) - len(records))

    def oldest_within(self, *, events: int, size: int) -> int:
        """Return the oldest revision after which there are at most this many events and bytes."""
        oldest = self.compacted
        count, total = self._count, self._size
        logs = (table.log.events for table in self._tables.values())
        # From the oldest, which will be dropped: this takes no longer than dropping them.
        for event in merge(*logs, key=revision_of):
            if event.revision > oldest and count <= events and total <= size:
                break
            oldest = event.revision
            count, total = count - 1, total - _size(event)
        return oldest

    def compact(self, revision: int) -> list[Event]:
        """Forget events up to and including a revision, and return them."""
        if revision > self.revision:
            raise FutureRevisionError(revision, current=self.revision)
        if revision <= self.compacted:
            return []
        self.horizon.compacted = revision
        dropped = [event for table in self._tables.values() for event in table.log.drop(revision)]
        self._count -= len(dropped)
        self._size -= sum(map(_size, dropped))
        return dropped

    def _track(self, event: Event) -> None:
        self._count += 1
        self._size += _size(event)
        if event.previous is not None:
            self._packer.add(event.previous)

    def close(self) -> None:
        """End every watch."""
        self.horizon.closed = True
        for table in self._tables.values():
            table.log.wake()


def _size(event: Event) -> int:
    # A deletion keeps a value alive that an earlier event has counted.
    return 0 if event.kind == "DELETED" else event.record.size


def _records_at(table: Table, at: int) -> dict[StoreKey, Record | None]:
    """Return the records at a revision of the keys that changed after it."""
    records_at: dict[StoreKey, Record | None] = {}
    for event in reversed(table.log.since(table.log.position_after(at))):
        records_at[event.record.key] = event.previous
    return records_at


def _bounds(
    keys: list[StoreKey], resource: str, namespace: str | None, start: tuple[str, str] | None
) -> tuple[int, int]:
    """Return the range of the selected keys in a sorted list."""
    low, high = 0, len(keys)
    if namespace is not None:
        low = bisect_left(keys, StoreKey(resource, namespace, ""))
        # The smallest string that is greater than every key of the namespace.
        high = bisect_left(keys, StoreKey(resource, namespace + "\0", ""))
    if start is not None:
        low = max(low, bisect_right(keys, StoreKey(resource, *start)))
    return low, max(low, high)

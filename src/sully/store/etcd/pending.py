"""Writes that were accepted and whose revision is not known yet.

etcd gives a transaction its revision when it is done. Until then its records have a number below
zero, which no reader ever sees: the next write of the same key may be computed from `newest` and
expect it, and `resolve` puts the true revision in its place. So writes of one key are
serialized, and all others are concurrent. If one fails, so does all that builds on
it: otherwise later attempts would build on what is bound to fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec

from sully.store.base import Commit, Derived, Event, Op, Put, Record, StoreKey
from sully.store.errors import ConflictError, StoreError, UnavailableError
from sully.store.transactions import Transaction


class Pending(msgspec.Struct, eq=False):
    """A transaction that was sent to etcd."""

    number: int
    """Below zero; the revision of its records until the true one is known."""
    ident: bytes
    """What it writes to the tip, which identifies its own events."""
    ops: Sequence[Op]
    events: list[Event]
    before: list[Pending]
    """Transactions that write something this one reads or writes."""
    done: asyncio.Future[Commit]
    revision: int = 0
    """The true revision, once it is known."""
    derived: dict[StoreKey, Derived] = msgspec.field(default_factory=dict)


class PendingWrites:
    """The pending transactions, by key."""

    def __init__(self, replica: str) -> None:
        self._replica = replica
        self._count = 0
        self._by_key: dict[StoreKey, Pending] = {}
        self.by_ident: dict[bytes, Pending] = {}

    @property
    def next_number(self) -> int:
        """Return the number that the next transaction gets."""
        return -(self._count + 1)

    def newest(self, key: StoreKey, stored: Record | None) -> Record | None:
        """Return the state a key will have if all that is pending succeeds."""
        pending = self._by_key.get(key)
        if pending is None:
            return stored
        event = next(event for event in pending.events if event.record.key == key)
        return None if event.kind == "DELETED" else event.record

    def add(self, ops: Sequence[Op], transaction: Transaction) -> Pending:
        """Add an accepted transaction."""
        self._count += 1
        before = self.writing(ops)
        done: asyncio.Future[Commit] = asyncio.get_running_loop().create_future()
        ident = f"{self._replica}.{self._count}".encode()
        pending = Pending(-self._count, ident, ops, transaction.events, before, done)
        for op in ops:
            if isinstance(op, Put):
                pending.derived[op.key] = {} if op.derived is None else op.derived
        for event in transaction.events:
            # What others derive from a record that has no revision must not outlive it.
            event.record.derived = dict(event.record.derived)
            self._by_key[event.record.key] = pending
        self.by_ident[ident] = pending
        return pending

    def remove(self, pending: Pending) -> None:
        """Remove a settled transaction."""
        self.by_ident.pop(pending.ident, None)
        for event in pending.events:
            if self._by_key.get(event.record.key) is pending:
                del self._by_key[event.record.key]

    def built_on(self, pending: Pending) -> list[tuple[Pending, Op]]:
        """Return what expects a state that this transaction was to make."""
        return [
            (later, op)
            for later in self.by_ident.values()
            for op in later.ops
            if op.expect == pending.number
        ]

    def writing(self, ops: Iterable[Op]) -> list[Pending]:
        """Return what is pending for the keys of these operations."""
        writes = (self._by_key.get(op.key) for op in ops)
        return list(dict.fromkeys(pending for pending in writes if pending is not None))

    async def wait_settled(self, ops: Iterable[Op]) -> None:
        """Wait until nothing that is pending now for these keys is pending any more."""
        await wait_all(self.writing(ops))


async def wait_all(pending: Iterable[Pending]) -> None:
    """Wait for the end of transactions, good or bad."""
    waits = [transaction.done for transaction in pending if not transaction.done.done()]
    if waits:
        await asyncio.wait(waits)


def resolve(pending: Pending) -> list[Op]:
    """Return the operations with true revisions; what they build on must have succeeded."""
    before = {earlier.number: earlier.revision for earlier in pending.before}
    return [
        replace(op, expect=before[op.expect]) if op.expect is not None and op.expect < 0 else op
        for op in pending.ops
    ]


def follow_up(op: Op, failure: StoreError, stored: Record | None) -> StoreError:
    """Return why a write fails that builds on one that failed."""
    if isinstance(failure, ConflictError):
        return ConflictError(op.key, expect=op.expect, current=stored)
    return UnavailableError(f"a write before this one failed: {failure}")

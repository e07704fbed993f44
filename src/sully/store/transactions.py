"""Decides whether a transaction may happen, and what it changes.

Pure: the newest state comes in as a function, the outcome is a value. `memory.py` and
`sqlite/` make it durable and visible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from sully.store.base import (
    MAX_OPERATIONS,
    MAX_VALUE_BYTES,
    Check,
    Delete,
    Event,
    Op,
    Put,
    Record,
    StoreKey,
)
from sully.store.errors import (
    ConflictError,
    DuplicateKeyError,
    EmptyTransactionError,
    TooLargeError,
    TooManyOperationsError,
)


class Transaction(msgspec.Struct, eq=False):
    """A decided transaction; without events it only checked."""

    revision: int
    events: list[Event]
    records: tuple[Record | None, ...]


def plan(
    ops: Sequence[Op], newest: Callable[[StoreKey], Record | None], *, revision: int
) -> Transaction:
    """Check every expectation against the newest state and return what would change."""
    validate(ops)
    events: list[Event] = []
    records: list[Record | None] = []
    for op in ops:
        current = newest(op.key)
        _expect(op, current)
        if isinstance(op, Check):
            records.append(current)
            continue
        event = _event(op, current, revision)
        events.append(event)
        records.append(event.record)
    return Transaction(revision, events, tuple(records))


def validate(ops: Sequence[Op]) -> None:
    """Reject what is wrong whatever the store contains."""
    if not ops:
        raise EmptyTransactionError
    if len(ops) > MAX_OPERATIONS:
        raise TooManyOperationsError(len(ops))
    written: set[StoreKey] = set()
    for op in ops:
        if isinstance(op, Check):
            continue
        if op.key in written:
            raise DuplicateKeyError(op.key)
        written.add(op.key)
        if isinstance(op, Put) and len(op.value) > MAX_VALUE_BYTES:
            raise TooLargeError(op.key, len(op.value))


def _expect(op: Op, current: Record | None) -> None:
    revision = 0 if current is None else current.revision
    if op.expect is not None and op.expect != revision:
        raise ConflictError(op.key, expect=op.expect, current=current)
    if isinstance(op, Delete) and current is None:
        raise ConflictError(op.key, expect=op.expect, current=None)


def _event(op: Put | Delete, current: Record | None, revision: int) -> Event:
    if isinstance(op, Delete):
        assert current is not None, "a missing key was refused above"
        return Event("DELETED", current, current, revision)
    derived = {} if op.derived is None else op.derived
    if current is None:
        return Event("ADDED", Record(op.key, op.value, revision, revision, derived), None, revision)
    record = Record(op.key, op.value, current.create_revision, revision, derived)
    return Event("MODIFIED", record, current, revision)

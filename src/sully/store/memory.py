"""A store in memory, and the read side that all stores share.

`ReadSide` serves reads from `State`; an implementation adds how a write becomes durable.
`MemoryStore` adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

from sully.store.base import (
    FIRST_REVISION,
    Commit,
    Op,
    Record,
    RecordPage,
    Store,
    StoreKey,
    Subscription,
)
from sully.store.errors import ClosedError, UnavailableError
from sully.store.state import State
from sully.store.transactions import plan


class ReadSide(Store):
    """Answers reads from memory, at the newest acknowledged revision."""

    def __init__(self, state: State) -> None:
        self._state = state

    @property
    def revision(self) -> int:
        """Return the newest acknowledged revision."""
        # Asked several times by each write.
        return self._state.horizon.revision

    @property
    def compacted(self) -> int:
        """Return the oldest revision that can still be listed, or watched from."""
        return self._state.compacted

    @property
    def problem(self) -> str:
        """Return nothing: what is in memory can always be read."""
        return ""

    @property
    def shared(self) -> bool:
        """Return no: one process has it for itself."""
        return False

    async def agree(self, name: str, value: bytes) -> bytes:  # noqa: ARG002 - stores on a disk take it
        """Return the value: one process agrees with itself."""
        self._check_open()
        return value

    async def catch_up(self) -> None:
        """Return immediately: no other process writes."""

    def resources(self) -> Sequence[str]:
        """Return the resources of which there are records, in order."""
        return self._state.resources()

    def horizon(self, *, events: int, size: int) -> int:
        """Return the oldest revision after which there are at most this many events and bytes."""
        return self._state.oldest_within(events=events, size=size)

    async def get(self, key: StoreKey) -> Record | None:
        """Return the newest acknowledged state of a key."""
        return self._state.get(key)

    def current(self, resource: str, namespace: str | None = None) -> Sequence[Record]:
        """Return the acknowledged records of a resource, in order, without waiting."""
        revision = self._state.revision
        return self._state.page(resource, namespace, at=revision, start=None, limit=None).records

    async def list(
        self,
        resource: str,
        namespace: str | None = None,
        *,
        at: int | None = None,
        start: tuple[str, str] | None = None,
        limit: int | None = None,
    ) -> RecordPage:
        """Return the records of a resource, or of one namespace of it, in order."""
        if limit is not None and limit < 1:
            raise ValueError(f"invalid limit {limit}: must be at least 1")
        revision = self._state.revision if at is None else at
        return self._state.page(resource, namespace, at=revision, start=start, limit=limit)

    def watch(self, resource: str, namespace: str | None = None, *, after: int) -> Subscription:
        """Watch a resource: each event with a greater revision, in order, exactly once."""
        self._check_open()
        return self._state.watch(resource, namespace, after=after)

    def _check_open(self) -> None:
        if self._state.horizon.closed:
            raise ClosedError("the store is closed")


class MemoryStore(ReadSide):
    """A store for tests and for control planes without persistence."""

    def __init__(self) -> None:
        super().__init__(State(revision=FIRST_REVISION, compacted=FIRST_REVISION))

    def newest(self, key: StoreKey) -> Record | None:
        """Return the current state: nothing is ever accepted and not yet durable."""
        return self._state.get(key)

    async def commit(self, ops: Sequence[Op]) -> Commit:
        """Do all operations at one new revision, or none of them."""
        self._check_open()
        transaction = plan(ops, self._state.get, revision=self._state.revision + 1)
        self._state.apply((transaction,))
        return Commit(self._state.revision, transaction.records)

    async def compact(self, revision: int) -> None:
        """Forget the history up to and including this revision; current records stay."""
        self._check_open()
        self._state.compact(revision)

    async def snapshot(self) -> BinaryIO:
        """Fail: there is nothing on disk."""
        raise UnavailableError("this store is in memory only: there is nothing to back up")

    async def close(self) -> None:
        """Wake every waiter and drop the content."""
        self._state.close()

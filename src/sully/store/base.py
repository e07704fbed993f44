"""The interface of every store, and the only owner of what a revision is.

A store is a map from `StoreKey` to bytes with one counter, the revision. Each committed transaction
takes the next revision, however many keys it writes, so a revision names a state of the whole
store. The values do not contain their revision: the server writes `resourceVersion` into an
object from `Record.revision` when it encodes it.

See `errors.py` (what can go wrong), `memory.py` (nothing survives a restart), `sqlite/` (one
durable node), `etcd/` (shared by several), `compaction.py` (how much history is kept),
`sqlite/packing.py` (in which form). The suite in `tests/contract` tests every implementation. All
methods belong to one event loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, BinaryIO, Literal, NamedTuple, Protocol, Self

import msgspec

FIRST_REVISION = 1
"""The revision of a store that was never written to; its first write gets the next one."""

MAX_VALUE_BYTES = 1536 * 1024
"""The largest value, as etcd limits a request by default."""

MAX_OPERATIONS = 127
"""The most operations in one transaction: etcd allows 128, and the store there needs one."""

Derived = dict[Hashable, Any]
"""A memo of what others computed from a value. Never persisted, and safe to lose."""


class StoreKey(NamedTuple):
    """Names one object; inside a resource, keys are ordered by namespace, then name."""

    resource: str
    """The plural with its group, such as `pods` or `resource.k8s.io/devicetaintrules`."""
    namespace: str
    """Empty for an object of the cluster."""
    name: str

    def __str__(self) -> str:
        """Write the key as a path, for messages."""
        return "/".join(part for part in self if part)


class CompressedValue(Protocol):
    """A value that takes less memory and more time to read; see `sqlite/packing.py`."""

    @property
    def size(self) -> int:
        """Return the length of the value."""
        ...

    def read(self) -> bytes:
        """Return the value."""
        ...


class Record:
    """One state of one key. Shared by all readers: never modify it.

    `derived` is the exception: it only caches what the value already implies (the decoded
    object, an encoding per API version), so that it is computed once for all readers.
    """

    __slots__ = ("_value", "create_revision", "derived", "key", "revision")

    def __init__(
        self,
        key: StoreKey,
        value: bytes,
        create_revision: int,
        revision: int,
        derived: Derived | None = None,
    ) -> None:
        self.key = key
        self._value: bytes | CompressedValue = value
        self.create_revision = create_revision
        """The revision at which the key was created, also after an earlier deletion."""
        self.revision = revision
        """When this state was written."""
        self.derived: Derived = {} if derived is None else derived

    @property
    def value(self) -> bytes:
        """Return the stored bytes."""
        value = self._value
        return value if isinstance(value, bytes) else value.read()

    @property
    def size(self) -> int:
        """Return the number of stored bytes."""
        value = self._value
        return len(value) if isinstance(value, bytes) else value.size

    @property
    def is_packed(self) -> bool:
        """Report whether the value has another form."""
        return not isinstance(self._value, bytes)

    def pack(self, value: CompressedValue) -> None:
        """Keep the value in another form from now on."""
        self._value = value

    def __repr__(self) -> str:
        """Name the state, without the value."""
        return f"Record({self.key}, {self.create_revision}, {self.revision})"


EventKind = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(slots=True, eq=False)
class Event:
    """One change of one key, the same object for every watcher."""

    kind: EventKind
    record: Record
    """The new state; for `DELETED` the last one, whose own revision is older than the event's."""
    previous: Record | None
    """The state before, `None` for `ADDED`; a selector may have matched only that one."""
    revision: int
    """When it happened. Events of one transaction share it."""
    derived: Derived | None = field(default=None, repr=False)
    """A memo like `Record.derived`, for the encodings that watchers share, if there are any."""


@dataclass(slots=True, eq=False)
class Put:
    """Write a value. One that equals the stored value is a write like any other."""

    key: StoreKey
    value: bytes = field(repr=False)
    expect: int | None = None
    """The revision the key must have now; 0: it must not exist; `None`: whatever it is."""
    derived: Derived | None = field(default=None, repr=False)
    """Becomes the memo of the new record, so that what was just encoded is not decoded again."""


@dataclass(slots=True, eq=False)
class Delete:
    """Remove a key. One that does not exist is a conflict, whatever was expected."""

    key: StoreKey
    expect: int | None = None


@dataclass(slots=True, eq=False)
class Check:
    """Require the state of a key that the transaction does not write."""

    key: StoreKey
    expect: int


Op = Put | Delete | Check


class Commit(msgspec.Struct, frozen=True):
    """What a transaction did."""

    revision: int
    """Its revision; for one that only checked, the revision at which the checks held."""
    records: tuple[Record | None, ...]
    """One per operation: what was put, what was deleted, what was checked."""


class RecordPage(msgspec.Struct, frozen=True):
    """Part of a list, in the order of the keys."""

    records: list[Record]
    revision: int
    """The revision of the list; pass it as `at` to read the next page."""
    remaining: int
    """How many records follow this page; 0 means that the list is complete."""


class Subscription(ABC):
    """A position in the events of one resource, for one reader.

    It contains no events, so a slow reader costs nothing.
    """

    __slots__ = ()

    @abstractmethod
    def take(self) -> list[Event]:
        """Return all events since the last call, oldest first; never wait.

        Raises `CompactedError` if some of them are gone, and `ClosedError` after `close`.
        """

    @abstractmethod
    async def wait(self) -> None:
        """Wait until `take` returns events or raises."""

    @abstractmethod
    def wake(self) -> None:
        """End a `wait` early, without an event: for timers, which then need no task."""

    @property
    @abstractmethod
    def progress(self) -> int:
        """Return the newest revision up to which every event has been taken, for bookmarks."""

    @abstractmethod
    def close(self) -> None:
        """End the subscription and wake its waiter; a second call does nothing."""


class Store(ABC):
    """Stores records, in order, and the events of their changes."""

    @property
    @abstractmethod
    def revision(self) -> int:
        """Return the newest acknowledged revision. It only grows, also across restarts."""

    @property
    @abstractmethod
    def compacted(self) -> int:
        """Return the oldest revision that can still be listed, or watched from."""

    @abstractmethod
    def resources(self) -> Sequence[str]:
        """Return the resources of which there are records, in order."""

    @abstractmethod
    def horizon(self, *, events: int, size: int) -> int:
        """Return the oldest revision after which there are at most this many events and bytes."""

    @property
    @abstractmethod
    def problem(self) -> str:
        """Return why reads and writes fail at the moment; empty if they do not."""

    @property
    @abstractmethod
    def shared(self) -> bool:
        """Report whether other processes may write, so that `newest` may be outdated.

        Then a decision by more keys than it writes must be part of the transaction: by a
        `Check`, or by a `Put` with an expectation if two such decisions exclude each other.
        """

    @abstractmethod
    async def agree(self, name: str, value: bytes) -> bytes:
        """Store a value that all processes must share; return that of the first process."""

    @abstractmethod
    async def catch_up(self) -> None:
        """Wait until everything is visible here that was acknowledged before, here or elsewhere.

        `get`, and `list` without a revision, do so themselves. `newest`, `current`, `revision` and
        `watch` cannot wait; callers that must not miss writes of other processes call this before.
        In a store of one process there is nothing to wait for. Raises `UnavailableError`.
        """

    @abstractmethod
    async def get(self, key: StoreKey) -> Record | None:
        """Return the newest acknowledged state of a key."""

    @abstractmethod
    def newest(self, key: StoreKey) -> Record | None:
        """Return the newest state, including writes that are accepted but not yet durable.

        Only for computing the next write, so that read-modify-write loops need not wait for the
        disk: a commit that builds on it fails if the write it builds on does. Never return it to
        clients. Nothing can come between this call and a `commit` that follows without `await`.
        """

    @abstractmethod
    def current(self, resource: str, namespace: str | None = None) -> Sequence[Record]:
        """Return the acknowledged records of a resource, in order, without waiting: see `watch`."""

    @abstractmethod
    async def list(
        self,
        resource: str,
        namespace: str | None = None,
        *,
        at: int | None = None,
        start: tuple[str, str] | None = None,
        limit: int | None = None,
    ) -> RecordPage:
        """Return the records of a resource, or of one namespace of it, in order.

        `at` shows the state at an older revision (`CompactedError`, `FutureRevisionError`);
        `start` is the (namespace, name) after which to begin; `limit` is the page size.
        """

    @abstractmethod
    async def commit(self, ops: Sequence[Op]) -> Commit:
        """Apply all operations at one new revision, or none of them.

        Returns once the writes are durable and visible to every reader. Expectations are judged
        when this is called, against `newest`. Raises `ConflictError` for the first one that does
        not hold, `InvalidTransactionError` for an invalid transaction, and
        `UnavailableError` if it could not be written. Cancelling the caller does
        not cancel the write.
        """

    @abstractmethod
    def watch(self, resource: str, namespace: str | None = None, *, after: int) -> Subscription:
        """Watch a resource: each event with a greater revision, in order, exactly once.

        Raises `CompactedError` or `FutureRevisionError` if that is impossible.
        """

    @abstractmethod
    async def compact(self, revision: int) -> None:
        """Compact the history up to and including this revision; current records stay."""

    @abstractmethod
    async def snapshot(self) -> BinaryIO:
        """Return an open, nameless file with a copy of everything; the caller closes it.

        It holds at least what was acknowledged before the call, and whole transactions only.
        Writes continue meanwhile. Raises `UnavailableError` if there is no space for it, or the
        store keeps nothing that a file could hold.
        """

    @abstractmethod
    async def close(self) -> None:
        """Finish what was accepted, wake every waiter, release everything.

        When it returns, nothing is in progress: what was not acknowledged will never
        happen, except what was reported as uncertain (`UncertainError`). Later
        calls, also after a cancelled one, wait for the same end.
        """

    async def __aenter__(self) -> Self:
        """Return the store, to be closed at the end of the block."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the store, however the block ended."""
        await self.close()

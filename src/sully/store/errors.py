"""The errors of a store.

    StoreError
    ├── ConflictError             an expectation did not hold (carries what is there instead)
    ├── InvalidTransactionError   invalid whatever the store contains
    │   ├── EmptyTransactionError
    │   ├── TooManyOperationsError
    │   ├── TooLargeError
    │   └── DuplicateKeyError
    ├── CompactedError            this part of history is gone
    ├── FutureRevisionError       this revision has not happened yet
    ├── UnavailableError          the write could not be made durable; nothing of it is there
    │   └── UncertainError        it may be there: the answer was lost
    ├── OpenError                 the data directory cannot be used
    │   └── InUseError            another process has it
    └── ClosedError               the store or the subscription was closed

`server` turns these into API errors; the texts here are for logs and operators.
"""

from __future__ import annotations

from sully.store.base import MAX_OPERATIONS, MAX_VALUE_BYTES, Record, StoreKey


class StoreError(Exception):
    """Anything a store raises on purpose."""


class ConflictError(StoreError):
    """The key is not at the revision that a transaction expected."""

    def __init__(self, key: StoreKey, *, expect: int | None, current: Record | None) -> None:
        self.key = key
        self.expect = expect
        self.current = current
        expected = {None: "any revision", 0: "no record"}.get(expect, f"revision {expect}")
        state = "does not exist" if current is None else f"is at revision {current.revision}"
        super().__init__(f"{key} {state}, expected {expected}")


class InvalidTransactionError(StoreError):
    """The transaction itself is wrong, whatever the store contains."""


class EmptyTransactionError(InvalidTransactionError):
    """A transaction must do something."""

    def __init__(self) -> None:
        super().__init__("a transaction needs at least one operation")


class TooManyOperationsError(InvalidTransactionError):
    """A transaction may hold only so many operations."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(
            f"a transaction of {count} operations is too long: the most is {MAX_OPERATIONS}"
        )


class TooLargeError(InvalidTransactionError):
    """A value may have only so many bytes."""

    def __init__(self, key: StoreKey, size: int) -> None:
        self.key = key
        self.size = size
        super().__init__(f"{key} is too large: {size} bytes, the most is {MAX_VALUE_BYTES}")


class DuplicateKeyError(InvalidTransactionError):
    """Two operations of one transaction write the same key, so their order would matter."""

    def __init__(self, key: StoreKey) -> None:
        self.key = key
        super().__init__(f"{key} is written twice in one transaction")


class CompactedError(StoreError):
    """The requested revision has been compacted."""

    def __init__(self, requested: int, *, compacted: int) -> None:
        self.requested = requested
        self.compacted = compacted
        super().__init__(f"revision {requested} has been compacted: history starts at {compacted}")


class FutureRevisionError(StoreError):
    """The requested revision is in the future."""

    def __init__(self, requested: int, *, current: int) -> None:
        self.requested = requested
        self.current = current
        super().__init__(f"revision {requested} is in the future: the store is at {current}")


class UnavailableError(StoreError):
    """The disk or the peer rejected; the write did not happen."""


class UncertainError(UnavailableError):
    """The peer did not answer; the write may have happened, or may yet."""


class OpenError(StoreError):
    """The data directory cannot be used as it is."""


class InUseError(OpenError):
    """Another process has the data directory."""


class ClosedError(StoreError):
    """The store or the subscription was closed."""

"""Sources of keys for the queue of a controller, as controller-runtime's package `source`.

An informer is a source: each change adds the keys that the old and the new object map to. The
others are here: keys that are reconciled once, events that are sent, and changes that a predicate
selects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from sully.client.informers.cache import Cache
from sully.client.transport import Key

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Predicate = Callable[[T | None, T | None], bool]
"""Gets the old and the new object and reports whether the change matters."""


class Source(Protocol[T_co]):
    """A source of changes: an informer, or a view that joins several."""

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[T_co], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the keys that each change affects; return how to stop that."""
        ...


class InitialKeys:
    """A source of keys that are reconciled once, at the start."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._keys = tuple(keys)

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[Key], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add all keys; there will be no more."""
        for key in self._keys:
            for mapped in to_keys(key):
                add(mapped)
        return lambda: None


class Channel(Generic[T]):
    """A source of events that are sent to it, as controller-runtime's `source.Channel`."""

    def __init__(self, initial: Callable[[], Iterable[T]] = tuple) -> None:
        self._initial = initial
        """Returns the events that a new queue starts with."""
        self._handlers: list[Callable[[T], None]] = []

    def send(self, event: T) -> None:
        """Add the keys of an event to all queues."""
        for handler in self._handlers:
            handler(event)

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[T], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the keys of each event; return how to stop that."""

        def handle(event: T) -> None:
            for key in to_keys(event):
                add(key)

        self._handlers.append(handle)
        for event in list(self._initial()):
            handle(event)
        return lambda: self._handlers.remove(handle)


class Filtered(Generic[T]):
    """A source of the changes of a cache that a predicate selects."""

    def __init__(self, cache: Cache[T], predicate: Predicate[T]) -> None:
        self._cache = cache
        self._predicate = predicate

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[T], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the keys of the new object, or of the last state of a deleted one."""

        def handle(old: T | None, new: T | None) -> None:
            latest = new if new is not None else old
            if latest is not None and self._predicate(old, new):
                for key in to_keys(latest):
                    add(key)

        return self._cache.on_change(handle)


def same_key(key: Key) -> tuple[Key]:
    """Map a key to itself."""
    return (key,)

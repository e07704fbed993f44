"""The objects of one kind in memory, with event handlers: what views read.

An informer (informer.py) keeps a cache up to date from a server. A snapshot (`views/snapshot/`)
fills one once, so that views work on both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from sully.client.informers.indexer import Indexer, IndexFunction
from sully.client.objects import key_of, uid_of, version_of
from sully.client.transport import Key, Kind, WatchEvent

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
K = TypeVar("K")

Handler = Callable[[T | None, T | None], None]
"""Gets the old and the new object: (None, new) is an addition, (old, None) a deletion."""


class CacheReader(Protocol[T_co]):
    """The read side of a cache, covariant in the type of its objects."""

    def __len__(self) -> int:
        """Return how many objects there are."""
        ...

    def get(self, key: Key) -> T_co | None:
        """Return an object, or None."""
        ...

    def keys(self) -> Collection[Key]:
        """Return the keys of all objects, in no order that matters."""
        ...

    def on_change(self, handler: Handler[T_co]) -> Callable[[], None]:
        """Call a handler for each object and for every change; return how to remove it."""
        ...


class Cache(Generic[T]):
    """The objects of one kind. They are never modified, only replaced."""

    def __init__(
        self, kind: Kind[T], *, indexes: Mapping[str, IndexFunction[T]] | None = None
    ) -> None:
        self.kind = kind
        self._indexer: Indexer[T] = Indexer(indexes)
        self._handlers: list[Handler[T]] = []

    def fork(self) -> Cache[T]:
        """Return an independent cache of the same objects, without handlers."""
        fresh = Cache(self.kind)
        fresh._indexer = self._indexer.fork()
        return fresh

    def __len__(self) -> int:
        """Return how many objects there are."""
        return len(self._indexer)

    def get(self, key: Key) -> T | None:
        """Return an object, or None."""
        return self._indexer.get(key)

    def keys(self) -> Collection[Key]:
        """Return the keys of all objects, in no order that matters."""
        return self._indexer.keys()

    def values(self) -> Collection[T]:
        """Return all objects, in no order that matters."""
        return self._indexer.values()

    def by_index(self, index: str, value: str) -> list[T]:
        """Return the objects that an index files under a value, in order of their keys."""
        return self._indexer.by_index(index, value)

    def index_values(self, index: str) -> Collection[str]:
        """Return the values under which an index has anything."""
        return self._indexer.index_values(index)

    def has_index(self, name: str) -> bool:
        """Report whether there is an index of this name."""
        return self._indexer.has_index(name)

    def add_index(self, name: str, function: IndexFunction[T]) -> None:
        """Index all objects, those that are there and those to come."""
        self._indexer.add_index(name, function)

    def on_change(self, handler: Handler[T]) -> Callable[[], None]:
        """Call a handler for each object and for every change; return how to remove it."""
        remove = self.follow(handler)
        for obj in list(self._indexer.values()):
            handler(None, obj)
        return remove

    def follow(self, handler: Handler[T]) -> Callable[[], None]:
        """Call a handler for every change from now on; return how to remove it."""
        self._handlers.append(handler)
        return lambda: self._handlers.remove(handler)

    def enqueue(
        self, add: Callable[[K], None], to_keys: Callable[[T], Iterable[K]]
    ) -> Callable[[], None]:
        """Add the keys that a change affects to a queue, those of the old object and of the new.

        `add` is usually the `add` of a `sully.runtime.workqueue.WorkQueue`.
        """

        def handle(old: T | None, new: T | None) -> None:
            affected = dict.fromkeys(to_keys(old)) if old is not None else {}
            if new is not None:
                affected |= dict.fromkeys(to_keys(new))
            for key in affected:
                add(key)

        return self.on_change(handle)

    @property
    def newest(self) -> LatestStates[T]:
        """Return a source that maps each change by the latest object only."""
        return LatestStates(self)

    def replace(self, items: Sequence[T]) -> None:
        """Replace the whole collection and call handlers for each difference."""
        present = {key_of(obj): obj for obj in items}
        if not self._handlers and not len(self._indexer):
            # A snapshot is being filled: no handlers, and nothing to compare.
            self._indexer.fill(present)
            return
        gone = self._indexer.keys() - present.keys()
        changes: list[tuple[T | None, T | None]] = [
            (self._indexer.remove(key), None) for key in sorted(gone)
        ]
        for key, obj in present.items():
            changes += self._put(key, obj)
        # Handlers see the cache after the list, never a part of it.
        self._notify(changes)

    def change(self, event: WatchEvent[T]) -> None:
        """Apply one watch event."""
        obj = event.object
        if obj is None:
            return
        key = key_of(obj)
        if event.type == "DELETED":
            old = self._indexer.remove(key)
            self._notify([(old, None)] if old is not None else [])
        else:
            self._notify(self._put(key, obj))

    def amend(self, obj: T) -> None:
        """Set an object without calling handlers: it is equal, or the caller calls them."""
        self._indexer.put(key_of(obj), obj)

    def discard(self, key: Key) -> None:
        """Remove an object without calling handlers: the caller calls them."""
        self._indexer.remove(key)

    def _put(self, key: Key, obj: T) -> list[tuple[T | None, T | None]]:
        old = self._indexer.put(key, obj)
        if old is None:
            return [(None, obj)]
        if uid_of(old) != uid_of(obj):
            # Recreated under the same name, and the deletion was missed.
            return [(old, None), (None, obj)]
        return [] if version_of(old) == version_of(obj) else [(old, obj)]

    def _notify(self, changes: Sequence[tuple[T | None, T | None]]) -> None:
        for old, new in changes:
            for handler in list(self._handlers):
                handler(old, new)


class LatestStates(Generic[T]):
    """A source for mappings that read only the key: the old object would map to the same keys."""

    def __init__(self, cache: Cache[T]) -> None:
        self._cache = cache

    def enqueue(
        self, add: Callable[[K], None], to_keys: Callable[[T], Iterable[K]]
    ) -> Callable[[], None]:
        """Add the keys that a change affects to a queue, by the new object, or the deleted one."""

        def handle(old: T | None, new: T | None) -> None:
            latest = new if new is not None else old
            if latest is not None:
                for key in to_keys(latest):
                    add(key)

        return self._cache.on_change(handle)

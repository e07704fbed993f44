"""The objects of one kind in memory, telling of their changes: what views read.

An informer (informer.py) keeps such a copy up to date from a server. A snapshot of a moment
(`views/snapshot.py`) fills one once, so that views cannot tell the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from sully.client.informers.cache import Cache, IndexFunction
from sully.client.objects import key_of, uid_of, version_of
from sully.client.transport import Key, Kind, WatchEvent

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
K = TypeVar("K")

Handler = Callable[[T | None, T | None], None]
"""Takes the old and the new state: (None, new) is an addition, (old, None) a removal."""


class ReadCopy(Protocol[T_co]):
    """What those need of a copy who read it, and take objects that say more than they ask."""

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
        """Call a handler for all that is here and for every change; return how to stop that."""
        ...


class Copy(Generic[T]):
    """A copy of a collection. Objects in it are never changed; others take their place."""

    def __init__(
        self, kind: Kind[T], *, indexes: Mapping[str, IndexFunction[T]] | None = None
    ) -> None:
        self.kind = kind
        self._cache: Cache[T] = Cache(indexes)
        self._handlers: list[Handler[T]] = []

    def fork(self) -> Copy[T]:
        """Return a copy of the same objects that goes its own way, with nobody to tell."""
        fresh = Copy(self.kind)
        fresh._cache = self._cache.fork()
        return fresh

    def __len__(self) -> int:
        """Return how many objects there are."""
        return len(self._cache)

    def get(self, key: Key) -> T | None:
        """Return an object, or None."""
        return self._cache.get(key)

    def keys(self) -> Collection[Key]:
        """Return the keys of all objects, in no order that matters."""
        return self._cache.keys()

    def values(self) -> Collection[T]:
        """Return all objects, in no order that matters."""
        return self._cache.values()

    def by_index(self, index: str, value: str) -> list[T]:
        """Return the objects that an index files under a value, in order of their keys."""
        return self._cache.by_index(index, value)

    def index_values(self, index: str) -> Collection[str]:
        """Return the values under which an index has anything."""
        return self._cache.index_values(index)

    def add_index(self, name: str, function: IndexFunction[T]) -> None:
        """Index all objects, those that are there and those to come."""
        self._cache.add_index(name, function)

    def on_change(self, handler: Handler[T]) -> Callable[[], None]:
        """Call a handler for all that is here and for every change; return how to stop that."""
        self._handlers.append(handler)
        for obj in list(self._cache.values()):
            handler(None, obj)
        return lambda: self._handlers.remove(handler)

    def enqueue(
        self, add: Callable[[K], None], to_keys: Callable[[T], Iterable[K]]
    ) -> Callable[[], None]:
        """Add the keys that a change touches to a queue, those of the old state and of the new.

        `add` is usually the `add` of a `sully.runtime.workqueue.WorkQueue`.
        """

        def handle(old: T | None, new: T | None) -> None:
            touched = dict.fromkeys(to_keys(old)) if old is not None else {}
            if new is not None:
                touched |= dict.fromkeys(to_keys(new))
            for key in touched:
                add(key)

        return self.on_change(handle)

    @property
    def newest(self) -> Newest[T]:
        """Return what tells of each change once, by the state it left."""
        return Newest(self)

    def replace(self, items: Sequence[T]) -> None:
        """Take the whole collection as it is now, and tell of every difference."""
        present = {key_of(obj): obj for obj in items}
        if not self._handlers and not len(self._cache):
            # What a snapshot is filled with: nobody to tell, and nothing to compare.
            for key, obj in present.items():
                self._cache.put(key, obj)
            return
        gone = self._cache.keys() - present.keys()
        changes: list[tuple[T | None, T | None]] = [
            (self._cache.remove(key), None) for key in sorted(gone)
        ]
        for key, obj in present.items():
            changes += self._put(key, obj)
        # Handlers see the cache as it is after the list, never halfway.
        self._tell(changes)

    def change(self, event: WatchEvent[T]) -> None:
        """Take one event of the watch."""
        obj = event.object
        if obj is None:
            return
        key = key_of(obj)
        if event.type == "DELETED":
            old = self._cache.remove(key)
            self._tell([(old, None)] if old is not None else [])
        else:
            self._tell(self._put(key, obj))

    def amend(self, obj: T) -> None:
        """Take another state of an object, and tell nobody: it is the same to all who listen."""
        self._cache.put(key_of(obj), obj)

    def _put(self, key: Key, obj: T) -> list[tuple[T | None, T | None]]:
        old = self._cache.put(key, obj)
        if old is None:
            return [(None, obj)]
        if uid_of(old) != uid_of(obj):
            # Another object took the name, and we did not see the first one go.
            return [(old, None), (None, obj)]
        return [] if version_of(old) == version_of(obj) else [(old, obj)]

    def _tell(self, changes: Sequence[tuple[T | None, T | None]]) -> None:
        for old, new in changes:
            for handler in list(self._handlers):
                handler(old, new)


class Newest(Generic[T]):
    """A copy for those who look at the key and at what is cached now, never at the state given.

    To ask them about the old state and the new would be to ask the same question twice.
    """

    def __init__(self, copy: Copy[T]) -> None:
        self._copy = copy

    def enqueue(
        self, add: Callable[[K], None], to_keys: Callable[[T], Iterable[K]]
    ) -> Callable[[], None]:
        """Add the keys that a change touches to a queue, by the new state, or the last one."""

        def handle(old: T | None, new: T | None) -> None:
            left = new if new is not None else old
            if left is not None:
                for key in to_keys(left):
                    add(key)

        return self._copy.on_change(handle)

"""An index of stored objects by a value, updated by the store and by writes in flight.

Its keys are hints: an object may have just been changed or deleted, so a decision reads the newest
state of each key. An object that is not indexed does not exist and is not being written.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, Protocol

from sully.machinery.multimap import Multimap
from sully.server.storage.objects import Objects
from sully.store.base import Record, StoreKey

Obj = dict[str, Any]


class NewestRecords(Protocol):
    """A store, or what a transaction makes of it."""

    def newest(self, key: StoreKey) -> Record | None:
        """Return the newest state of a key."""
        ...


class StoreIndex:
    """Keys of one resource by a value of each object; a handler of a `StoreInformer`."""

    def __init__(
        self,
        store: NewestRecords,
        objects: Objects,
        resource: str,
        value_of: Callable[[Obj], str | None],
    ) -> None:
        """`value_of` returns None for objects that are not indexed."""
        self._store = store
        self._objects = objects
        self._resource = resource
        self._value_of = value_of
        self._keys: Multimap[str, StoreKey] = Multimap()
        self.values: dict[StoreKey, str] = {}

    def over(self, store: NewestRecords) -> "StoreIndex":
        """Return the same index, by which states are read from another store."""
        other = copy(self)
        other._store = store
        return other

    def keys_of(self, value: str) -> Collection[StoreKey]:
        """Return the keys under a value."""
        return self._keys.get(value)

    def newest(self, value: str) -> list[Record]:
        """Return the newest records under a value, in order."""
        records = map(self._store.newest, sorted(self.keys_of(value)))
        return [record for record in records if record is not None]

    @contextmanager
    def indexed_while_written(self, key: StoreKey, obj: Obj) -> Iterator[None]:
        """Index a new object while it is being written, which may fail."""
        if self._store.newest(key) is None:
            self._set(key, self._value_of(obj))
        try:
            yield
        finally:
            self._reindex(key)

    def put(self, obj: Obj) -> None:
        """Index an object by its newest state, which may be newer than this one."""
        metadata = obj["metadata"]
        self.drop(metadata.get("namespace", ""), metadata["name"])

    def drop(self, namespace: str, name: str) -> None:
        """Index an object again after a change or a deletion."""
        self._reindex(StoreKey(self._resource, namespace, name))

    def _reindex(self, key: StoreKey) -> None:
        record = self._store.newest(key)
        self._set(key, None if record is None else self._value_of(self._objects.bare(record)))

    def _set(self, key: StoreKey, value: str | None) -> None:
        previous = self.values.get(key)
        if previous == value:
            return
        if previous is not None:
            self._keys.discard(previous, key)
            del self.values[key]
        if value is not None:
            self.values[key] = value
            self._keys.add(value, key)

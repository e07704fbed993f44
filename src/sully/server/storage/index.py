"""An index of stored objects by something they say, fed by the store and by what was just accepted.

What it names are hints: an object may have just been changed or deleted, so who decides by it
looks at the newest state of each key. What it does not name is not there, nor about to be.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from sully.server.storage.objects import Objects
from sully.store.base import Record, Store, StoreKey

Obj = dict[str, Any]


class Filing:
    """Keys of one resource, by a value of each object; a sink of a `Feed`."""

    def __init__(
        self, store: Store, objects: Objects, resource: str, value_of: Callable[[Obj], str | None]
    ) -> None:
        """`value_of` returns None for objects that are not to be filed."""
        self._store = store
        self._objects = objects
        self._resource = resource
        self._value_of = value_of
        self._keys: dict[str, set[StoreKey]] = {}
        self.values: dict[StoreKey, str] = {}

    def under(self, value: str) -> Collection[StoreKey]:
        """Return the keys filed under a value."""
        return self._keys.get(value, ())

    def newest(self, value: str) -> list[Record]:
        """Return the newest state of what is filed under a value, in order."""
        found = map(self._store.newest, sorted(self.under(value)))
        return [record for record in found if record is not None]

    @contextmanager
    def accepting(self, key: StoreKey, obj: Obj) -> Iterator[None]:
        """File a new object while it is being written; it may come to nothing."""
        if self._store.newest(key) is None:
            self._file(key, self._value_of(obj))
        try:
            yield
        finally:
            self._refile(key)

    def put(self, obj: Obj) -> None:
        """File an object; its newest state counts, which may be newer than this one."""
        metadata = obj["metadata"]
        self.drop(metadata.get("namespace", ""), metadata["name"])

    def drop(self, namespace: str, name: str) -> None:
        """Look at an object again that changed or went."""
        self._refile(StoreKey(self._resource, namespace, name))

    def _refile(self, key: StoreKey) -> None:
        record = self._store.newest(key)
        self._file(key, None if record is None else self._value_of(self._objects.bare(record)))

    def _file(self, key: StoreKey, value: str | None) -> None:
        before = self.values.get(key)
        if before == value:
            return
        if before is not None:
            self._keys[before].discard(key)
            if not self._keys[before]:
                del self._keys[before]
            del self.values[key]
        if value is not None:
            self.values[key] = value
            self._keys.setdefault(value, set()).add(key)

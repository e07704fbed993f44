"""Objects by key and by index: the storage of a cache, as client-go's Indexer.

An index function maps an object to the values under which it is found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, KeysView, Mapping
from sys import intern
from typing import Generic, TypeVar

from sully.client.transport import Key
from sully.machinery.multimap import Multimap

T = TypeVar("T")

IndexFunction = Callable[[T], Iterable[str]]


class Indexer(Generic[T]):
    """Objects of one kind. They are never modified, only replaced."""

    def __init__(self, indexes: Mapping[str, IndexFunction[T]] | None = None) -> None:
        self._objects: dict[Key, T] = {}
        self._indexes: dict[str, _Index[T]] = {}
        for name, function in (indexes or {}).items():
            self.add_index(name, function)

    def fork(self) -> Indexer[T]:
        """Return an independent indexer of the same objects, without indexes."""
        fresh: Indexer[T] = Indexer()
        fresh._objects = self._objects.copy()
        return fresh

    def __len__(self) -> int:
        """Return how many objects there are."""
        return len(self._objects)

    def get(self, key: Key) -> T | None:
        """Return an object, or None."""
        return self._objects.get(key)

    def keys(self) -> KeysView[Key]:
        """Return the keys of all objects, in no order that matters."""
        return self._objects.keys()

    def values(self) -> Collection[T]:
        """Return all objects, in no order that matters."""
        return self._objects.values()

    def by_index(self, index: str, value: str) -> list[T]:
        """Return the objects that an index has under a value, in order of their keys."""
        return [self._objects[key] for key in self.keys_by_index(index, value)]

    def keys_by_index(self, index: str, value: str) -> list[Key]:
        """Return the keys that an index has under a value, in order."""
        return sorted(self._indexes[index].keys.get(value))

    def index_values(self, index: str) -> Collection[str]:
        """Return the values under which an index has anything."""
        return self._indexes[index].keys.keys()

    def has_index(self, name: str) -> bool:
        """Report whether there is an index of this name."""
        return name in self._indexes

    def add_index(self, name: str, function: IndexFunction[T]) -> None:
        """Index all objects, present and future."""
        if name in self._indexes:
            raise ValueError(f"index {name!r} already exists")
        index = self._indexes[name] = _Index(function)
        for key, obj in self._objects.items():
            index.put(key, obj)

    def fill(self, objects: dict[Key, T]) -> None:
        """Take all objects of an indexer that has none yet."""
        self._objects = objects
        for index in self._indexes.values():
            for key, obj in objects.items():
                index.put(key, obj)

    def put(self, key: Key, obj: T) -> T | None:
        """Set an object and return the one that it replaces."""
        old = self._objects.get(key)
        self._objects[key] = obj
        for index in self._indexes.values():
            index.put(key, obj)
        return old

    def remove(self, key: Key) -> T | None:
        """Remove an object and return it."""
        for index in self._indexes.values():
            index.remove(key)
        return self._objects.pop(key, None)


class _Index(Generic[T]):
    """One index: values to keys, and back."""

    def __init__(self, function: IndexFunction[T]) -> None:
        self._function = function
        self.keys: Multimap[str, Key] = Multimap()
        # Not computed again from the old object: a careless reader may have modified an untyped
        # one, which could then never be removed.
        self._values: dict[Key, tuple[str, ...]] = {}

    def put(self, key: Key, obj: T) -> None:
        new = tuple(self._function(obj))
        if new == self._values.get(key, ()):
            return
        self.remove(key)
        # Other objects have the same values: they share one string.
        self._values[key] = new = tuple(map(intern, new))
        for value in new:
            self.keys.add(value, key)

    def remove(self, key: Key) -> None:
        for value in self._values.pop(key, ()):
            self.keys.discard(value, key)

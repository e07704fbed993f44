"""A cache that also has the writes of its reader before the informer does, like MutationCache of
client-go.

A controller that decides from a cache without its own writes decides twice, and two such
controllers may never settle. The response to a write is newer than the informer, so it is used
immediately; older events that arrive later are ignored.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TypeVar

from sully.client.informers.cache import Cache
from sully.client.informers.indexer import IndexFunction
from sully.client.objects import key_of, uid_of, version_of

T = TypeVar("T")

_MAX_DELETED = 1000
"""How many deleted objects are cached, for responses that arrive after the deletion."""


class MutationCache(Cache[T]):
    """The newest known state of a collection."""

    def __init__(
        self, source: Cache[T], *, indexes: Mapping[str, IndexFunction[T]] | None = None
    ) -> None:
        super().__init__(source.kind, indexes=indexes)
        self._deleted: OrderedDict[str, None] = OrderedDict()
        source.on_change(self._on_event)

    def mutated(self, obj: T) -> None:
        """Store the response to a write."""
        key = key_of(obj)
        current = self.get(key)
        if uid_of(obj) in self._deleted or (current is not None and not is_newer(obj, current)):
            return
        self._notify(self._put(key, obj))

    def deleted(self, obj: T) -> None:
        """Remove an object that the server deleted."""
        self._deleted[uid_of(obj)] = None
        if len(self._deleted) > _MAX_DELETED:
            self._deleted.popitem(last=False)
        key = key_of(obj)
        current = self.get(key)
        if current is not None and uid_of(current) == uid_of(obj):
            self._indexer.remove(key)
            self._notify([(current, None)])

    def _on_event(self, old: T | None, new: T | None) -> None:
        if new is not None:
            self.mutated(new)
        elif old is not None:
            self.deleted(old)


def is_newer(one: object, other: object) -> bool:
    """Report whether one object has a higher resourceVersion than another."""
    return int(version_of(one)) > int(version_of(other))

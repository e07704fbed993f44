"""The newest state of the objects of one resource, by a value of each object.

For decisions about writes: they are found by an index of hints and read from the store, so a write
that was acknowledged is never missed.
"""

from collections.abc import Callable
from typing import Any

from sully.runtime.clock import Clock
from sully.server.storage.index import StoreIndex
from sully.server.storage.informer import StoreInformer, keep_current
from sully.server.storage.objects import Objects
from sully.store.base import Store

Obj = dict[str, Any]


class NewestObjects:
    """Objects of one resource by a value."""

    def __init__(
        self, store: Store, objects: Objects, resource: str, value_of: Callable[[Obj], str | None]
    ) -> None:
        """`value_of` returns None for objects that are not asked for."""
        self._objects = objects
        self._index = StoreIndex(store, objects, resource, value_of)
        self._informer = StoreInformer(store, objects, {resource: self._index})

    async def start(self) -> None:
        """Load the objects."""
        await self._informer.open()

    async def run(self, clock: Clock) -> None:
        """Keep the index current until the server stops."""
        await keep_current(clock, self._informer)

    def of(self, value: str) -> list[Obj]:
        """Return the objects with a value, by name."""
        self._informer.pull()
        return [self._objects.live(record) for record in self._index.newest(value)]

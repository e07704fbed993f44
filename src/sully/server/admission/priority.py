"""Finds the PriorityClass that pods without one get.

The class is found by an index of hints, as quotas are: the newest state counts, so a write that
was acknowledged is never missed.
"""

from contextlib import suppress
from typing import Any

from sully.runtime.clock import Clock
from sully.server.storage.index import StoreIndex
from sully.server.storage.informer import StoreInformer
from sully.server.storage.objects import Objects
from sully.store.base import Store
from sully.store.errors import ClosedError

Obj = dict[str, Any]

_CLASSES = "scheduling.k8s.io/priorityclasses"
_PULL_SECONDS = 1.0
_DEFAULT = "default"


class DefaultPriorityClass:
    """The class with `globalDefault`."""

    def __init__(self, store: Store, objects: Objects) -> None:
        self._objects = objects
        self._index = StoreIndex(
            store, objects, _CLASSES, lambda obj: _DEFAULT if obj.get("globalDefault") else None
        )
        self._informer = StoreInformer(store, objects, {_CLASSES: self._index})

    async def start(self) -> None:
        """Load the classes."""
        await self._informer.open()

    async def run(self, clock: Clock) -> None:
        """Keep the index current until the server stops."""
        with suppress(ClosedError):
            while True:
                await self._informer.catch_up()
                await clock.sleep(_PULL_SECONDS)

    def get(self) -> Obj | None:
        """Return the class; of several the one with the lowest value."""
        self._informer.pull()
        classes = [self._objects.live(record) for record in self._index.newest(_DEFAULT)]
        return min(classes, key=lambda obj: int(obj["value"]), default=None)

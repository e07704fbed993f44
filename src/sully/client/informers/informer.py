"""An informer: a cache that a reflector keeps up to date, as in client-go.

Event handlers run in the event loop, synchronously and in order, so none misses a change. A handler
must not block; it turns a change into keys for a work queue. A controller then takes a key and
reads the cache: how many events a key had meanwhile does not matter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from sully.client.informers.cache import Cache
from sully.client.informers.freshness import InformerFreshness
from sully.client.informers.indexer import IndexFunction
from sully.client.informers.outages import Outages
from sully.client.informers.reflector import EVERYTHING, ObjectSelector, Observer, Reflector
from sully.client.objects import key_of
from sully.client.transport import Key, Kind, Transport, WatchEvent
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock

T = TypeVar("T")


class Informer(Cache[T]):
    """Lists and watches a collection and caches it.

    Start `run` in a TaskGroup, and wait for `wait_synced` before reading.
    """

    def __init__(
        self,
        transport: Transport,
        kind: Kind[T],
        *,
        clock: Clock,
        selector: ObjectSelector = EVERYTHING,
        indexes: Mapping[str, IndexFunction[T]] | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        super().__init__(kind, indexes=indexes)
        self._transform: Callable[[T], T] | None = None
        self._synced = asyncio.Event()
        self._reflector = Reflector(
            transport, kind, self, clock=clock, selector=selector, backoff=backoff
        )

    def set_transform(self, transform: Callable[[T], T]) -> None:
        """Apply a function to each object before it is cached; call it before `run`."""
        self._transform = transform

    async def run(self) -> None:
        """List and watch until cancelled."""
        await self._reflector.run()

    @property
    def synced(self) -> bool:
        """Report whether the collection was listed at least once."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Wait until the collection was listed and handlers were called."""
        await self._synced.wait()

    @property
    def freshness(self) -> InformerFreshness:
        """Return how fresh the cache is."""
        return self._reflector.freshness

    def report_to(self, outages: Outages, observer: Observer | None = None) -> None:
        """Report outages together with others, and count with an observer."""
        self._reflector.report_to(outages, observer)

    def refresh(self) -> None:
        """List everything again; `freshness` is confirmed by it."""
        self._reflector.refresh()

    def replace(self, items: Sequence[T]) -> None:
        """Replace the whole collection and call handlers for each difference."""
        transform = self._transform
        super().replace(items if transform is None else list(map(transform, items)))
        self._synced.set()

    def change(self, event: WatchEvent[T]) -> None:
        """Apply one watch event."""
        if self._transform is not None and event.object is not None:
            event = replace(event, object=self._transform(event.object))
        super().change(event)


def own_key(obj: object) -> tuple[Key]:
    """Map an object to its own key, for `Informer.enqueue`."""
    return (key_of(obj),)

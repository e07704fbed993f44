"""A cached copy of a collection that tells of its changes: what controllers and views read.

Handlers run in the loop, at once and in the order of the changes, so none can miss one; a handler
must not wait, and what it learns it turns into keys for a work queue. A controller then takes a
key and reads the cache: how many events a key had in between does not matter. The copy itself is
collection.py's; what keeps it up to date is reflector.py's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TypeVar

from sully.client.informers.cache import IndexFunction
from sully.client.informers.collection import Copy
from sully.client.informers.freshness import Contact
from sully.client.informers.outages import Troubles
from sully.client.informers.reflector import EVERYTHING, Observer, Reflector, Selection
from sully.client.objects import key_of
from sully.client.transport import Key, Kind, Transport
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock

T = TypeVar("T")


class Informer(Copy[T]):
    """Follows a collection and keeps it in memory.

    Whoever makes an informer starts `run` in a TaskGroup and waits for `wait_synced` before
    trusting what it reads.
    """

    def __init__(
        self,
        transport: Transport,
        kind: Kind[T],
        *,
        clock: Clock,
        selection: Selection = EVERYTHING,
        indexes: Mapping[str, IndexFunction[T]] | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        super().__init__(kind, indexes=indexes)
        self._synced = asyncio.Event()
        self._reflector = Reflector(
            transport, kind, self, clock=clock, selection=selection, backoff=backoff
        )

    async def run(self) -> None:
        """Follow the collection until cancelled."""
        await self._reflector.run()

    @property
    def synced(self) -> bool:
        """Say whether the whole collection was seen at least once."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Wait until the whole collection was seen and handlers know of it."""
        await self._synced.wait()

    @property
    def contact(self) -> Contact:
        """Return how sure the cache is."""
        return self._reflector.contact

    def report_to(self, troubles: Troubles, observer: Observer | None = None) -> None:
        """Share the telling of troubles with others, and have what is done counted."""
        self._reflector.report_to(troubles, observer)

    def refresh(self) -> None:
        """Have the server confirm the cache, as soon as it can; `contact` tells of it."""
        self._reflector.refresh()

    def replace(self, items: Sequence[T]) -> None:
        """Take the whole collection as it is now, and tell of every difference."""
        super().replace(items)
        self._synced.set()


def own_key(obj: object) -> tuple[Key]:
    """Map an object to its own key, for `Informer.enqueue`."""
    return (key_of(obj),)

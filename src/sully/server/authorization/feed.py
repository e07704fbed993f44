"""Keeps what is derived from stored objects in step with the store.

A question takes the newest events first (`pull`), so an answer never lags behind a write that was
acknowledged before it. That needs no waiting: a subscription is a place in a log. `catch_up` is
called from time to time, so that no watch falls behind the compaction of the store.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from sully.runtime.log import get_logger
from sully.server.storage.objects import Objects
from sully.store.base import Event, Store, StoreKey, Subscription
from sully.store.errors import ClosedError, CompactedError, UnavailableError

Obj = dict[str, Any]
_log = get_logger("authorization")


class Sink(Protocol):
    """Takes in the objects of one resource."""

    def put(self, obj: Obj) -> None:
        """Take in a new or changed object."""
        ...

    def drop(self, namespace: str, name: str) -> None:
        """Forget an object."""
        ...


class Feed:
    """Brings the objects of some resources to those who derive something from them."""

    def __init__(self, store: Store, objects: Objects, sinks: Mapping[str, Sink]) -> None:
        self._store = store
        self._objects = objects
        self._sinks = sinks
        self._open: dict[str, Subscription] = {}
        self._known: dict[str, set[StoreKey]] = {resource: set() for resource in sinks}
        self._seen = 0
        self.lost = False
        """Whether events may have been missed; `catch_up` lists again."""

    async def open(self) -> None:
        """Take in all there is and follow from there; also after having lost the thread."""
        for resource, sink in self._sinks.items():
            if resource not in self._open:
                page = await self._store.list(resource)
                now = {record.key for record in page.records}
                for gone in self._known[resource] - now:
                    sink.drop(gone.namespace, gone.name)
                for record in page.records:
                    sink.put(self._objects.bare(record))
                self._known[resource] = now
                self._open[resource] = self._store.watch(resource, after=page.revision)
        self._seen = 0
        self.lost = False

    def pull(self) -> None:
        """Take in what has happened since the last time."""
        if self._store.revision == self._seen:
            return
        self._seen = self._store.revision
        for resource, subscription in list(self._open.items()):
            try:
                events = subscription.take()
            except CompactedError:
                # Answers are from before until `catch_up` has listed again, a moment later.
                _log.warning("watch expired, relisting", resource=resource)
                del self._open[resource]
                self.lost = True
                continue
            except ClosedError:
                return
            for event in events:
                self._apply(resource, event)

    def _apply(self, resource: str, event: Event) -> None:
        key, sink = event.record.key, self._sinks[resource]
        if event.kind == "DELETED":
            self._known[resource].discard(key)
            sink.drop(key.namespace, key.name)
        else:
            self._known[resource].add(key)
            sink.put(self._objects.bare(event.record))

    async def catch_up(self) -> None:
        """Take in what has happened, and list again what the thread was lost of."""
        self.pull()
        if len(self._open) < len(self._sinks):
            try:
                await self.open()
            except UnavailableError as error:
                # The next time will do: who keeps up with a store must outlive its pauses.
                _log.warning("failed to relist", error=str(error))

"""An informer inside the server: keeps indexes in step with the store.

Readers first apply the newest events (`pull`), so they never lag behind an acknowledged write. That
needs no waiting: a subscription is a position in a log. `catch_up` is called from time to time, so
that no watch falls behind the compaction of the store.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from sully.runtime.clock import Clock
from sully.runtime.log import get_logger
from sully.server.storage.objects import Objects
from sully.store.base import Event, Store, StoreKey, Subscription
from sully.store.errors import ClosedError, CompactedError, UnavailableError

Obj = dict[str, Any]
_log = get_logger("server")

PULL_SECONDS = 1.0
"""How often events are applied that no reader asked for."""


class ObjectHandler(Protocol):
    """Handles the objects of one resource."""

    def put(self, obj: Obj) -> None:
        """Add or replace an object."""
        ...

    def drop(self, namespace: str, name: str) -> None:
        """Remove an object."""
        ...


class StoreInformer:
    """Passes the objects of some resources to handlers."""

    def __init__(
        self, store: Store, objects: Objects, handlers: Mapping[str, ObjectHandler]
    ) -> None:
        self._store = store
        self._objects = objects
        self._handlers = handlers
        self._open: dict[str, Subscription] = {}
        self._keys: dict[str, set[StoreKey]] = {resource: set() for resource in handlers}
        self._revision = 0
        self.expired = False
        """Whether events may have been missed; `catch_up` lists again."""

    async def open(self) -> None:
        """List all objects and watch from there; again after the watch expired."""
        for resource, handler in self._handlers.items():
            if resource not in self._open:
                page = await self._store.list(resource)
                listed = {record.key for record in page.records}
                for deleted in self._keys[resource] - listed:
                    handler.drop(deleted.namespace, deleted.name)
                for record in page.records:
                    handler.put(self._objects.bare(record))
                self._keys[resource] = listed
                self._open[resource] = self._store.watch(resource, after=page.revision)
        self._revision = 0
        self.expired = False

    def pull(self) -> None:
        """Apply the events since the last call."""
        revision = self._store.revision
        if revision == self._revision:
            return
        self._revision = revision
        for resource, subscription in list(self._open.items()):
            try:
                events = subscription.take()
            except CompactedError:
                # Indexes are stale until `catch_up` has listed again, a moment later.
                _log.warning("watch expired, relisting", resource=resource)
                del self._open[resource]
                self.expired = True
                continue
            except ClosedError:
                return
            # Handlers have one state of each object, so only its newest one has to be decoded. An
            # object that was recreated is another one: its deletion counts.
            newest: dict[StoreKey, Event] = {}
            for event in events:
                if event.kind == "DELETED":
                    newest.pop(event.record.key, None)
                    self._apply(resource, event)
                else:
                    newest[event.record.key] = event
            for event in newest.values():
                self._apply(resource, event)

    async def wait(self) -> None:
        """Wait until one of the resources changes, or its watch ends."""
        for subscription in self._open.values():
            await subscription.wait()

    def _apply(self, resource: str, event: Event) -> None:
        key, handler = event.record.key, self._handlers[resource]
        if event.kind == "DELETED":
            self._keys[resource].discard(key)
            handler.drop(key.namespace, key.name)
        else:
            self._keys[resource].add(key)
            handler.put(self._objects.bare(event.record))

    async def catch_up(self) -> None:
        """Apply events, and list again what expired."""
        self.pull()
        if len(self._open) < len(self._handlers):
            try:
                await self.open()
            except UnavailableError as error:
                # Retried with the next call.
                _log.warning("failed to relist", error=str(error))


async def keep_current(clock: Clock, *informers: StoreInformer) -> None:
    """Apply events from time to time until the store is closed."""
    with suppress(ClosedError):
        while True:
            for informer in informers:
                await informer.catch_up()
            await clock.sleep(PULL_SECONDS)

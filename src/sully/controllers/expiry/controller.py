"""Deletes rules and patches whose time has come: the annotation `sully.dev/expires-at`.

A key is looked at when its object changes and exactly at its time; an annotation that was moved or
removed meanwhile is read again then, so nothing has to be cancelled.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Generic, TypeVar

from sully.api.resource.annotations import EXPIRES_AT, expiry
from sully.api.resource.types import DeviceTaintRule, ResourceSlicePatch
from sully.client.events import EventRecorder, reference
from sully.client.informers.informer import Informer, own_key
from sully.client.options import DeleteOptions
from sully.client.transport import Key, Transport
from sully.controllers.framework import DONE, Result, Watch
from sully.machinery.errors import NotFound
from sully.runtime.clock import Clock

NAME = "taint-expiry-controller"

T = TypeVar("T", DeviceTaintRule, ResourceSlicePatch)


class ExpiryController(Generic[T]):
    """Ends objects of one kind."""

    name = NAME

    def __init__(
        self,
        objects: Informer[T],
        *,
        transport: Transport,
        recorder: EventRecorder,
        clock: Clock,
    ) -> None:
        self._objects: Informer[T] = objects
        self.name = f"{NAME}-{objects.kind.plural}"
        self._transport = transport
        self._recorder = recorder
        self._clock = clock

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for every object; most have no time and are done at once."""
        yield Watch(self._objects, own_key)

    async def reconcile(self, key: Key) -> Result:
        """Delete an object whose time has come, or come back at that time."""
        found = self._objects.get(key)
        if found is None or found.metadata.deletion_timestamp is not None:
            return DONE
        ends = expiry(found.metadata.annotations)
        if ends is None:
            return DONE
        left = ends - self._clock.now()
        if left > timedelta(0):
            return Result(requeue_after=left)
        await self._end(key, found)
        return DONE

    async def _end(self, key: Key, found: T) -> None:
        metadata = found.metadata
        # The version too: a rule whose time was moved just now must stay.
        only = DeleteOptions(uid=metadata.uid, resource_version=metadata.resource_version)
        kind = self._objects.kind
        try:
            await self._transport.delete(kind, key, only)
        except NotFound:
            return
        text = f"Deleted because its time, {metadata.annotations[EXPIRES_AT]}, has come"
        self._recorder.event(reference(kind, found), "Normal", "Expired", text)

"""Deletes expired rules and patches, by the annotation `sully.dev/expires-at`.

A key is reconciled when its object changes, and requeued for when it expires; then the annotation
is read again, so a requeue need not be cancelled when it changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Generic, TypeVar

from sully.api.resource.annotations import EXPIRES_AT, expiry
from sully.api.resource.types import DeviceTaintRule, ResourceSlicePatch
from sully.client.events import reference
from sully.client.informers.informer import Informer, own_key
from sully.client.options import DeleteOptions
from sully.client.transport import Key
from sully.controllers.framework.controller import DONE, ControllerEnv, Result, Watch
from sully.controllers.framework.event_reasons import EXPIRED
from sully.machinery.errors import NotFound

NAME = "taint-expiry-controller"

T = TypeVar("T", DeviceTaintRule, ResourceSlicePatch)


class ExpiryController(Generic[T]):
    """Deletes expired objects of one kind."""

    name = NAME

    def __init__(
        self,
        objects: Informer[T],
        *,
        env: ControllerEnv,
    ) -> None:
        self._objects: Informer[T] = objects
        self.name = f"{NAME}-{objects.kind.plural}"
        self._transport, self._recorder, self._clock = env

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for every object; most do not expire."""
        yield Watch(self._objects, own_key)

    async def reconcile(self, key: Key) -> Result:
        """Delete an expired object, or requeue it for when it expires."""
        obj = self._objects.get(key)
        if obj is None or obj.metadata.deletion_timestamp is not None:
            return DONE
        expires_at = expiry(obj.metadata.annotations)
        if expires_at is None:
            return DONE
        remaining = expires_at - self._clock.now()
        if remaining > timedelta(0):
            return Result(requeue_after=remaining)
        await self._delete(key, obj)
        return DONE

    async def _delete(self, key: Key, obj: T) -> None:
        metadata = obj.metadata
        # Also the version: an object whose annotation was just changed must stay.
        preconditions = DeleteOptions(uid=metadata.uid, resource_version=metadata.resource_version)
        kind = self._objects.kind
        try:
            await self._transport.delete(kind, key, preconditions)
        except NotFound:
            return
        text = f"Deleted because it expired at {metadata.annotations[EXPIRES_AT]}"
        self._recorder.event(reference(kind, obj), "Normal", EXPIRED, text)

"""The verbs of `Transport` as calls: what both transports share.

A `Call` is a verb with everything that belongs to it, in the form of the wire. A transport only
implements how a call is sent and how its response is read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from sully.client.objects import key_of, to_body
from sully.client.options import (
    DEFAULT_DELETE,
    DEFAULT_LIST,
    DEFAULT_WATCH,
    DEFAULT_WRITE,
    DeleteOptions,
    ListOptions,
    PatchType,
    WatchOptions,
    WriteOptions,
)
from sully.client.transport import Key, Kind, Page, ResourceRef, WatchEvent
from sully.machinery.errors import BadRequest
from sully.machinery.serialization.codec import copy

T = TypeVar("T")

READS = frozenset(("get", "list", "watch"))
WriteGuard = Callable[[], float]
"""Returns the seconds in which a write must end, or raises if none may start."""


class Call(msgspec.Struct, frozen=True):
    """One call of a verb."""

    verb: str
    ref: ResourceRef
    options: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: Any = None
    patch_type: str = ""
    opened: Callable[[], None] | None = None
    """Called when the response to a watch begins."""


def object_ref(kind: Kind[Any], key: Key, subresource: str = "") -> ResourceRef:
    """Name one object. A key that names less is rejected: it would mean the whole collection."""
    if not key.name:
        raise BadRequest(f"{kind.plural}: a name must be given")
    return _placed_ref(kind, key, subresource)


def _placed_ref(kind: Kind[Any], key: Key, subresource: str = "") -> ResourceRef:
    if kind.namespaced and not key.namespace:
        what = f"{kind.plural} {key.name}".rstrip()
        raise BadRequest(f"{what}: a namespace must be given")
    return kind.ref(key, subresource)


class Calls(ABC):
    """Turns the methods of `Transport` into calls."""

    @abstractmethod
    async def _object(self, kind: Kind[T], call: Call) -> T:
        """Send a call whose response is an object."""

    @abstractmethod
    async def _page(self, kind: Kind[T], call: Call) -> Page[T]:
        """Send a call whose response is a list."""

    @abstractmethod
    async def _done(self, call: Call) -> None:
        """Send a call without a result."""

    @abstractmethod
    def _events(self, kind: Kind[T], call: Call) -> AsyncGenerator[WatchEvent[T], None]:
        """Send a call whose response is a watch."""

    async def list(
        self, kind: Kind[T], namespace: str = "", options: ListOptions = DEFAULT_LIST
    ) -> Page[T]:
        """Return objects, of all namespaces if none is given."""
        return await self._page(kind, Call("list", kind.ref(Key(namespace, "")), options.query()))

    def watch(
        self, kind: Kind[T], namespace: str = "", options: WatchOptions = DEFAULT_WATCH
    ) -> AsyncGenerator[WatchEvent[T], None]:
        """Follow changes until the server ends the watch."""
        ref = kind.ref(Key(namespace, ""))
        return self._events(kind, Call("watch", ref, options.query(), opened=options.opened))

    async def get(
        self, kind: Kind[T], key: Key, subresource: str = "", resource_version: str = ""
    ) -> T:
        """Return one object."""
        options = {"resourceVersion": resource_version} if resource_version else {}
        return await self._object(kind, Call("get", object_ref(kind, key, subresource), options))

    async def create(
        self,
        kind: Kind[T],
        obj: object,
        subresource: str = "",
        options: WriteOptions = DEFAULT_WRITE,
    ) -> T:
        """Create an object, or send something to a subresource of an existing one."""
        key = key_of(obj)
        if subresource:
            ref = object_ref(kind, key, subresource)
        else:
            # The name of a new object is in its body; the path names only what exists.
            ref = _placed_ref(kind, Key(key.namespace, ""))
        return await self._object(kind, Call("create", ref, options.query(), to_body(kind, obj)))

    async def update(
        self,
        kind: Kind[T],
        obj: object,
        subresource: str = "",
        options: WriteOptions = DEFAULT_WRITE,
    ) -> T:
        """Replace an object."""
        ref = object_ref(kind, key_of(obj), subresource)
        return await self._object(kind, Call("update", ref, options.query(), to_body(kind, obj)))

    async def patch(
        self,
        kind: Kind[T],
        key: Key,
        patch: Mapping[str, Any] | Sequence[Any],
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
        options: WriteOptions = DEFAULT_WRITE,
    ) -> T:
        """Change parts of an object."""
        ref = object_ref(kind, key, subresource)
        return await self._object(
            kind, Call("patch", ref, options.query(), copy(patch), patch_type.value)
        )

    async def apply(
        self,
        kind: Kind[T],
        obj: object,
        options: WriteOptions,
        subresource: str = "",
    ) -> T:
        """Declare the fields this manager wants."""
        ref = object_ref(kind, key_of(obj), subresource)
        body = to_body(kind, obj)
        return await self._object(
            kind, Call("apply", ref, options.query(), body, PatchType.APPLY.value)
        )

    async def delete(
        self, kind: Kind[T], key: Key, options: DeleteOptions = DEFAULT_DELETE
    ) -> None:
        """Delete an object, or begin to."""
        await self._done(Call("delete", object_ref(kind, key), options.query(), options.body()))

    async def delete_collection(
        self,
        kind: Kind[T],
        namespace: str = "",
        selection: ListOptions = DEFAULT_LIST,
        options: DeleteOptions = DEFAULT_DELETE,
    ) -> None:
        """Delete all objects that the selectors choose."""
        ref = kind.ref(Key(namespace, ""))
        query = selection.query() | options.query()
        await self._done(Call("deletecollection", ref, query, options.body()))

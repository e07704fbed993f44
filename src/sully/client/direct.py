"""The in-process transport: calls the verbs of an embedded server, with no socket.

`Verbs` is the interface of such a server; it is declared here, where it is used, and the server
implements it without importing this package. A typed object is read once per stored revision (from
the stored JSON if that is not decoded yet), and then shared by all readers: it is frozen.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Hashable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from typing import Any, Protocol, TypeVar, cast

from sully.client.calls import READS, Call, Calls, WriteGuard
from sully.client.http.json_answers import read_object
from sully.client.objects import from_body, version_of
from sully.client.transport import (
    EventType,
    Kind,
    Page,
    ResourceRef,
    UnreachableError,
    UnreadableError,
    WatchEvent,
)
from sully.runtime.deadlines import within

T = TypeVar("T")


class Reply(Protocol):
    """An object as the server stores it."""

    @property
    def obj(self) -> Mapping[str, Any]:
        """Return the object with its kind and apiVersion; it is shared and never changed."""
        ...

    @property
    def document(self) -> bytes | None:
        """Return the object as JSON, or None if `obj` costs less."""
        ...

    @property
    def memo(self) -> dict[Hashable, Any]:
        """Return the cache of what readers derived from this revision."""
        ...

    @property
    def items(self) -> Sequence[Reply]:
        """Return the objects of a list; empty for an object."""
        ...


class Verbs(Protocol):
    """An API server in this process. Errors are raised as ApiErrors."""

    async def call(
        self,
        verb: str,
        ref: ResourceRef,
        *,
        body: Any = None,
        options: Mapping[str, str] = {},
        patch_type: str = "",
    ) -> Reply:
        """Do what an HTTP request with this verb, path, query and body would do."""
        ...

    async def commit(self, writes: Sequence[Call]) -> None:
        """Do several writes in order, as `call` would, all or none."""
        ...

    def watch(
        self, ref: ResourceRef, *, options: Mapping[str, str] = {}
    ) -> AsyncIterator[Sequence[tuple[str, Reply]]]:
        """Yield events as they come, those that came together in one batch."""
        ...


class DirectTransport(Calls):
    """A `Transport` over an embedded server."""

    def __init__(self, verbs: Verbs, *, guard: WriteGuard | None = None) -> None:
        self._verbs: Verbs | None = verbs
        self._guard = guard

    async def __aenter__(self) -> DirectTransport:
        """Return the transport."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the transport."""
        await self.close()

    async def close(self) -> None:
        """Release the server, which keeps running."""
        self._verbs = None

    @property
    def _server(self) -> Verbs:
        if self._verbs is None:
            raise UnreachableError("the transport is closed")
        return self._verbs

    def _call(self, call: Call) -> Awaitable[Reply]:
        if self._guard is None or call.verb in READS:
            return self._send(call)
        return self._guarded(self._guard, call)

    async def _guarded(self, guard: WriteGuard, call: Call) -> Reply:
        with within(guard()):
            return await self._send(call)

    def _send(self, call: Call) -> Awaitable[Reply]:
        return self._server.call(
            call.verb,
            call.ref,
            body=call.body,
            options=call.options,
            patch_type=call.patch_type,
        )

    async def commit(self, calls: Sequence[Call]) -> None:
        """Run several writes, all or none."""
        if self._guard is None:
            await self._server.commit(calls)
            return
        with within(self._guard()):
            await self._server.commit(calls)

    async def _object(self, kind: Kind[T], call: Call) -> T:
        return _typed(kind, await self._call(call))

    async def _page(self, kind: Kind[T], call: Call) -> Page[T]:
        reply = await self._call(call)
        metadata = reply.obj.get("metadata") or {}
        return Page(
            items=[_typed(kind, item) for item in reply.items],
            resource_version=metadata.get("resourceVersion", ""),
            continue_token=metadata.get("continue", ""),
            remaining=metadata.get("remainingItemCount"),
        )

    async def _done(self, call: Call) -> None:
        await self._call(call)

    async def _events(self, kind: Kind[T], call: Call) -> AsyncGenerator[WatchEvent[T], None]:
        batches = self._server.watch(call.ref, options=call.options)
        try:
            async for batch in batches:
                for type_, reply in batch:
                    yield _event(kind, type_, reply)
        finally:
            # An abandoned generator is closed by the garbage collector, some time; the server
            # should know immediately that the watch is closed.
            close = getattr(batches, "aclose", None)
            if close is not None:
                await close()


def _typed(kind: Kind[T], reply: Reply) -> T:
    if kind.untyped:
        return from_body(kind, reply.obj)
    key = (kind.group, kind.version, kind.type)
    typed = reply.memo.get(key)
    if typed is None:
        typed = reply.memo[key] = _read(kind, reply)
    return cast("T", typed)


def _read(kind: Kind[T], reply: Reply) -> T:
    document = reply.document
    if document is not None:
        # What does not fit is read again below, for an error that names the object.
        with suppress(UnreadableError):
            return read_object(kind, document)
    return from_body(kind, reply.obj)


def _event(kind: Kind[T], type_: str, reply: Reply) -> WatchEvent[T]:
    if type_ == "BOOKMARK":
        return WatchEvent("BOOKMARK", None, version_of(reply.obj))
    obj = _typed(kind, reply)
    return WatchEvent(cast("EventType", type_), obj, version_of(obj))

"""Bytes of HTTP answers into typed objects, without a detour through dicts.

Decoders are built once per type. The stream of a watch is cut into lines here, within bounds.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterator
from functools import cache
from typing import Any, Generic, TypeVar, cast

import msgspec

from sully.client.http.status import to_error
from sully.client.objects import from_body, unreadable, version_of
from sully.client.transport import Kind, Page, UnreadableError, WatchEvent

T = TypeVar("T")

MAX_BYTES = 1 << 30
"""Bytes of all responses that a process reads at a time, other than watches."""
MAX_LINE_BYTES = 64 * 1024 * 1024
"""No object is this large: a longer line is not a watch event."""


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    """The metadata of a list."""

    resource_version: str = ""
    continue_token: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, Generic[T], frozen=True):
    metadata: ListMeta
    items: list[T] | None = None


class _Event(msgspec.Struct, Generic[T], frozen=True):
    type: str
    object: T


class _Metadata(msgspec.Struct, frozen=True):
    metadata: ListMeta


def _type(kind: Kind[Any]) -> Any:
    # For mypy only a concrete type is hashable.
    return kind.type


@cache
def _decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type_)


@cache
def _list_decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_List[type_])


@cache
def _event_decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_Event[type_])


_any_event = msgspec.json.Decoder(_Event[msgspec.Raw])
_metadata = msgspec.json.Decoder(_Metadata)
_any_object = msgspec.json.Decoder(dict[str, Any])


def _read(decoder: msgspec.json.Decoder[T], data: bytes | msgspec.Raw) -> T:
    """Read JSON; raises ValueError, whatever a server has sent."""
    try:
        return decoder.decode(data)
    except RecursionError:
        raise ValueError("it nests too deeply") from None


def read_object(kind: Kind[T], data: bytes) -> T:
    """Read an answer that is an object."""
    try:
        return cast("T", _read(_decoder(_type(kind)), data))
    except ValueError as error:
        raise unreadable(kind, error) from error


def read_part(kind: Kind[T], data: bytes) -> T:
    """Read the answer of a subresource, which may be of another kind."""
    try:
        body = _read(_any_object, data)
    except ValueError as error:
        raise unreadable(kind, error) from error
    return from_body(kind, body)


def read_page(kind: Kind[T], data: bytes) -> Page[T]:
    """Read a list."""
    try:
        decoded = _read(_list_decoder(_type(kind)), data)
    except ValueError as error:
        raise unreadable(kind, error) from error
    items = decoded.items or []
    if kind.untyped:
        # Items of a list have no kind and apiVersion; alone they need both.
        named = {"kind": kind.kind, "apiVersion": kind.api_version}
        items = [named | item for item in items]
    return Page(
        items,
        decoded.metadata.resource_version,
        decoded.metadata.continue_token,
        decoded.metadata.remaining_item_count,
    )


def read_event(kind: Kind[T], line: bytes) -> WatchEvent[T]:
    """Read one line of a watch; raise the error of an ERROR event."""
    try:
        event = _read(_event_decoder(_type(kind)), line)
    except msgspec.ValidationError as error:
        # A bookmark or an error, perhaps: they lack what the type requires.
        return _read_other(kind, line, error)
    except ValueError as error:
        raise unreadable(kind, error) from error
    if event.type in ("ADDED", "MODIFIED", "DELETED"):
        return WatchEvent(event.type, event.object, version_of(event.object))
    return _read_other(kind, line, UnreadableError(f"unknown event {event.type!r}"))


def _read_other(kind: Kind[T], line: bytes, problem: Exception) -> WatchEvent[T]:
    try:
        event = _read(_any_event, line)
        if event.type == "BOOKMARK":
            version = _read(_metadata, event.object).metadata.resource_version
            return WatchEvent("BOOKMARK", None, version)
        if event.type == "ERROR":
            status = _read(_any_object, event.object)
            raise to_error(status)
    except ValueError:
        # The first error is about the object and more specific.
        pass
    raise unreadable(kind, problem) from problem


class Responses:
    """Reads responses that are no streams; those that are read at a time share a limit."""

    def __init__(self, limit: int = MAX_BYTES) -> None:
        self._limit = limit
        self._size = 0

    async def read(self, chunks: AsyncIterable[bytes]) -> bytes:
        """Read a response to its end; raises UnreadableError if there seems to be none."""
        received: list[bytes] = []
        try:
            async for chunk in chunks:
                received.append(chunk)
                self._size += len(chunk)
                if self._size > self._limit:
                    raise UnreadableError(f"the server sends more than {self._limit} bytes")
            return received[0] if len(received) == 1 else b"".join(received)
        finally:
            self._size -= sum(map(len, received))


class Lines:
    """Cuts a stream of chunks into lines, keeping no more than the line that is not complete."""

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self._limit = limit
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take a chunk and yield the lines that it completes."""
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            whole = bytes(self._rest) + line if self._rest else line
            self._rest.clear()
            if whole.strip():
                yield whole
        self._rest += rest
        if len(self._rest) > self._limit:
            raise UnreadableError(f"a line of the watch is longer than {self._limit} bytes")

    def end(self) -> Iterator[bytes]:
        """Yield a last line that had no line break."""
        if self._rest.strip():
            yield bytes(self._rest)
        self._rest.clear()

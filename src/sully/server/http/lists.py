"""Lists as responses: in the format that was negotiated, and in pieces if they are large."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from functools import partial
from itertools import chain

from sully.machinery.errors import NotAcceptable
from sully.machinery.serialization import codec
from sully.machinery.strategy import Obj
from sully.runtime.clock import Clock
from sully.runtime.tasks import let_others_run
from sully.server.http.http_request import HttpRequest
from sully.server.http.protobuf.responses import ProtobufResponses
from sully.server.negotiation import (
    JSON,
    PROTOBUF,
    YAML,
    Form,
    Tables,
    encode,
    list_kind,
    metadata_list,
    metadata_only,
)
from sully.server.registry.bodies.kinds import internal_name
from sully.server.requests import Request
from sully.server.storage.objects import Objects, kind_prefix, typed, with_kind
from sully.server.storage.reads import Listing
from sully.server.storage.turns import in_turns

Send = Callable[[HttpRequest, int, Obj, Form], Awaitable[None]]
_LARGE = 128 * 1024
"""Bytes above which a list is sent in pieces, and an item of it by itself."""


class ListResponses:
    """Sends lists of objects."""

    def __init__(
        self, objects: Objects, protobuf: ProtobufResponses, clock: Clock, send: Send
    ) -> None:
        """`send` responds with one document."""
        self._objects = objects
        self._protobuf = protobuf
        self._clock = clock
        self._send = send

    async def send(
        self, http_request: HttpRequest, request: Request, listing: Listing, form: Form
    ) -> None:
        """Respond with a list, in pieces if it is large."""
        if form.shape == "PartialObjectMetadata":
            raise _is_list(internal_name(request.target))
        metadata = list_metadata(listing)
        if form.media == PROTOBUF:
            body = await self._protobuf.list(request.target, metadata, listing, form)
            await http_request.respond(200, body, PROTOBUF)
            return
        if request.target.resource.storage_version.custom is not None and not form.shape:
            metadata.setdefault("continue", "")
        has_items = bool(listing.records) or not form.shape
        if form.media == JSON and not form.pretty and has_items:
            await self._send_items(http_request, *self._items(request, metadata, listing, form))
            return
        empty, field, item = self._shape(request, metadata, form)
        if not listing.records:
            await self._send(http_request, 200, empty, form)
        elif form.media == YAML:
            await http_request.stream(200, self._in_yaml(empty, field, item, listing), YAML)
        else:
            live = self._objects.live
            hubs = [live(r) async for part in in_turns(listing.records) for r in part]
            pretty = partial(_pretty, empty, field, map(item, hubs), form)
            await http_request.respond(200, await asyncio.to_thread(pretty))

    def _shape(
        self, request: Request, metadata: Obj, form: Form
    ) -> tuple[Obj, str, Callable[[Obj], Obj]]:
        """Return a list without items, the field that has them, and what shows an object in it."""
        target, convert = request.target, self._objects.convert

        def view(stored: Obj) -> Obj:
            return convert(stored, target.resource, target.version)

        if form.shape == "Table":
            table = Tables(request, form, self._clock.now())
            return table.table(metadata, []), "rows", lambda stored: table.row(stored, view(stored))
        if form.shape:
            empty = metadata_list(metadata, [], form)
            return empty, "items", lambda stored: metadata_only(view(stored), form)
        kinds = {"kind": list_kind(target), "apiVersion": target.group_version}
        empty = {**kinds, "metadata": metadata, "items": []}
        if target.resource.storage_version.custom is not None:
            # Items of custom resources have their kind, as in Kubernetes.
            return empty, "items", lambda stored: typed(view(stored), target)
        return empty, "items", view

    def _items(
        self, request: Request, metadata: Obj, listing: Listing, form: Form
    ) -> tuple[bytes, Iterator[bytes]]:
        """Return a list up to its first item, and its items, which are encoded on demand."""
        target, objects = request.target, self._objects
        if form.shape:
            empty, field, item = self._shape(request, metadata, form)
            head = codec.to_json(empty | {field: []}).removesuffix(b"]}")
            items = map(item, map(objects.live, listing.records))
            return head, map(codec.to_json, items)
        head = kind_prefix(list_kind(target), target.group_version)
        head += b'"metadata":%b,"items":[' % codec.to_json(metadata)
        bodies = objects.bodies(listing.records, target.resource, target.version)
        if target.resource.storage_version.custom is not None:
            return head, (with_kind(body, target) for body in bodies)
        return head, bodies

    async def _in_yaml(
        self, empty: Obj, field: str, item: Callable[[Obj], Obj], listing: Listing
    ) -> AsyncGenerator[bytes, None]:
        """Yield a list in YAML, some items at a time: all together would take much memory."""
        before = {name: value for name, value in empty.items() if name < field}
        after = {name: value for name, value in empty.items() if name > field}
        yield codec.to_yaml(before) + b"%b:\n" % field.encode()
        live = self._objects.live
        async for part in in_turns(listing.records):
            items = [item(live(record)) for record in part]
            # In a thread, since it takes a hundred times as long as JSON.
            yield await asyncio.to_thread(codec.to_yaml, items)
        if after:
            yield codec.to_yaml(after)

    async def _send_items(
        self, http_request: HttpRequest, head: bytes, items: Iterator[bytes]
    ) -> None:
        pieces = list_pieces(head, items)
        first, second = next(pieces), next(pieces, None)
        if second is None:
            await http_request.respond(200, first)
        else:
            await http_request.stream(200, _one_by_one(chain((first, second), pieces)))


def list_pieces(head: bytes, items: Iterator[bytes]) -> Iterator[bytes]:
    """Yield an encoded list in chunks; mostly there is one.

    Small items are gathered; large ones are not copied, for many lists may share them.
    """
    gathered: list[bytes] = []
    size = 0
    for item in items:
        if len(item) >= _LARGE:
            yield head + b",".join((*gathered, b""))
            yield item
            head, gathered, size = b",", [], 0
            continue
        gathered.append(item)
        size += len(item)
        if size >= _LARGE:
            yield head + b",".join(gathered)
            head, gathered, size = b",", [], 0
    if not gathered:
        head = head.removesuffix(b",")
    yield b"%b%b]}\n" % (head, b",".join(gathered))


async def _one_by_one(pieces: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield pieces that are encoded on demand; other requests are served in between."""
    for piece in pieces:
        yield piece
        await let_others_run()


def _pretty(empty: Obj, field: str, items: Iterator[Obj], form: Form) -> bytes:
    return encode({**empty, field: list(items)}, form)


def list_metadata(listing: Listing) -> Obj:
    """Return the metadata of a list."""
    metadata: Obj = {"resourceVersion": str(listing.revision)}
    if listing.continue_token:
        metadata["continue"] = listing.continue_token
    if listing.remaining:
        metadata["remainingItemCount"] = listing.remaining
    return metadata


def _is_list(kind: str) -> NotAcceptable:
    text = f"but the requested object is a list (*{kind}List)"
    return NotAcceptable(f"you requested PartialObjectMetadata, {text}")

"""Routes of objects: from a request to its verb, and the format of the response."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from itertools import chain
from typing import Any, NoReturn

from msgspec.structs import replace

from sully.machinery.errors import (
    ApiError,
    NotAcceptable,
    UnsupportedMediaType,
)
from sully.machinery.serialization import codec
from sully.machinery.strategy import Obj
from sully.runtime.clock import Clock
from sully.runtime.tasks import let_others_run
from sully.server.api import Api
from sully.server.http.body_reader import BodyReader, check_form
from sully.server.http.http_request import HttpRequest
from sully.server.http.protobuf.responses import ProtobufResponses
from sully.server.http.streams import Stream
from sully.server.http.verbs import (
    PATCH_TYPES,
    check_method,
    content_type,
    patch_type,
    wants_watch,
)
from sully.server.negotiation import (
    JSON,
    PROTOBUF,
    YAML,
    Form,
    Tables,
    check_route,
    check_streamed,
    encode,
    has_table,
    list_kind,
    metadata_list,
    metadata_only,
    negotiate,
)
from sully.server.registry.bodies.kinds import internal_name
from sully.server.registry.replies import ConnectReply
from sully.server.registry.writes import Result
from sully.server.requests import Request, Target, User, not_served
from sully.server.storage.objects import kind_prefix, typed, with_kind
from sully.server.storage.reads import Listing
from sully.server.storage.selection import by_name
from sully.server.storage.turns import in_turns
from sully.server.storage.watching import WatchChange

_LARGE = 128 * 1024
"""Bytes above which a list is sent in pieces, and an item of it by itself."""


_PARTS = {"scale": "autoscaling.Scale", "token": "authentication.TokenRequest"}
"""Internal names of what subresources serve that is not the object."""


class ObjectRoutes:
    """Turns HTTP requests on objects into verbs."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._bodies = BodyReader(api.objects.scheme, clock)
        self._protobuf = ProtobufResponses(api.objects.scheme, api.objects, clock)

    async def serve(self, http_request: HttpRequest, user: User, target: Target) -> None:
        """Serve one request on an object or a collection."""
        check_method(http_request, target)
        if target.subresource in target.resource.refused:
            await self._refuse(user, target)
        if http_request.method == "PATCH" and patch_type(http_request) not in PATCH_TYPES:
            raise UnsupportedMediaType("415: Unsupported Media Type", details={})
        request = Request(
            user,
            target,
            http_request.query,
            http_request.header("user-agent"),
            http_request.audit_annotations,
        )
        is_list = http_request.method == "GET" and not target.name
        check_route(http_request.header("accept"), is_list=is_list)
        version = target.resource.version(target.version)
        if version is not None and version.deprecation:
            http_request.warnings.append(version.deprecation)
        form = self._negotiate(http_request, target)
        if self._api.connects(request):
            await self._connect(http_request, request, form)
        elif http_request.method == "GET":
            await self._read(http_request, request, form)
        elif http_request.method == "DELETE":
            await self._delete(http_request, request, form)
        else:
            await self._write(http_request, request, form)

    def _negotiate(self, http_request: HttpRequest, target: Target) -> Form:
        accept = http_request.header("accept")
        protobuf = bool(accept) and self._protobuf.serves(target)
        form = negotiate(
            accept, pretty=http_request.pretty, protobuf=protobuf, table=has_table(target)
        )
        if form.media == PROTOBUF and not form.shape:
            http_request.status_form = (self._protobuf.status, PROTOBUF)
        return form

    async def _refuse(self, user: User, target: Target) -> NoReturn:
        if target.resource.plural != "services":
            # A missing object is reported as such.
            await self._api.get(Request(user, replace(target, subresource="")))
        raise not_served(target)

    # -- reading ----------------------------------------------------------------------------------

    async def _read(self, http_request: HttpRequest, request: Request, form: Form) -> None:
        if wants_watch(http_request, request.target):
            await self._watch(http_request, request, form)
            return
        if request.target.name:
            record = await self._api.get(request)
            if form.plain:
                await http_request.respond(200, self._api.objects.document(record, request.target))
            else:
                live = self._api.objects.live(record)
                await self._send(http_request, 200, self._shaped(request, live, form), form)
        else:
            await self._send_list(http_request, request, await self._api.list(request), form)

    async def _send_list(
        self, http_request: HttpRequest, request: Request, listing: Listing, form: Form
    ) -> None:
        if form.shape == "PartialObjectMetadata":
            raise _is_list(internal_name(request.target))
        metadata = list_metadata(listing)
        if form.media == PROTOBUF:
            body = await self._protobuf.list(request.target, metadata, listing, form)
            await http_request.respond(200, body, PROTOBUF)
            return
        if request.target.resource.hub.custom is not None and not form.shape:
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
            live = self._api.objects.live
            hubs = [live(r) async for part in in_turns(listing.records) for r in part]
            pretty = partial(_pretty, empty, field, map(item, hubs), form)
            await http_request.respond(200, await asyncio.to_thread(pretty))

    def _shape(
        self, request: Request, metadata: Obj, form: Form
    ) -> tuple[Obj, str, Callable[[Obj], Obj]]:
        """Return a list without items, the field that has them, and what shows an object in it."""
        target, convert = request.target, self._api.objects.convert

        def view(hub: Obj) -> Obj:
            return convert(hub, target.resource, target.version)

        if form.shape == "Table":
            table = Tables(request, form, self._clock.now())
            return table.table(metadata, []), "rows", lambda hub: table.row(hub, view(hub))
        if form.shape:
            empty = metadata_list(metadata, [], form)
            return empty, "items", lambda hub: metadata_only(view(hub), form)
        kinds = {"kind": list_kind(target), "apiVersion": target.group_version}
        empty = {**kinds, "metadata": metadata, "items": []}
        if target.resource.hub.custom is not None:
            # Items of custom resources have their kind, as in Kubernetes.
            return empty, "items", lambda hub: typed(view(hub), target)
        return empty, "items", view

    def _items(
        self, request: Request, metadata: Obj, listing: Listing, form: Form
    ) -> tuple[bytes, Iterator[bytes]]:
        """Return a list up to its first item, and its items, which are encoded on demand."""
        target, objects = request.target, self._api.objects
        if form.shape:
            empty, field, item = self._shape(request, metadata, form)
            head = codec.to_json(empty | {field: []}).removesuffix(b"]}")
            items = map(item, map(objects.live, listing.records))
            return head, map(codec.to_json, items)
        head = kind_prefix(list_kind(target), target.group_version)
        head += b'"metadata":%b,"items":[' % codec.to_json(metadata)
        bodies = objects.bodies(listing.records, target.resource, target.version)
        if target.resource.hub.custom is not None:
            return head, (with_kind(body, target) for body in bodies)
        return head, bodies

    async def _in_yaml(
        self, empty: Obj, field: str, item: Callable[[Obj], Obj], listing: Listing
    ) -> AsyncGenerator[bytes, None]:
        """Yield a list in YAML, some items at a time: all together would take much memory."""
        before = {name: value for name, value in empty.items() if name < field}
        after = {name: value for name, value in empty.items() if name > field}
        yield codec.to_yaml(before) + b"%b:\n" % field.encode()
        live = self._api.objects.live
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

    async def _watch(self, http_request: HttpRequest, request: Request, form: Form) -> None:
        check_streamed(form)
        if request.target.name:
            request = by_name(request)
        batches = await self._api.watch(request)
        if form.media == PROTOBUF:
            stream = self._protobuf.stream(request, form)
        else:
            stream = Stream(self._api.objects, request, form, self._clock)
        await http_request.start(200, stream.content_type)
        # The headers are sent before the first event, so that a client knows the watch has started.
        await http_request.chunk(b"")
        await http_request.while_connected(self._send_events(http_request, batches, stream))
        if http_request.ended:
            await http_request.chunk(b"", more=False)

    async def _send_events(
        self,
        http_request: HttpRequest,
        batches: AsyncGenerator[Sequence[WatchChange], None],
        stream: Stream,
    ) -> None:
        last = b""
        try:
            await self._send_batches(http_request, batches, stream)
        except ApiError as error:
            # It is sent after this block, since the error refers to what could not be sent.
            last = stream.encode_error(error)
        await http_request.chunk(last)
        await http_request.chunk(b"", more=False)

    async def _send_batches(
        self,
        http_request: HttpRequest,
        batches: AsyncGenerator[Sequence[WatchChange], None],
        stream: Stream,
    ) -> None:
        async with aclosing(batches) as open_batches:
            async for batch in open_batches:
                await self._send_batch(http_request, batch, stream)
                # An idle watch must not keep sent objects in memory.
                del batch

    async def _send_batch(
        self, http_request: HttpRequest, batch: Sequence[WatchChange], stream: Stream
    ) -> None:
        for number, piece in enumerate(stream.encode(batch)):
            if number:
                await let_others_run()
            await http_request.chunk(piece, shared=stream.shared)

    # -- writing ----------------------------------------------------------------------------------

    async def _write(self, http_request: HttpRequest, request: Request, form: Form) -> None:
        if http_request.method == "PATCH":
            media = patch_type(http_request)
            body = await self._bodies.read_patch(media, await http_request.body(), request.target)
            result = await self._api.patch(request, media, body)
        else:
            is_new, media = http_request.method == "POST", content_type(http_request)
            if is_new:
                # Kubernetes looks at the form of a new object before its options.
                check_form(media)
            (self._api.check_create if is_new else self._api.check_update)(request)
            body = await self._bodies.read(media, await http_request.body(), request.target)
            http_request.object_name = body.name
            verb = self._api.create if is_new else self._api.update
            result = await verb(request, body)
        await self._send_result(http_request, request, result, form)

    async def _send_result(
        self, http_request: HttpRequest, request: Request, result: Result, form: Form
    ) -> None:
        http_request.warnings += result.warnings
        http_request.object_name = result.obj["metadata"].get("name", "")
        code = 201 if result.created else 200
        if result.record is not None and form.plain:
            await http_request.respond(
                code, self._api.objects.document(result.record, request.target)
            )
            return
        await self._send(http_request, code, self._shaped(request, result.obj, form), form)

    async def _delete(self, http_request: HttpRequest, request: Request, form: Form) -> None:
        raw = await http_request.body()
        body: Any = None
        if raw.strip():
            media = content_type(http_request)
            body = (await self._bodies.read_options(media, raw, request.target)).value
        http_request.warnings += self._api.deletion_warnings(request, body)
        if not request.target.name:
            listing = await self._api.delete_collection(request, body)
            await self._send_list(http_request, request, listing, form)
            return
        result = await self._api.delete(request, body)
        http_request.warnings += result.warnings
        target = request.target
        version = target.resource.version(target.version)
        if result.deleted and not (version and version.delete_returns_object):
            await self._send(
                http_request, 200, _deleted_status(target, result.obj), Form(form.media)
            )
            return
        code = 202 if result.accepted else 200
        await self._send(http_request, code, self._shaped(request, result.obj, form), form)

    async def _connect(self, http_request: HttpRequest, request: Request, form: Form) -> None:
        body: Any = None
        is_patch = http_request.method == "PATCH"
        media = patch_type(http_request) if is_patch else content_type(http_request)
        if is_patch:
            body = await self._bodies.read_patch(media, await http_request.body(), request.target)
        elif http_request.method in ("POST", "PUT"):
            body = await self._bodies.read(media, await http_request.body(), request.target)
        reply = await self._api.connector.call(request, http_request.method, media, body)
        http_request.warnings += reply.warnings
        response = self._part(request, reply, form)
        await self._send(http_request, reply.code, response, Form(form.media, pretty=form.pretty))

    def _part(self, request: Request, reply: ConnectReply, form: Form) -> Obj:
        """Return the response of a subresource in the format that the client requested."""
        target = request.target
        if form.shape == "Table" and reply.columns:
            metadata = {"resourceVersion": reply.obj["metadata"].get("resourceVersion", "")}
            tables = Tables(request, form, self._clock.now(), reply.columns)
            return tables.table(metadata, [(reply.obj, reply.obj)])
        if reply.obj.get("kind") == "Status" or not form.shape:
            return reply.obj
        if form.shape == "PartialObjectMetadataList":
            raise _is_not_a_list(_PARTS.get(target.subresource) or internal_name(target))
        return metadata_only(reply.obj, form)

    # -- responses --------------------------------------------------------------------------------

    def _shaped(self, request: Request, hub: Obj, form: Form) -> Obj:
        target = request.target
        view = self._api.objects.convert(hub, target.resource, target.version)
        if form.shape == "Table":
            metadata = {"resourceVersion": hub["metadata"].get("resourceVersion", "")}
            return Tables(request, form, self._clock.now()).table(metadata, [(hub, view)])
        if form.shape == "PartialObjectMetadataList":
            raise _is_not_a_list(internal_name(target))
        if form.shape == "PartialObjectMetadata":
            return metadata_only(view, form)
        return typed(view, target)

    async def _send(self, http_request: HttpRequest, code: int, value: Obj, form: Form) -> None:
        message = self._protobuf.document(value) if form.media == PROTOBUF else None
        if message is not None:
            await http_request.respond(code, message, PROTOBUF)
        else:
            media = YAML if form.media == YAML else JSON
            # In a thread, since it takes a hundred times as long as JSON.
            body = (
                await asyncio.to_thread(encode, value, form)
                if media == YAML
                else encode(value, form)
            )
            await http_request.respond(code, body, media)


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


def _deleted_status(target: Target, obj: Obj) -> Obj:
    details: Obj = {"name": target.name}
    if target.resource.group:
        details["group"] = target.resource.group
    details |= {"kind": target.resource.plural, "uid": obj["metadata"]["uid"]}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }


def _is_list(kind: str) -> NotAcceptable:
    text = f"but the requested object is a list (*{kind}List)"
    return NotAcceptable(f"you requested PartialObjectMetadata, {text}")


def _is_not_a_list(kind: str) -> NotAcceptable:
    text = f"but the requested object is not a list (*{kind})"
    return NotAcceptable(f"you requested PartialObjectMetadataList, {text}")


__all__ = ["ObjectRoutes", "with_kind"]

"""Routes of objects: from a request to its verb, and the format of the response."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, NoReturn

from msgspec.structs import replace

from sully.machinery.errors import (
    ApiError,
    NotAcceptable,
    UnsupportedMediaType,
)
from sully.machinery.strategy import Obj
from sully.runtime.clock import Clock
from sully.runtime.tasks import let_others_run
from sully.server.api import Api
from sully.server.http.body_reader import BodyReader, check_form
from sully.server.http.http_request import HttpRequest
from sully.server.http.lists import ListResponses
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
    metadata_only,
    negotiate,
)
from sully.server.registry.bodies.kinds import internal_name
from sully.server.registry.patches import unknown_format
from sully.server.registry.replies import ConnectReply
from sully.server.registry.writes import Result
from sully.server.requests import Request, Target, User, not_served
from sully.server.storage.objects import typed
from sully.server.storage.selection import by_name
from sully.server.storage.watching import WatchChange

_PARTS = {"scale": "autoscaling.Scale", "token": "authentication.TokenRequest"}
"""Internal names of what subresources serve that is not the object."""


class ObjectRoutes:
    """Turns HTTP requests on objects into verbs."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._bodies = BodyReader(api.objects.scheme, clock)
        self._protobuf = ProtobufResponses(api.objects.scheme, api.objects, clock)
        self._lists = ListResponses(api.objects, self._protobuf, clock, self._send)

    async def serve(self, http_request: HttpRequest, user: User, target: Target) -> None:
        """Serve one request on an object or a collection."""
        check_method(http_request, target)
        if target.subresource in target.resource.refused:
            await self._refuse(user, target)
        # Kubernetes serves custom resources without routes that know media types.
        is_routed = target.resource.storage_version.custom is None
        if http_request.method == "PATCH" and patch_type(http_request) not in PATCH_TYPES:
            if not is_routed:
                raise unknown_format()
            raise UnsupportedMediaType("415: Unsupported Media Type", details={})
        request = Request(
            user,
            target,
            http_request.query,
            http_request.header("user-agent"),
            http_request.audit_annotations,
        )
        is_list = http_request.method == "GET" and not target.name
        if is_routed:
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
            await self._lists.send(http_request, request, await self._api.list(request), form)

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
            await self._lists.send(http_request, request, listing, form)
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

    def _shaped(self, request: Request, stored: Obj, form: Form) -> Obj:
        target = request.target
        view = self._api.objects.convert(stored, target.resource, target.version)
        if form.shape == "Table":
            metadata = {"resourceVersion": stored["metadata"].get("resourceVersion", "")}
            return Tables(request, form, self._clock.now()).table(metadata, [(stored, view)])
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


def _is_not_a_list(kind: str) -> NotAcceptable:
    text = f"but the requested object is not a list (*{kind})"
    return NotAcceptable(f"you requested PartialObjectMetadataList, {text}")

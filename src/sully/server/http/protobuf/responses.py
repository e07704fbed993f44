"""Responses in Kubernetes' protobuf form, which Go clients request before JSON.

machinery/serialization/protobuf_writer.py writes messages; here is what a response consists of.
Custom resources and tables have no such form: of custom resources only the metadata has.
"""

from sully.machinery.schema import ObjectType, TableError
from sully.machinery.scheme import Scheme
from sully.machinery.serialization.protobuf_writer import (
    in_envelope,
    is_writable,
    write_list,
    write_message,
    write_watch_event,
)
from sully.machinery.strategy import Obj
from sully.runtime.clock import Clock
from sully.server.http.http_request import Buffer
from sully.server.http.protobuf.types import type_of
from sully.server.http.streams import Stream
from sully.server.negotiation import PROTOBUF, Form, list_kind
from sully.server.requests import Request, Target
from sully.server.storage.objects import Objects, typed
from sully.server.storage.reads import Listing
from sully.server.storage.turns import in_turns
from sully.server.storage.watching import WatchChange, bookmark


class ProtobufResponses:
    """Writes responses for the kinds of a scheme."""

    def __init__(self, scheme: Scheme, objects: Objects, clock: Clock) -> None:
        self._scheme = scheme
        self._objects = objects
        self._clock = clock

    def serves(self, target: Target) -> bool:
        """Report whether objects of a kind have this form."""
        return is_writable(self._scheme.schema(target.resource, target.version))

    def document(self, obj: Obj) -> bytes | None:
        """Return an object that has its kind and apiVersion; None if it has no such form."""
        kind = self._type(obj["apiVersion"], obj["kind"])
        if kind is None:
            return None
        return in_envelope(obj["apiVersion"], obj["kind"], write_message(kind, obj))

    def status(self, status: Obj) -> bytes:
        """Return a Status: the result of a request that failed."""
        message = write_message(type_of(self._scheme, "v1", "Status"), status)
        return in_envelope("v1", "Status", message)

    async def list(self, target: Target, metadata: Obj, listing: Listing, form: Form) -> bytes:
        """Return a list. A long one takes a while, in which other requests are served."""
        api_version = form.group_version or target.group_version
        item = "PartialObjectMetadata" if form.shape else target.resource.kind
        kind = type_of(self._scheme, api_version, item)
        view = self._objects.view
        items = [
            write_message(kind, view(record, target.resource, target.version))
            async for part in in_turns(listing.records)
            for record in part
        ]
        meta = write_message(type_of(self._scheme, "v1", "ListMeta"), metadata)
        return in_envelope(api_version, form.shape or list_kind(target), write_list(meta, items))

    def stream(self, request: Request, form: Form) -> Stream:
        """Return what writes the events of a watch."""
        return _ProtobufStream(self, self._objects, request, form, self._clock)

    def _type(self, api_version: str, kind: str) -> ObjectType | None:
        try:
            type_ = type_of(self._scheme, api_version, kind)
        except TableError:
            return None
        return type_ if is_writable(type_) else None


class _ProtobufStream(Stream):
    """Events with their length in front; the object in each has its envelope."""

    def __init__(
        self,
        responses: ProtobufResponses,
        objects: Objects,
        request: Request,
        form: Form,
        clock: Clock,
    ) -> None:
        super().__init__(objects, request, form, clock)
        self._responses = responses

    @property
    def content_type(self) -> str:
        return f"{PROTOBUF};stream=watch"

    def _parts(self, change: WatchChange) -> tuple[Buffer, ...]:
        if self._form.shape or change.record is None:
            return (self._line(change.type, self._embedded(change)),)
        return (self._cached(change, "protobuf", self._frame),)

    def _frame(self, change: WatchChange) -> bytes:
        return self._line(change.type, typed(self._view(change), self._target))

    def _embedded(self, change: WatchChange) -> Obj:
        if self._form.shape:
            return self._shaped(change)
        return bookmark(change, self._objects.empty(self._target))

    def _line(self, kind: str, obj: Obj) -> bytes:
        document = self._responses.document(obj)
        if document is None:
            raise TypeError(f"{obj['kind']} has no form in protobuf")
        return write_watch_event(kind, document)

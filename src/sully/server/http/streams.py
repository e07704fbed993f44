"""The response of a watch: one JSON line per event, encoded once for all watches."""

from collections.abc import Callable, Iterator, Sequence

from sully.machinery.errors import ApiError
from sully.machinery.serialization.codec import to_json
from sully.machinery.strategy import Obj
from sully.runtime.clock import Clock
from sully.server.http.http_request import PIECE, Buffer
from sully.server.negotiation import Form, Tables, metadata_only
from sully.server.requests import Request
from sully.server.storage.objects import Objects, kind_prefix, typed, with_kind
from sully.server.storage.watching import WatchChange, bookmark


class Stream:
    """Encodes the events of one watch."""

    def __init__(self, objects: Objects, request: Request, form: Form, clock: Clock) -> None:
        self._objects = objects
        self._request = request
        self._target = request.target
        self._form = form
        self._clock = clock
        self._columns_sent = False
        # Tables are built for each event, since ages change; a bad option is rejected now.
        if form.shape == "Table":
            Tables(request, form, clock.now())

    @property
    def content_type(self) -> str:
        """Return the media type of the stream."""
        return "application/json"

    @property
    def shared(self) -> bool:
        """Report whether large events are encoded once for all watches."""
        return not self._form.shape

    def encode(self, batch: Sequence[WatchChange]) -> Iterator[Buffer]:
        """Yield the lines of a batch, many at a time; each is encoded when it is sent."""
        gathered: list[Buffer] = []
        size = 0
        for change in batch:
            for part in self._parts(change):
                gathered.append(part)
                size += len(part)
                if size >= PIECE:
                    yield from _joined(gathered)
                    gathered, size = [], 0
        if gathered:
            yield b"".join(gathered)

    def _parts(self, change: WatchChange) -> tuple[Buffer, ...]:
        if self._form.shape:
            return (self._line(change.type, self._shaped(change)),)
        record, target = change.record, self._target
        if record is None or change.source is not None or len(record.value) < PIECE:
            return (self._plain(change),)
        # The line is not cached, and each watch would have its own copy.
        body = self._objects.body(record, target.resource, target.version)
        head = kind_prefix(target.resource.kind, target.group_version)
        begin = b'{"type":"%s","object":%b' % (change.type.encode(), head)
        return begin, memoryview(body)[1:], b"}\n"

    def encode_error(self, error: ApiError) -> bytes:
        """Return the line that ends a watch."""
        return self._line("ERROR", error.to_status())

    def _line(self, kind: str, obj: Obj) -> bytes:
        return b'{"type":"%s","object":%s}\n' % (kind.encode(), to_json(obj))

    def _plain(self, change: WatchChange) -> bytes:
        if change.record is None:
            return self._line("BOOKMARK", bookmark(change, self._objects.empty(self._target)))
        return self._cached(change, "line", self._plain_line)

    def _plain_line(self, change: WatchChange) -> bytes:
        return b'{"type":"%s","object":%s}\n' % (change.type.encode(), self._document(change))

    def _cached(
        self, change: WatchChange, form: str, encode: Callable[[WatchChange], bytes]
    ) -> bytes:
        """Return an event that is encoded once for all watches of this form."""
        source = change.source
        if source is None:
            return encode(change)
        if source.derived is None:
            source.derived = {}
        key = (form, change.type, self._target.resource.group, self._target.version)
        line: bytes | None = source.derived.get(key)
        if line is None:
            line = source.derived[key] = encode(change)
            self._objects.recent.add(source.derived, len(line))
        return line

    def _document(self, change: WatchChange) -> bytes:
        record = change.record
        if record is None:
            raise ValueError("a bookmark has no document")
        if change.revision == record.revision:
            return self._objects.document(record, self._target)
        return with_kind(to_json(self._view(change)), self._target)

    def _view(self, change: WatchChange) -> Obj:
        return self._objects.convert(
            self._stored(change), self._target.resource, self._target.version
        )

    def _stored(self, change: WatchChange) -> Obj:
        if change.record is None:
            raise ValueError("a bookmark has no object")
        # A deleted object has the resourceVersion of its deletion.
        return self._objects.stamped(self._objects.bare(change.record), change.revision)

    def _shaped(self, change: WatchChange) -> Obj:
        target, form = self._target, self._form
        if change.record is None:
            kind = form.shape if form.shape == "Table" else "PartialObjectMetadata"
            return self._shaped_bookmark(change, kind)
        if form.shape == "Table":
            stored, view = self._stored(change), self._view(change)
            return self._table(stored, lambda tables: tables.row(stored, view))
        if form.shape.startswith("PartialObjectMetadata"):
            return metadata_only(self._view(change), form)
        return typed(self._view(change), target)

    def _shaped_bookmark(self, change: WatchChange, kind: str) -> Obj:
        if kind != "Table":
            return bookmark(change, {"kind": kind, "apiVersion": self._form.group_version})
        empty = bookmark(change, self._objects.empty(self._target))
        return self._table(empty, lambda tables: tables.empty_row(empty))

    def _table(self, stored: Obj, row: Callable[[Tables], Obj]) -> Obj:
        tables = Tables(self._request, self._form, self._clock.now())
        metadata = {"resourceVersion": stored["metadata"]["resourceVersion"]}
        first, self._columns_sent = not self._columns_sent, True
        return tables.of_rows(metadata, [row(tables)], columns=first)


def _joined(parts: list[Buffer]) -> Iterator[Buffer]:
    """Join parts, of which only the last can be large; that one is not copied."""
    if len(parts[-1]) < PIECE:
        yield b"".join(parts)
        return
    if len(parts) > 1:
        yield b"".join(parts[:-1])
    yield parts[-1]

"""One HTTP request and its response. ASGI is known only here."""

import asyncio
import gzip
import zlib
from collections import Counter
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
)
from contextlib import aclosing, contextmanager, suppress
from typing import Any, Protocol
from urllib.parse import unquote_plus

from sully.machinery.errors import (
    ApiError,
    BadRequest,
    RequestEntityTooLarge,
    Timeout,
    TooManyRequests,
    Unauthorized,
)
from sully.machinery.serialization.codec import to_json
from sully.server.authentication.groups import ANONYMOUS
from sully.server.negotiation import encode, error_form
from sully.server.requests import User

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Buffer = bytes | memoryview
"""What can be sent; a view of something large costs less than a copy."""

JSON = "application/json"
MAX_BODY = 3 * 1024 * 1024
_WORTH_COMPRESSING = 128 * 1024
"""Bytes of a response, as in Kubernetes: below this compression does not pay."""
PIECE = 64 * 1024
"""Bytes per chunk; each chunk of a larger response waits for the client to read."""
_BLOCKED = 2 * PIECE
"""Bytes in memory for a client that does not read: a chunk, and what is buffered by the connection
(server/net/listen.py)."""
_SMALL = 16 * 1024
"""Bytes of a body, or of a part of a stream, that are not worth counting."""
STREAM_SECONDS = 300.0
"""How long a client may take to read a response that is sent in chunks."""
# As in Kubernetes: clients fail on responses with long headers.
_MAX_WARNING_TEXT = 4096
_SHORTENED_WARNING = 256
_GZIP = {"content-encoding": "gzip", "vary": "Accept-Encoding"}
BODY_SECONDS = 60.0
"""How long a body may take to arrive; a slow client must not hold its seat indefinitely."""


DISCARD_SECONDS = 1.0
MAX_DISCARDED = 1 << 18
_WITH_BODY = frozenset(("POST", "PUT", "PATCH", "DELETE"))
CONNECTION = "sully.connection"
"""Where the scope of a request has its connection, among the extensions."""
_ONCE = (b"impersonate-user", b"impersonate-uid")
_NO_CACHE = (b"cache-control", b"no-cache, private")


class OwnedConnection(Protocol):
    """A connection that counts for its user once that is authenticated."""

    def identify(self, user: User) -> bool:
        """Set the user; False if the user has too many connections."""

    def has_whole_request(self) -> bool:
        """Report whether the request in progress was received to its end."""


class ByteCounter(Protocol):
    """Counts bytes against the limits of the user of a request."""

    def grow(self, amount: int) -> None:
        """Add bytes; raises TooManyRequests."""

    def release(self) -> None:
        """Subtract all of them."""


class _NoByteCounter:
    def grow(self, amount: int) -> None:
        pass

    def release(self) -> None:
        pass


_NO_COUNTER = _NoByteCounter()


def _uncounted(_: int) -> ByteCounter:
    return _NO_COUNTER


class SlowBody(Timeout):
    """The body of a request did not arrive in time."""

    code = 408


class HttpRequest:
    """Reads a request and sends its response."""

    def __init__(
        self,
        scope: Mapping[str, Any],
        receive: Receive,
        send: Send,
        *,
        body_seconds: float = BODY_SECONDS,
    ) -> None:
        self.scope = scope
        self._body_seconds = body_seconds
        self.method: str = scope["method"]
        raw = scope.get("raw_path") or scope["path"].encode()
        self.path: str = raw.split(b"?", 1)[0].decode("latin-1")
        # Of a repeated header the first is used, as in Kubernetes.
        self.headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in reversed(scope["headers"])
        }
        self.query = parse_query(scope["query_string"].decode("latin-1"))
        self.warnings: list[str] = []
        self.audit_annotations: dict[str, str] = {}  # of admission
        self.status_form: tuple[Callable[[dict[str, Any]], bytes], str] = (to_json, JSON)
        """How errors are encoded, and the media type of that."""
        self.code = 0
        self.object_name = ""  # of the object that is written, for audit
        self._whole = False  # whether the body has been read to its end
        self.unread: Callable[[int], ByteCounter] = _uncounted  # counts bytes of responses
        self.ended = False  # whether a stream was ended early
        self._sending: asyncio.Task[None] | None = None
        self._body: bytes | None = None
        self._receive = receive
        self._send = send

    @property
    def pretty(self) -> bool:
        """Report whether the client requests JSON that people can read."""
        return self.query.get("pretty", "") not in ("", "0", "false")

    def header(self, name: str) -> str:
        """Return a header by its lower-case name."""
        value: str = self.headers.get(name, "")
        return value

    def check_headers(self) -> None:
        """Reject a request with two identities; raises Unauthorized or BadRequest.

        A proxy before the server may have used the other one.
        """
        if len(self.headers) == len(self.scope["headers"]):
            return
        names = Counter(name for name, _ in self.scope["headers"])
        if names[b"authorization"] > 1:
            raise Unauthorized("Unauthorized")
        for name in _ONCE:
            if names[name] > 1:
                raise BadRequest(f"the header {name.decode()} must not be repeated")

    def identify(self, user: User | None) -> None:
        """Set the user of the connection; raises TooManyRequests if the user has too many."""
        if user is None or user is ANONYMOUS:
            return
        connection = self._connection()
        if connection is not None and not connection.identify(user):
            raise TooManyRequests(
                "Too many connections, please try again later.",
                details={"retryAfterSeconds": 1},
                headers={"Retry-After": "1", "connection": "close"},
            )

    def _connection(self) -> OwnedConnection | None:
        connection: OwnedConnection | None = self.scope.get("extensions", {}).get(CONNECTION)
        return connection

    async def body(self, counter: ByteCounter = _NO_COUNTER) -> bytes:
        """Read the whole body, limited in size and time; later calls return the same.

        `counter` counts the bytes as they arrive.
        """
        if self._body is None:
            self._body = await self._read_body(counter)
        return self._body

    async def _read_body(self, counter: ByteCounter) -> bytes:
        announced = self.header("content-length")
        if announced == "0":
            return b""
        if announced.isdigit() and int(announced) > MAX_BODY:
            raise _too_large()
        connection = self._connection()
        try:
            if connection is not None and connection.has_whole_request():
                return await self._read_chunks(counter)
            async with asyncio.timeout(self._body_seconds):
                return await self._read_chunks(counter)
        except TimeoutError:
            # The rest of the body may still arrive and would be parsed as the next request.
            raise SlowBody(
                "the body of the request did not arrive in time", headers={"connection": "close"}
            ) from None
        except TooManyRequests as error:
            error.headers = {**error.headers, "connection": "close"}
            raise

    async def _read_chunks(self, counter: ByteCounter) -> bytes:
        chunks: list[bytes] = []
        size = counted = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ConnectionResetError("client disconnected")
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > MAX_BODY:
                raise _too_large()
            if size > counted + _SMALL:
                counter.grow(size - counted)
                counted = size
            chunks.append(chunk)
            if not message.get("more_body"):
                self._whole = True
                return b"".join(chunks)

    async def discard_body(self) -> None:
        """Read and discard the rest of a small body, so that the connection can be reused.

        Bytes that arrive later would be parsed as the next request.
        """
        if self._whole or self.method not in _WITH_BODY or self.header("expect"):
            return
        size = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(DISCARD_SECONDS):
                while size <= MAX_DISCARDED:
                    message = await self._receive()
                    size += len(message.get("body", b""))
                    if not message.get("more_body"):
                        return

    async def disconnected(self) -> None:
        """Wait until the client disconnects."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def respond(
        self,
        code: int,
        body: bytes,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send a complete response; JSON ends with a line break, as in Kubernetes."""
        headers = headers or {}
        if body.endswith(b"}"):
            body += b"\n"
        if len(body) <= _WORTH_COMPRESSING:
            await self.start(code, content_type, {"content-length": str(len(body)), **headers})
            await self._write(b"" if self.method == "HEAD" else body, more=False)
            return
        # A write that is done is not rejected.
        with self._unread(len(body) if self.method == "GET" else 0):
            if self._takes_gzip():
                # Slices become eight times smaller, pods more; in a thread, since it may take long.
                body = await asyncio.to_thread(gzip.compress, body, 1, mtime=0)
                headers = {**headers, **_GZIP}
            await self.start(code, content_type, {"content-length": str(len(body)), **headers})
            await self._write(b"" if self.method == "HEAD" else body, more=False)

    async def stream(
        self, code: int, pieces: AsyncGenerator[bytes, None], content_type: str = JSON
    ) -> None:
        """Send a response that is encoded as the client reads it."""
        compressor = zlib.compressobj(1, wbits=31) if self._takes_gzip() else None
        with self._unread(_BLOCKED if self.method == "GET" else 0):
            await self.start(code, content_type, None if compressor is None else _GZIP)
            await self._send_pieces(pieces, compressor)

    async def _send_pieces(self, pieces: AsyncGenerator[bytes, None], compressor: Any) -> None:
        # The objects of a list stay in memory until it is sent, also if they change meanwhile.
        # The connection of an incomplete response is closed.
        with suppress(TimeoutError):
            async with asyncio.timeout(STREAM_SECONDS), aclosing(pieces) as opened:
                async for piece in opened:
                    data = piece
                    if compressor is not None:
                        data = await asyncio.to_thread(compressor.compress, piece)
                    # Not in memory while a client does not read.
                    del piece
                    if data:
                        await self._write(data)
                await self._write(b"" if compressor is None else compressor.flush(), more=False)

    async def while_connected(self, sending: Coroutine[Any, Any, None]) -> None:
        """Send, and stop when the client disconnects or `end` is called."""
        async with asyncio.TaskGroup() as tasks:
            disconnect = tasks.create_task(self.disconnected())
            task = self._sending = tasks.create_task(sending)
            disconnect.add_done_callback(lambda _: task.cancel())
            if self.ended:
                task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                if not (disconnect.done() or self.ended):
                    raise
            finally:
                disconnect.cancel()

    def end(self) -> None:
        """Stop sending what is being streamed."""
        self.ended = True
        if self._sending is not None:
            self._sending.cancel()

    def _takes_gzip(self) -> bool:
        return "gzip" in map(str.strip, self.header("accept-encoding").split(","))

    async def start(
        self, code: int, content_type: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send status and headers."""
        self.code = code
        lines = [(b"content-type", content_type.encode())] if content_type else []
        lines += [(k.lower().encode(), v.encode("latin-1")) for k, v in (headers or {}).items()]
        if self.warnings:
            lines += [(b"warning", warning_header(text)) for text in bounded(self.warnings)]
        lines.append(_NO_CACHE)
        await self._send({"type": "http.response.start", "status": code, "headers": lines})

    async def chunk(self, data: Buffer, *, more: bool = True, shared: bool = False) -> None:
        """Send a part of a streamed response; raises TooManyRequests.

        Unless it is small, it counts as unread until the connection has accepted it; one that is
        shared with other streams counts only what the connection buffers.
        """
        if len(data) <= _SMALL:
            await self._send({"type": "http.response.body", "body": data, "more_body": more})
            return
        with self._unread(_BLOCKED if shared else _BLOCKED + len(data)):
            await self._write(data)
            await self._write(b"", more=more)

    async def _write(self, data: Buffer, *, more: bool = True) -> None:
        """Send bytes; each chunk waits until the connection has accepted those before it."""
        last = max(0, len(data) - 1) // PIECE * PIECE
        for start in range(0, last, PIECE):
            part = data[start : start + PIECE]
            await self._send({"type": "http.response.body", "body": part, "more_body": True})
        await self._send({"type": "http.response.body", "body": data[last:], "more_body": more})

    @contextmanager
    def _unread(self, amount: int) -> Iterator[None]:
        counter = self.unread(amount)
        try:
            yield
        finally:
            counter.release()

    async def respond_error(self, error: ApiError) -> None:
        """Send an error as a Status."""
        self.warnings += error.warnings
        encode_status, media = self.status_form
        if media == JSON:
            form = error_form(self.header("accept"), pretty=self.pretty)
            body, media = encode(error.to_status(), form), form.media
        else:
            body = encode_status(error.to_status())
        await self.respond(error.code, body, media, headers=error.headers)


def _too_large() -> RequestEntityTooLarge:
    return RequestEntityTooLarge(f"Request entity too large: limit is {MAX_BODY}")


def parse_query(text: str) -> dict[str, str]:
    """Read a query string; of a repeated option the first is used."""
    options: dict[str, str] = {}
    for part in text.split("&") if text else ():
        if part:
            name, _, value = part.partition("=")
            options.setdefault(unquote_plus(name), unquote_plus(value))
    return options


def bounded(warnings: Iterable[str]) -> list[str]:
    """Remove duplicate warnings; shorten and limit them if they are long."""
    texts = [text for text in dict.fromkeys(warnings) if text]
    if sum(map(len, texts)) <= _MAX_WARNING_TEXT:
        return texts
    shortened: list[str] = []
    length = 0
    for text in texts:
        if length >= _MAX_WARNING_TEXT:
            break
        shortened.append(text[:_SHORTENED_WARNING])
        length += len(shortened[-1])
    return shortened


def warning_header(text: str) -> bytes:
    """Return the value of a Warning header, which cannot contain line breaks."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'.encode("utf-8", errors="replace")

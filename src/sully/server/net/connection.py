"""One connection: HTTP over TLS in which nothing lasts without a limit.

uvicorn parses and answers; added here are the client's identity, a deadline for each state, and
bounds on everything that a client can send without being known. A state is one of `Phase`; its
deadline is set when it begins, so that no byte that comes later puts it off. listen.py looks every
second for connections whose deadline has passed; connections.py chooses which ones to
close when there are too many.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Any

import httptools
import msgspec
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from sully.server.authentication.certificates import Peer, peer_of
from sully.server.http.http_request import CONNECTION
from sully.server.net.connections import Connections
from sully.server.requests import User

MAX_HEAD = 1 << 20
MAX_HEAD_UNAUTHENTICATED = 1 << 17
"""Without a client certificate."""
MAX_HEADERS = 1000
MAX_PIPELINED = 64
"""Pipelined requests; each takes much more memory than its bytes."""
MAX_FRAMING = 1 << 16
"""Bytes of chunk sizes, extensions and trailers, above twice the bytes of the body."""
MAX_DISCARDED = 1 << 18
"""Bytes of a body that are read after the response, so that the client receives the response."""
MAX_UNREAD = 1 << 16
"""Bytes that may be buffered before further writes wait."""
NEVER = float("inf")


class Phase(Enum):
    """What a connection waits for."""

    HEAD = "head"
    BODY = "body"
    RESPONSE = "response"
    IDLE = "idle"
    DISCARD = "discard"  # the response is sent, the rest of the request is discarded
    CLOSING = "closing"


class ConnectionTimeouts(msgspec.Struct, frozen=True):
    """How many seconds each state of a connection may last."""

    handshake: float = 15.0
    head: float = 30.0
    body: float = 70.0  # longer than `whole_body`, after which a response is sent
    whole_body: float = 60.0  # of a request, after which it is answered with 408
    response: float = NEVER  # a watch may last; http/ limits the time of responses
    idle: float = 75.0
    unread: float = 30.0  # of a response, while more than `MAX_UNREAD` waits to be sent
    discard: float = 2.0
    closing: float = 5.0

    def of(self, phase: Phase) -> float:
        """Return how long a state may last."""
        seconds: float = getattr(self, phase.value)
        return seconds


class BufferedTransport:
    """A transport that joins what is written in one iteration of the event loop.

    The head and the body of a response are written in order; sent separately they would cost
    two TLS records and two system calls, most of the cost of a small response.
    """

    def __init__(self, transport: asyncio.Transport, closing: Callable[[], bool]) -> None:
        self._transport = transport
        self._closing = closing
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._waiting: list[bytes] = []
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Buffer data until the end of this iteration."""
        if not self._waiting:
            self._loop.call_soon(self.flush)
        self._waiting.append(data)
        self._size += len(data)
        if self._size >= MAX_UNREAD:
            # Not later: the size of the transport's buffer must include what was written.
            self.flush()

    def flush(self) -> None:
        """Send what is buffered."""
        waiting, self._waiting, self._size = self._waiting, [], 0
        if waiting and not self._transport.is_closing():
            self._transport.write(waiting[0] if len(waiting) == 1 else b"".join(waiting))

    def is_closing(self) -> bool:
        """Report whether nothing more can be written."""
        return self._closed or self._transport.is_closing()

    def close(self) -> None:
        """Send what is buffered, then close, unless `closing` reports that it is too early."""
        self.flush()
        self._closed = True
        # After a second close() of a transport with TLS, asyncio's abort() does nothing.
        if self._closing() and not self._transport.is_closing():
            self._transport.close()

    def abort(self) -> None:
        """Close without sending anything more."""
        self._closed = True
        self._transport.abort()

    def lost(self) -> None:
        """Break the cycle with the protocol: otherwise only the garbage collector frees them."""
        self._closed = True
        self._closing = lambda: False


class TooManyHeadersError(Exception):
    """The head of a request has too many lines."""


class TooManyRequestsError(Exception):
    """Too many requests are pipelined."""


class PeerProtocol(HttpToolsProtocol):
    """The protocol of uvicorn with the identity of the client and with deadlines."""

    def __init__(
        self,
        *,
        address: str,
        registry: Connections,
        timeouts: ConnectionTimeouts,
        malformed: Callable[[str], None],
        **config: Any,
    ) -> None:
        super().__init__(**config)
        self.address = address
        self.deadline = NEVER  # the handshake has its own
        self._phase_deadline = NEVER
        self.idle_since: float | None = self.loop.time()
        self.handshake: asyncio.Task[None] | None = None
        self._registry = registry
        self._timeouts = timeouts
        self._malformed = malformed
        self._phase = Phase.HEAD
        self._requests = 0  # started so far
        self._active: RequestResponseCycle | None = None  # the one that is answered
        self._draining = False
        self._keeps_alive = False
        self._max_head = MAX_HEAD_UNAUTHENTICATED
        self._head_bytes = self._body_bytes = self._framing_bytes = self._discarded = 0

    # -- life cycle -----------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Identify the client by its certificate; close the connection if the user has too many."""
        self._buffered = BufferedTransport(transport, self._may_close)
        super().connection_made(self._buffered)  # type: ignore[arg-type]  # all of a transport that is used
        transport.set_write_buffer_limits(MAX_UNREAD)
        peer = _peer(transport)
        self._extensions: dict[str, Any] = {"sully.tls": {"user": peer}, CONNECTION: self}
        self._enter(Phase.HEAD)
        if peer is not None:
            self._max_head = MAX_HEAD
            if not self.identify(peer.user):
                self.loop.call_soon(self.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection and release its last request."""
        self._registry.remove(self)
        self._phase = Phase.CLOSING
        super().connection_lost(exc)
        if self._active is not None:
            # uvicorn knows only the newest one, and a watch may be answered before it.
            self._active.disconnected = True
            self._active.message_event.set()
            self._active = None
        self._buffered.lost()
        self.cycle = self.scope = self.headers = None  # type: ignore[assignment]  # as before the first request
        self.pipeline.clear()
        self._extensions = {}

    def handshake_failed(self) -> None:
        """Remove a connection without a request."""
        self._registry.remove(self)
        # It refers to this object.
        self.parser = None  # type: ignore[assignment]  # as uvicorn does when a connection is lost

    def identify(self, user: User) -> bool:
        """Set the user of the connection; False if the user has too many."""
        return self._registry.identify(self, user)

    def has_whole_request(self) -> bool:
        """Report whether the newest request, and so each before it, was received to its end."""
        return self._phase is Phase.RESPONSE

    def abort(self) -> None:
        """Close the connection immediately, in any state."""
        self._registry.remove(self)
        if self.transport is not None:
            self.transport.abort()
        elif self.handshake is not None:
            self.handshake.cancel()

    def expire(self) -> None:
        """Close a connection whose deadline has passed; abort it at the second call."""
        if self._phase is Phase.CLOSING:
            self.abort()
        else:
            self._close()

    def shutdown(self) -> None:
        """Close after the response to the request in progress."""
        self._draining = True
        super().shutdown()

    def pause_writing(self) -> None:
        """Wait until the client reads, but not indefinitely."""
        self.deadline = min(self._phase_deadline, self.loop.time() + self._timeouts.unread)
        super().pause_writing()

    def resume_writing(self) -> None:
        """Continue writing."""
        self.deadline = self._phase_deadline
        super().resume_writing()

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self.deadline = self._phase_deadline = self.loop.time() + self._timeouts.of(phase)

    def _close(self) -> None:
        self._enter(Phase.CLOSING)
        self.transport.close()

    def _may_close(self) -> bool:
        """Report whether to close now; with an unread request the response could be lost."""
        if self._phase is not Phase.BODY:
            return True
        self._enter(Phase.DISCARD)
        self._discarded = 0
        self.flow.resume_reading()
        return False

    # -- incoming data ----------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse received data while its request stays within the limits."""
        if self._phase is Phase.DISCARD:
            self._discarded += len(data)
            if self._discarded > MAX_DISCARDED:
                self._close()
            return
        if self.transport.is_closing():
            return
        before, requests, body = self._phase, self._requests, self._body_bytes
        if not self._parse(data):
            return
        if self._phase is not before or self._requests != requests:
            if self._phase is not Phase.IDLE:
                self._enter(self._phase)
        elif before is Phase.HEAD:
            self._head_bytes += len(data)
            if self._head_bytes > self._max_head:
                self._reject(431, "Request header fields too large.")
        elif before is Phase.BODY:
            self._framing_bytes += len(data) - (self._body_bytes - body)
            if self._framing_bytes > MAX_FRAMING + 2 * self._body_bytes:
                self._reject(400, "Too much chunked framing.")

    def _parse(self, data: bytes) -> bool:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Upgrades are ignored: the request is served, and what follows is not HTTP.
            self._request_ended()
            self.cycle.keep_alive = False
        except httptools.HttpParserCallbackError as error:
            if not isinstance(error.__context__, TooManyHeadersError):
                self._reject(400, "Invalid HTTP request received.")
            else:
                self._reject(431, "Request header fields too large.")
            return False
        except httptools.HttpParserError:
            self._reject(400, "Invalid HTTP request received.")
            return False
        return True

    def _reject(self, code: int, reason: str) -> None:
        self._malformed(self.address)
        if self._may_respond():
            head = STATUS_LINE[code] + b"content-type: text/plain; charset=utf-8\r\n"
            rest = f"content-length: {len(reason)}\r\nconnection: close\r\n\r\n{reason}"
            self.transport.write(head + rest.encode())
        self._close()

    def _may_respond(self) -> bool:
        """Report whether a response written now would belong to the request being read."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete:
            return True
        return self._phase is Phase.BODY and not self.pipeline and not cycle.response_started

    def on_message_begin(self) -> None:
        """Start a request with the certificate of its connection."""
        if len(self.pipeline) >= MAX_PIPELINED:
            raise TooManyRequestsError
        super().on_message_begin()
        self._phase = Phase.HEAD
        self.idle_since = None
        self._requests += 1
        self._head_bytes = self._body_bytes = self._framing_bytes = 0
        self.scope["extensions"] = self._extensions

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; trailers are ignored."""
        if self._phase is not Phase.HEAD:
            return
        if len(self.headers) >= MAX_HEADERS:
            raise TooManyHeadersError
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the request; until all of it is received the connection cannot be kept alive."""
        super().on_headers_complete()
        self._phase = Phase.BODY
        self._keeps_alive, self.cycle.keep_alive = self.cycle.keep_alive, False

    def on_body(self, body: bytes) -> None:
        """Add a chunk of the body."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Record that the whole request was received."""
        self._request_ended()

    def _request_ended(self) -> None:
        if self._phase is not Phase.BODY:
            return
        self._phase = Phase.RESPONSE
        if not self.cycle.response_started and not self._draining:
            self.cycle.keep_alive = self._keeps_alive
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._active = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """Continue with the next request, or wait for one."""
        self._active = None
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._phase is Phase.RESPONSE:
            self._enter(Phase.IDLE)
            self.idle_since = self.loop.time()


def _peer(transport: asyncio.Transport) -> Peer | None:
    connection = transport.get_extra_info("ssl_object")
    if connection is None:
        return None
    return peer_of(connection.getpeercert(), connection.getpeercert(binary_form=True))

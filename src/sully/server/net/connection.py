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
from dataclasses import dataclass
from enum import Enum
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from sully.server.authentication.certificates import Peer, peer_of
from sully.server.http.exchange import CONNECTION
from sully.server.net.connections import Connections
from sully.server.requests import User

MAX_HEAD = 1 << 20
MAX_HEAD_UNKNOWN = 1 << 17
"""Without a client certificate: there may be many of them."""
MAX_HEADERS = 1000
MAX_PIPELINED = 64
"""Requests that wait for the answer to one before them; each takes much more memory than bytes."""
MAX_FRAMING = 1 << 16
"""Bytes of chunk sizes, extensions and trailers, above twice the bytes of the body."""
MAX_DISCARDED = 1 << 18
"""What is read of a body after the answer, so that the answer is not lost with it."""
MAX_UNREAD = 1 << 16
"""Bytes that may be buffered before further writes wait."""
NEVER = float("inf")


class Phase(Enum):
    """What a connection waits for."""

    HEAD = "head"
    BODY = "body"
    ANSWER = "answer"
    IDLE = "idle"
    DISCARD = "discard"  # the answer is sent, the rest of the request is not wanted
    CLOSING = "closing"


@dataclass(frozen=True, slots=True)
class ConnectionTimeouts:
    """How many seconds each state of a connection may last."""

    handshake: float = 15.0
    head: float = 30.0
    body: float = 70.0  # longer than `whole_body`, after which there is an answer
    whole_body: float = 60.0  # of a request, after which it is answered with 408
    answer: float = NEVER  # a watch may last; what an answer may take is decided in http/
    idle: float = 75.0
    unread: float = 30.0  # of an answer, while more than `MAX_UNREAD` waits to be sent
    discard: float = 2.0
    closing: float = 5.0

    def of(self, phase: Phase) -> float:
        """Return how long a state may last."""
        seconds: float = getattr(self, phase.value)
        return seconds


class Corked:
    """A transport that sends what is written in one turn of the event loop together.

    The head and the body of an answer are written in order; sent apart they would cost
    two TLS records and two system calls, which is most of what a small answer costs.
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
        """Send soon."""
        if not self._waiting:
            self._loop.call_soon(self.flush)
        self._waiting.append(data)
        self._size += len(data)
        if self._size >= MAX_UNREAD:
            # Not later: what is written must show in what the transport says of its buffer.
            self.flush()

    def flush(self) -> None:
        """Send what waits."""
        waiting, self._waiting, self._size = self._waiting, [], 0
        if waiting and not self._transport.is_closing():
            self._transport.write(waiting[0] if len(waiting) == 1 else b"".join(waiting))

    def is_closing(self) -> bool:
        """Report whether nothing more can be written."""
        return self._closed or self._transport.is_closing()

    def close(self) -> None:
        """Send what waits, then close, unless `closing` says that it is too early for that."""
        self.flush()
        self._closed = True
        if self._closing():
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
        self._requests = 0  # begun so far
        self._draining = False
        self._keeps_alive = False
        self._max_head = MAX_HEAD_UNKNOWN
        self._head_bytes = self._body_bytes = self._framing_bytes = self._discarded = 0

    # -- the life of a connection -----------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Identify the client by its certificate; close the connection if the user has too many."""
        self._corked = Corked(transport, self._may_close)
        super().connection_made(self._corked)  # type: ignore[arg-type]  # all of a transport that is used
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
        self._corked.lost()
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

    def abort(self) -> None:
        """Cut the connection off, whatever its state is."""
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
        """Close once the request in progress is answered."""
        self._draining = True
        super().shutdown()

    def pause_writing(self) -> None:
        """Wait until the client reads, but not indefinitely."""
        self.deadline = min(self._phase_deadline, self.loop.time() + self._timeouts.unread)
        super().pause_writing()

    def resume_writing(self) -> None:
        """Go on writing."""
        self.deadline = self._phase_deadline
        super().resume_writing()

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self.deadline = self._phase_deadline = self.loop.time() + self._timeouts.of(phase)

    def _close(self) -> None:
        self._enter(Phase.CLOSING)
        self.transport.close()

    def _may_close(self) -> bool:
        """Report whether to close now; with half a request unread the answer could be lost."""
        if self._phase is not Phase.BODY:
            return True
        self._enter(Phase.DISCARD)
        self._discarded = 0
        self.flow.resume_reading()
        return False

    # -- what comes in ----------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Take what came, as long as the request it belongs to stays within its bounds."""
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
                self._refuse(431, "Request header fields too large.")
        elif before is Phase.BODY:
            self._framing_bytes += len(data) - (self._body_bytes - body)
            if self._framing_bytes > MAX_FRAMING + 2 * self._body_bytes:
                self._refuse(400, "Too much chunked framing.")

    def _parse(self, data: bytes) -> bool:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Nothing is upgraded: it is answered as it is, and what follows is not HTTP.
            self._request_ended()
            self.cycle.keep_alive = False
        except httptools.HttpParserCallbackError as error:
            if not isinstance(error.__context__, TooManyHeadersError):
                self._refuse(400, "Invalid HTTP request received.")
            else:
                self._refuse(431, "Request header fields too large.")
            return False
        except httptools.HttpParserError:
            self._refuse(400, "Invalid HTTP request received.")
            return False
        return True

    def _refuse(self, code: int, why: str) -> None:
        self._malformed(self.address)
        if self._may_answer():
            head = STATUS_LINE[code] + b"content-type: text/plain; charset=utf-8\r\n"
            rest = f"content-length: {len(why)}\r\nconnection: close\r\n\r\n{why}"
            self.transport.write(head + rest.encode())
        self._close()

    def _may_answer(self) -> bool:
        """Report whether what is written now would answer the request that is being read."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete:
            return True
        return self._phase is Phase.BODY and not self.pipeline and not cycle.response_started

    def on_message_begin(self) -> None:
        """Begin a request with the certificate of its connection."""
        if len(self.pipeline) >= MAX_PIPELINED:
            raise TooManyRequestsError
        super().on_message_begin()
        self._phase = Phase.HEAD
        self.idle_since = None
        self._requests += 1
        self._head_bytes = self._body_bytes = self._framing_bytes = 0
        self.scope["extensions"] = self._extensions

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header line; trailers are ignored."""
        if self._phase is not Phase.HEAD:
            return
        if len(self.headers) >= MAX_HEADERS:
            raise TooManyHeadersError
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer; before the whole request is there the connection cannot be kept."""
        super().on_headers_complete()
        self._phase = Phase.BODY
        self._keeps_alive, self.cycle.keep_alive = self.cycle.keep_alive, False

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Record that the whole request was received."""
        self._request_ended()

    def _request_ended(self) -> None:
        if self._phase is not Phase.BODY:
            return
        self._phase = Phase.ANSWER
        if not self.cycle.response_started and not self._draining:
            self.cycle.keep_alive = self._keeps_alive
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on with the next request, or wait for one."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._phase is Phase.ANSWER:
            self._enter(Phase.IDLE)
            self.idle_since = self.loop.time()


def _peer(transport: asyncio.Transport) -> Peer | None:
    connection = transport.get_extra_info("ssl_object")
    if connection is None:
        return None
    return peer_of(connection.getpeercert(), connection.getpeercert(binary_form=True))

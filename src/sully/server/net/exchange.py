"""One request and its response on a connection: the two sides of ASGI.

The connection (connection.py) adds what it receives; the application reads it with `receive` and
responds with `send`. A response is refused if it does not have the announced length, or if a
header would end its line: another response could be hidden in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any, Protocol

from sully.runtime.log import get_logger

Message = MutableMapping[str, Any]
MAX_BUFFERED = 1 << 16
"""Bytes of a body that are buffered before the client has to wait."""
_WITHOUT_BODY = (204, 304)
_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}

_log = get_logger("server")


class Wire(Protocol):
    """What an exchange needs from its connection."""

    def write(self, data: bytes) -> None:
        """Write a part of the response."""

    async def writable(self) -> None:
        """Wait until the client has read what was written."""

    def pause_reading(self) -> None:
        """Read no more from the client."""

    def resume_reading(self) -> None:
        """Read again."""

    def close(self) -> None:
        """Close after what was written."""

    def responded(self) -> None:
        """Take note that the response is complete."""


def status_line(code: int) -> bytes:
    """Return the first line of a response."""
    return _LINES.get(code) or b"HTTP/1.1 %d \r\n" % code


class Exchange:
    """A request that is being received and answered."""

    __slots__ = (
        "_arrived",
        "_body",
        "_chunked",
        "_continues",
        "_head",
        "_left",
        "_size",
        "_waiter",
        "_whole",
        "_wire",
        "disconnected",
        "keep_alive",
        "response_complete",
        "response_started",
        "scope",
    )

    def __init__(
        self, scope: Mapping[str, Any], wire: Wire, *, keep_alive: bool, expects_continue: bool
    ) -> None:
        self.scope = scope
        self.keep_alive = keep_alive
        self.disconnected = False
        self.response_started = False
        self.response_complete = False
        self._wire = wire
        self._continues = expects_continue
        self._body: list[bytes] = []
        self._size = 0
        self._whole = False
        self._arrived = False  # whether there is something that `receive` has not returned
        self._waiter: asyncio.Future[None] | None = None
        self._head = b""  # sent with the first part of the body
        self._chunked = False
        self._left = 0  # bytes of the announced length

    async def run(self, app: Callable[..., Any]) -> None:
        """Let the application respond; a response that is missing becomes a 500."""
        try:
            await app(self.scope, self.receive, self.send)
        except BaseException:  # noqa: BLE001 - whatever ends it, the client gets a response
            _log.exception("request failed", path=self.scope.get("path"))
        if self.disconnected or self.response_complete:
            return
        if self.response_started:
            self._wire.close()
            return
        headers = ((b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close"))
        await self.send({"type": "http.response.start", "status": 500, "headers": headers})
        await self.send({"type": "http.response.body", "body": b"Internal Server Error"})

    # -- the request ------------------------------------------------------------------------------

    def add_body(self, data: bytes) -> None:
        """Add a part of the body."""
        if self.response_complete:
            return
        self._body.append(data)
        self._size += len(data)
        if self._size > MAX_BUFFERED:
            self._wire.pause_reading()
        self._wake()

    def end_body(self) -> None:
        """Take note that the whole request was received."""
        if self.response_complete:
            return
        self._whole = True
        self._wake()

    def disconnect(self) -> None:
        """Take note that the client is gone."""
        self.disconnected = not self.response_complete
        self._wake()

    def _wake(self) -> None:
        self._arrived = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def receive(self) -> Message:
        """Return the body that was received since the last call, or that the exchange is over."""
        if self._continues:
            self._continues = False
            self._wire.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not self._arrived and not self.disconnected and not self.response_complete:
            self._wire.resume_reading()
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        self._arrived = False
        body = b"".join(self._body)
        self._body.clear()
        self._size = 0
        return {"type": "http.request", "body": body, "more_body": not self._whole}

    # -- the response -----------------------------------------------------------------------------

    async def send(self, message: Message) -> None:
        """Send the head or a part of the body; waits while the client does not read."""
        await self._wire.writable()
        if self.disconnected:
            return
        if message["type"] == "http.response.start":
            self._start(message["status"], message.get("headers", ()))
        else:
            self._continue(message.get("body", b""), more=message.get("more_body", False))

    def _start(self, code: int, headers: Any) -> None:
        if self.response_started:
            raise RuntimeError("the response was started already")
        self.response_started = True
        self._continues = False
        self._chunked = self.scope["method"] != "HEAD" and code not in _WITHOUT_BODY
        lines = [status_line(code)]
        closes = False
        for name, value in headers:
            lines.append(b"%b: %b\r\n" % (name, value))
            if name == b"content-length":
                self._left, self._chunked = int(value), False
            elif name == b"connection":
                closes = b"close" in value.lower()
        if closes:
            self.keep_alive = False
        elif not self.keep_alive:
            lines.append(b"connection: close\r\n")
        if self._chunked:
            lines.append(b"transfer-encoding: chunked\r\n")
        head = b"".join(lines)
        if not head.count(b"\r") == head.count(b"\n") == len(lines) or b"\0" in head:
            raise RuntimeError("a header of the response has a line break")
        self._head = head + b"\r\n"

    def _continue(self, body: bytes, *, more: bool) -> None:
        if not self.response_started or self.response_complete:
            raise RuntimeError("a body without a response")
        if self.scope["method"] == "HEAD":
            body, self._left = b"", 0
        elif self._chunked:
            body = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            if not more:
                body += b"0\r\n\r\n"
        else:
            self._left -= len(body)
            if self._left < 0 or (self._left and not more):
                raise RuntimeError("the response has another length than announced")
        head, self._head = self._head, b""
        self._wire.write(b"%b%b" % (head, body) if head else body)
        if not more:
            self._complete()

    def _complete(self) -> None:
        self.response_complete = True
        self._wake()
        if not self.keep_alive:
            self._wire.close()
        self._wire.responded()

"""TLS records that carry no data: how many of them a connection accepts.

OpenSSL reads records until one of them has data, and an event loop reads again as long as its
buffer is full. A key update has 27 bytes and costs 10 microseconds, so a client that sends nothing
else would stop the loop for as long as it sends; records of one byte are hardly better. What is
received is therefore passed to OpenSSL in pieces, and counted: with too little data in it, the
connection ends.
"""

import ssl
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

MAX_FRAMING = 3 << 14
"""Bytes of a handshake, and of records above three times the bytes of their data.

A record counts until its data is read: the largest has 16 KiB and arrives in up to two pieces, so
a third of the limit is left for what came before.
"""
_OF_DATA = 3
_PIECE = 1 << 14


class CountingObject(ssl.SSLObject):
    """The TLS of one connection, with a limit for records that carry no data."""

    _received: ssl.MemoryBIO
    _passed: ssl.MemoryBIO
    _framing = 0

    def receive(self, received: ssl.MemoryBIO, passed: ssl.MemoryBIO) -> None:
        """Set where bytes arrive, and from where OpenSSL reads them."""
        self._received = received
        self._passed = passed

    def do_handshake(self) -> None:
        """Continue the handshake with what was received; raises SSLError."""
        self._with_received(super().do_handshake)
        self._framing = 0

    def read(self, size: int = 1024, buffer: Any = None) -> Any:
        """Read data; raises SSLError."""
        data: Any = self._with_received(super().read, size, buffer)
        # Into a buffer it is read by number.
        count = data if isinstance(data, int) else len(data)
        self._framing = max(0, self._framing - _OF_DATA * count)
        return data

    def unwrap(self) -> None:
        """Continue the shutdown with what was received; raises SSLError."""
        self._with_received(super().unwrap)

    def pending(self) -> int:
        """Return how much can be read, also of records that are not decrypted."""
        return super().pending() + self._passed.pending

    def _with_received(self, step: Callable[..., T], *arguments: Any) -> T:
        while True:
            if self._received.pending and not self._passed.pending:
                self._pass()
            try:
                return step(*arguments)
            except ssl.SSLWantReadError:
                if not self._received.pending:
                    raise

    def _pass(self) -> None:
        piece = self._received.read(_PIECE)
        self._framing += len(piece)
        if self._framing > MAX_FRAMING:
            raise ssl.SSLError("too many records without data")
        self._passed.write(piece)


class ServerContext(ssl.SSLContext):
    """The context of a server to which anybody can connect."""

    sslobject_class: type[ssl.SSLObject] = CountingObject

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *arguments: Any, **options: Any
    ) -> CountingObject:
        """Return the TLS of one connection."""
        passed = ssl.MemoryBIO()
        connection = super().wrap_bio(passed, outgoing, *arguments, **options)
        assert isinstance(connection, CountingObject)
        connection.receive(incoming, passed)
        return connection

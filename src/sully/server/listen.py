"""Listening: uvicorn with our TLS context, telling the application who connected."""

import asyncio
import contextlib
import socket
import ssl
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sully.server.authentication.certificates import Peer, peer_of

# How long open requests may take to end when the server stops.
DRAIN_SECONDS = 5
# How long a connection without a request may then take to say goodbye. Clients that pool their
# connections do not read from idle ones, and would hear of our end only when they use them next.
GOODBYE_SECONDS = 0.5
# How long the head of a request may take to arrive, and how large it may be.
HEAD_SECONDS = 30.0
MAX_HEAD = 1 << 20
# How much may wait to be sent on a connection before whoever sends more has to wait, and how long
# its client may then take to read most of it.
MAX_UNREAD = 64 * 1024
UNREAD_SECONDS = 30.0


class Corked:
    """A transport that sends what is written in one turn of the event loop together.

    The head and the body of an answer are written one after the other; sent apart they would cost
    two TLS records and two system calls, which is most of what a small answer costs.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
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

    def close(self) -> None:
        """Send what waits, then close."""
        self.flush()
        self._transport.close()


class PeerProtocol(HttpToolsProtocol):
    """The usual protocol, which also says who connected and does not wait for ever.

    The head of a request must arrive within a time and a size, else anybody who can connect could
    hold connections and memory with hardly any effort. Bodies are bounded where they are read.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Remember the certificate of the connection."""
        super().connection_made(Corked(transport))  # type: ignore[arg-type]  # all of a transport that is used
        transport.set_write_buffer_limits(MAX_UNREAD)
        self._unread_ends: asyncio.TimerHandle | None = None
        self._peer = {"sully.tls": {"user": _peer(transport)}}
        self._head_bytes = 0
        self._in_head = True
        self._head_ends: asyncio.TimerHandle | None = self.loop.call_later(
            HEAD_SECONDS, self._give_up
        )

    def data_received(self, data: bytes) -> None:
        """Take what came, as long as the head it belongs to is not too long."""
        super().data_received(data)
        if not self._in_head:
            return
        self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD:
            self._give_up()
        elif self._head_ends is None:
            self._head_ends = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget about the time."""
        self._head_arrived()
        self._was_read()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait until the client reads, but not for ever."""
        super().pause_writing()
        self._unread_ends = self.loop.call_later(UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on sending."""
        self._was_read()
        super().resume_writing()

    def _was_read(self) -> None:
        if self._unread_ends is not None:
            self._unread_ends.cancel()
            self._unread_ends = None

    def on_message_begin(self) -> None:
        """Begin a request with the certificate of its connection."""
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0
        self.scope["extensions"] = self._peer  # type: ignore[typeddict-item]  # our own extension

    def on_headers_complete(self) -> None:
        """Go on with the request."""
        self._head_arrived()
        super().on_headers_complete()

    def _head_arrived(self) -> None:
        self._in_head = False
        if self._head_ends is not None:
            self._head_ends.cancel()
            self._head_ends = None

    def _give_up(self) -> None:
        self._head_arrived()
        self.transport.close()


def _peer(transport: asyncio.Transport) -> Peer | None:
    connection = transport.get_extra_info("ssl_object")
    if connection is None:
        return None
    return peer_of(connection.getpeercert(), connection.getpeercert(binary_form=True))


def tls_context(certificate: Path, key: Path, authority: bytes) -> ssl.SSLContext:
    """Return a context that asks for client certificates and does without them."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(cadata=authority.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


class ListenError(OSError):
    """An address cannot be listened on; the number says why."""


def bind(host: str, port: int) -> socket.socket:
    """Take an address; raises ListenError when it is in use or not ours."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio sends small answers at once only over what says TCP.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise ListenError(error.errno, error.strerror) from error
    return listening


def own_names(host: str) -> list[str]:
    """Return what clients call the server by when it listens on a host."""
    if host not in ("0.0.0.0", "::"):
        return [host]
    names = [socket.gethostname()]
    family, elsewhere = (
        (socket.AF_INET6, "2001:db8::1") if host == "::" else (socket.AF_INET, "192.0.2.1")
    )
    # Which of our addresses others see: the one a packet would leave from. None is sent.
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((elsewhere, 9))
        names.append(probe.getsockname()[0])
    return names


class Listener:
    """One listening server inside the running event loop."""

    def __init__(self, app: Any, listening: socket.socket, context: ssl.SSLContext) -> None:
        self._socket = listening
        config = uvicorn.Config(
            app,
            http=PeerProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=DRAIN_SECONDS,
            ssl_context_factory=lambda _config, _default: context,
        )
        config.load()
        self._server = uvicorn.Server(config)

    @property
    def port(self) -> int:
        """Return the port in use, also when 0 was asked for."""
        return int(self._socket.getsockname()[1])

    async def start(self) -> None:
        """Begin to accept."""
        self._server.lifespan = self._server.config.lifespan_class(self._server.config)
        await self._server.startup(sockets=[self._socket])

    async def serve(self) -> None:
        """Serve until stopped, then let open requests end."""
        await self._server.main_loop()
        leaving = asyncio.get_running_loop().call_later(GOODBYE_SECONDS, self._leave_idle)
        await self._server.shutdown(sockets=[self._socket])
        leaving.cancel()

    def _leave_idle(self) -> None:
        for connection in list(self._server.server_state.connections):
            cycle = getattr(connection, "cycle", None)
            if cycle is None or cycle.response_complete:
                connection.transport.abort()

    def stop(self) -> None:
        """Ask the server to end."""
        self._server.should_exit = True

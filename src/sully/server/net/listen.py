"""Listening: accepts connections and passes them to uvicorn's protocol with our TLS context.

Connections are accepted here and not by the event loop, to decide which ones get a descriptor when
they are few. connection.py handles a connection.
"""

import asyncio
import contextlib
import errno
import socket
import ssl
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from msgspec.structs import replace

from sully.runtime import descriptors
from sully.runtime.log import Tally, get_logger
from sully.server.net.connection import ConnectionTimeouts, PeerProtocol
from sully.server.net.connections import ConnectionLimits, Connections
from sully.server.net.records import ServerContext

# How long open requests may take to end when the server stops.
DRAIN_SECONDS = 5
# How long a connection without a request may then take to close. Clients that pool their
# connections do not read from idle ones, and would notice the end only when they use them next.
IDLE_CLOSE_SECONDS = 0.5
# Connections that wait to be accepted, and how many are accepted before other tasks run.
BACKLOG = 2048
ACCEPTS_PER_TURN = 32
# How often to check deadlines.
SWEEP_SECONDS = 1.0
# When descriptors run out: how many connections to close, and when to try again.
CLOSE_BATCH = 8
PAUSE_SECONDS = 0.1
_OUT_OF_RESOURCES = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
# TLS 1.2 with forward secrecy and authenticated encryption only; TLS 1.3 has no other.
CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"

_log = get_logger("server")


def tls_context(certificate: Path, key: Path, authority: bytes) -> ssl.SSLContext:
    """Return a context that requests client certificates and does not require them."""
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(cadata=authority.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


class ListenError(OSError):
    """An address cannot be bound; `errno` has the reason."""


def bind(host: str, port: int) -> socket.socket:
    """Bind an address; raises ListenError when it is in use or not local."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small responses immediately only over a socket that names TCP.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise ListenError(error.errno, error.strerror) from error
    return listening


def host_names(host: str) -> list[str]:
    """Return the names of the server when it listens on a host, for its certificate."""
    if host not in ("0.0.0.0", "::"):
        return [host]
    names = [socket.gethostname()]
    family, remote = (
        (socket.AF_INET6, "2001:db8::1") if host == "::" else (socket.AF_INET, "192.0.2.1")
    )
    # The source address of outgoing packets. None is sent.
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((remote, 9))
        names.append(probe.getsockname()[0])
    return names


class ConnectionSettings(msgspec.Struct, frozen=True):
    """Limits and timeouts of connections."""

    limits: ConnectionLimits = msgspec.field(default_factory=ConnectionLimits)
    timeouts: ConnectionTimeouts = msgspec.field(default_factory=ConnectionTimeouts)
    drain: int = DRAIN_SECONDS


class Listener:
    """One listening server inside the running event loop."""

    def __init__(
        self,
        app: Any,
        listening: socket.socket,
        context: ssl.SSLContext,
        settings: ConnectionSettings | None = None,
    ) -> None:
        settings = settings or ConnectionSettings()
        self._socket = listening
        self._context = context
        self._timeouts = settings.timeouts
        self._connections = Connections(_within_descriptors(settings.limits))
        self._handshakes: set[asyncio.Task[Any]] = set()
        self._accepting = False
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._shed = 0
        self._malformed = Tally(_log, "malformed requests rejected")
        self._refused = Tally(_log, "connections rejected, too many are open")
        self._exhausted = Tally(_log, "out of file descriptors, closing idle connections")
        self._closed_for_others = Tally(
            _log, "too many connections, closing the least important ones"
        )
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
            timeout_graceful_shutdown=settings.drain,
        )
        config.load()
        self._server = uvicorn.Server(config)

    @property
    def port(self) -> int:
        """Return the port in use, also when 0 was requested."""
        return int(self._socket.getsockname()[1])

    async def start(self) -> None:
        """Start accepting connections."""
        self._server.lifespan = self._server.config.lifespan_class(self._server.config)
        self._server.servers = []  # it accepts nothing itself
        self._socket.listen(BACKLOG)
        self._accepting = True
        self._listen()
        self._sweep()

    async def serve(self) -> None:
        """Serve until stopped, then drain open requests."""
        await self._server.main_loop()
        loop = asyncio.get_running_loop()
        self._accepting = False
        loop.remove_reader(self._socket)
        for handshake in self._handshakes:
            handshake.cancel()
        idle_timer = loop.call_later(IDLE_CLOSE_SECONDS, self._close_idle)
        await self._server.shutdown(sockets=[self._socket])
        await self._abort_all()
        idle_timer.cancel()
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()

    def stop(self) -> None:
        """Make `serve` return."""
        self._server.should_exit = True

    def _close_idle(self) -> None:
        for connection in list(self._server.server_state.connections):
            cycle = getattr(connection, "cycle", None)
            if cycle is None or cycle.response_complete:
                connection.transport.abort()

    async def _abort_all(self) -> None:
        """Close what did not end in time: its socket must not outlive the event loop."""
        connections = self._server.server_state.connections
        for connection in list(connections):
            connection.transport.abort()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(IDLE_CLOSE_SECONDS):
                while connections:  # noqa: ASYNC110 - the loop takes two iterations to close them
                    await asyncio.sleep(0)  # noqa: TID251 - lets it run; no time passes

    # -- accepting --------------------------------------------------------------------------------

    def _listen(self) -> None:
        if self._accepting:
            asyncio.get_running_loop().add_reader(self._socket, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in _OUT_OF_RESOURCES:
                    self._close_some()
                    return
                continue  # of one connection, which is already closed
            self._add(accepted, address[0])

    def _close_some(self) -> None:
        """Close the least important connections, and wait until they are closed."""
        self._exhausted.add(open=len(self._connections))
        for _ in range(CLOSE_BATCH):
            if not self._connections.close_one():
                break
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._socket)
        loop.call_later(PAUSE_SECONDS, self._listen)

    def _add(self, accepted: socket.socket, address: str) -> None:
        connection = PeerProtocol(
            address=address,
            registry=self._connections,
            timeouts=self._timeouts,
            malformed=self._count_malformed,
            config=self._server.config,
            server_state=self._server.server_state,
            app_state={},
        )
        if not self._connections.add(connection):
            self._refused.add(address=address)
            accepted.close()
            return
        accepted.setblocking(False)
        handshake = asyncio.get_running_loop().create_task(self._handshake(connection, accepted))
        connection.handshake = handshake
        self._handshakes.add(handshake)
        handshake.add_done_callback(partial(self._after_handshake, connection, accepted))

    async def _handshake(self, connection: PeerProtocol, accepted: socket.socket) -> None:
        # Clients without TLS and slow handshakes are ignored.
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=self._timeouts.handshake,
            )

    def _after_handshake(
        self, connection: PeerProtocol, accepted: socket.socket, handshake: asyncio.Task[Any]
    ) -> None:
        self._handshakes.discard(handshake)
        connection.handshake = None
        if connection.transport is None:
            connection.handshake_failed()
            accepted.close()

    # -- timeouts and limits ----------------------------------------------------------------------

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in self._connections.expired(now):
            connection.expire()
        if self._connections.shed != self._shed:
            self._closed_for_others.add(
                self._connections.shed - self._shed, open=len(self._connections)
            )
            self._shed = self._connections.shed
        for tally in (self._malformed, self._refused, self._exhausted, self._closed_for_others):
            tally.report(now)
        self._sweep_timer = loop.call_later(SWEEP_SECONDS, self._sweep)

    def _count_malformed(self, address: str) -> None:
        self._malformed.add(address=address)


def _within_descriptors(limits: ConnectionLimits) -> ConnectionLimits:
    """Reserve descriptors for the store and the logs."""
    limit = descriptors.limit()
    limit -= min(limit // 4, 128)
    return replace(limits, total=min(limits.total or limit, limit))

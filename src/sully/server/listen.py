"""Listening: uvicorn with our TLS context, telling the application who connected."""

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# How long open requests may take to end when the server stops.
DRAIN_SECONDS = 5


class PeerProtocol(HttpToolsProtocol):
    """The usual protocol, which also puts the client's certificate into the ASGI scope."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Remember the certificate of the connection."""
        super().connection_made(transport)
        self._peer = {"sully.tls": {"peer": transport.get_extra_info("peercert")}}

    def on_message_begin(self) -> None:
        """Begin a request with the certificate of its connection."""
        super().on_message_begin()
        self.scope["extensions"] = self._peer  # type: ignore[typeddict-item]  # our own extension


def tls_context(certificate: Path, key: Path, authority: bytes) -> ssl.SSLContext:
    """Return a context that asks for client certificates and does without them."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(cadata=authority.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


def bind(host: str, port: int) -> socket.socket:
    """Take an address; raises OSError when it is in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio sends small answers at once only over what says TCP.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening


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
        await self._server.shutdown(sockets=[self._socket])

    def stop(self) -> None:
        """Ask the server to end."""
        self._server.should_exit = True

"""Serves the dashboard over HTTP on a socket of this machine, for `sully dashboard`."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

_MOST: Final = 200
"""Connections; an open page has one for its stream of changes."""
_MOST_IDLE: Final = 100
"""Connections without a request."""


class _Connection(HttpToolsProtocol):
    """A connection that gives way if there are too many on which no request is in progress.

    uvicorn refuses requests above `limit_concurrency`, which counts connections, and never closes
    one on which nothing was sent: any program of this machine could lock out the viewer.
    """

    opened = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self.opened = self.loop.time()
        idle = [
            other for other in self.connections if isinstance(other, _Connection) and other.is_idle
        ]
        if len(idle) > _MOST_IDLE:
            min(idle, key=lambda connection: connection.opened).transport.close()

    @property
    def is_idle(self) -> bool:
        """Report whether no request is in progress."""
        cycle: RequestResponseCycle | None = self.cycle
        return (cycle is None or cycle.response_complete) and not self.transport.is_closing()


class _Server(uvicorn.Server):
    """A server whose signals the command handles."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


@asynccontextmanager
async def serving(app: Any, listening: socket.socket) -> AsyncIterator[None]:
    """Serve an application for the duration of the block."""
    config = uvicorn.Config(
        app,
        http=_Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
        limit_concurrency=_MOST,
    )
    server = _Server(config)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(server.serve(sockets=[listening]))
        try:
            yield
        finally:
            server.should_exit = True
            await asyncio.wait((running,))

"""Serves the dashboard over HTTP on a socket of this machine, for `sully dashboard`."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn


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
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
        limit_concurrency=200,
    )
    server = _Server(config)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(server.serve(sockets=[listening]))
        try:
            yield
        finally:
            server.should_exit = True
            await asyncio.wait((running,))

"""A connection pool that leaves no connection open when it is closed.

If a response was not read to its end, aiohttp closes its connection and forgets it. With TLS that
only starts the closing: it ends when the server answers, or after 30 seconds. If the event loop
ends before, the socket stays open until it is garbage.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    from aiohttp.client_reqrep import ClientRequest
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace


class Connector(aiohttp.TCPConnector):
    """Knows each connection until it is closed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._transports: dict[asyncio.Future[None], asyncio.Transport] = {}

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp passes it by this name
    ) -> Connection:
        """Return a connection from the pool, or a new one."""
        connection = await super().connect(req, traces, timeout)
        protocol, transport = connection.protocol, connection.transport
        closed = protocol.closed if protocol is not None else None
        if closed is not None and transport is not None and closed not in self._transports:
            self._transports[closed] = transport
            closed.add_done_callback(self._forget)
        return connection

    def _forget(self, closed: asyncio.Future[None]) -> None:
        del self._transports[closed]
        if not closed.cancelled():
            closed.exception()  # it was reported to the user of the connection

    async def close(self, *, abort_ssl: bool = False) -> None:
        """Close all connections, and wait for it."""
        await super().close(abort_ssl=abort_ssl)
        for transport in self._transports.values():
            transport.abort()
        if self._transports:
            await asyncio.wait(self._transports)

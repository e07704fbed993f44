"""The connections to one server, shared by all transports of this process.

aiohttp pools them; added here: requests are bounded while watches are not, and a renewed
certificate opens new connections.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sully.client.kubeconfig.access import Access, tls_context
from sully.client.kubeconfig.credentials import Credential
from sully.client.transport import UnreachableError

if TYPE_CHECKING:
    import ssl

    import aiohttp

PARALLEL_REQUESTS = 64


class Connections:
    """A connection pool; it connects on first use."""

    def __init__(self, access: Access) -> None:
        self.access = access
        # Watches stay open, so they do not count: else they could starve the requests.
        self.slots = asyncio.Semaphore(PARALLEL_REQUESTS)
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        self._tls: tuple[Credential, ssl.SSLContext] | None = None

    async def close(self) -> None:
        """Close all connections, also those of watches."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def session(self) -> aiohttp.ClientSession:
        """Return the session of aiohttp that holds the connections."""
        import aiohttp

        if self._closed:
            raise UnreachableError("the transport is closed")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session

    def tls(self, credential: Credential) -> ssl.SSLContext:
        """Return the TLS context for a credential."""
        # A new context only for a new certificate: connections are pooled by context.
        shown = Credential(certificate=credential.certificate, key=credential.key)
        if self._tls is None or self._tls[0] != shown:
            self._tls = (shown, tls_context(self.access, credential))
        return self._tls[1]

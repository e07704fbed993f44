"""The HTTP transport: any Kubernetes API server, over aiohttp.

aiohttp is imported when the first request is made: it takes longer to load than most commands
take to run. json_answers.py decodes responses, the `Access` has the credentials. The
`Connections` are apart, because several transports may share them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote, urlencode

from sully import __version__
from sully.client.calls import READS, Call, Calls, WriteGuard
from sully.client.http.connection_errors import unreachable
from sully.client.http.json_answers import (
    Lines,
    Responses,
    read_event,
    read_object,
    read_page,
    read_part,
)
from sully.client.http.proxies import proxy_for
from sully.client.http.status import to_error
from sully.client.kubeconfig.access import Access, tls_context
from sully.client.kubeconfig.credentials import AccessError, Credential
from sully.client.transport import (
    Kind,
    Page,
    ResourceRef,
    UnreachableError,
    UnreadableError,
    WatchEvent,
    WatchStalledError,
)
from sully.machinery.serialization.codec import from_json, to_json

if TYPE_CHECKING:
    import ssl

    import aiohttp

if TYPE_CHECKING:
    import aiohttp

    from sully.machinery.errors import ApiError

T = TypeVar("T")

USER_AGENT = f"sully/{__version__}"
JSON = "application/json"
CONNECT_SECONDS = 10.0
REQUEST_SECONDS = 60.0
WATCH_SLACK_SECONDS = 30.0
"""How much longer than its timeout a watch may last."""
STALL_SECONDS = 90.0
"""After how long without an event a watch is stalled: servers send a bookmark every minute."""

METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "apply": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}


class HttpTransport(Calls):
    """A `Transport` to the server that an `Access` names."""

    def __init__(
        self,
        access: Access,
        *,
        request_seconds: float = REQUEST_SECONDS,
        stall_seconds: float = STALL_SECONDS,
        agent: str = USER_AGENT,
        guard: WriteGuard | None = None,
        connections: Connections | None = None,
    ) -> None:
        self._access = access
        self._request_seconds = request_seconds
        self._stall_seconds = stall_seconds
        self._agent = agent
        self._guard = guard
        self._connections = connections or Connections(access)

    async def __aenter__(self) -> Self:
        """Return the transport; it connects on first use."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the transport."""
        await self.close()

    async def close(self) -> None:
        """Close all connections, also those of watches and of transports that share them."""
        await self._connections.close()

    def named(self, name: str, guard: WriteGuard | None = None) -> HttpTransport:
        """Return a transport over the same connections with another user agent.

        The server derives the field manager from the user agent.
        """
        return HttpTransport(
            self._access,
            request_seconds=self._request_seconds,
            stall_seconds=self._stall_seconds,
            agent=f"{name}/{__version__}",
            guard=guard,
            connections=self._connections,
        )

    async def document(self, path: str, accept: str = JSON) -> Any:
        """Return a document that is not an object, such as discovery."""
        data = await self._read(path, accept)
        try:
            return from_json(data)
        except ValueError as error:
            raise UnreadableError(f"{path}: the response is not JSON: {error}") from error

    async def text(self, path: str) -> str:
        """Return a page of text, such as metrics."""
        return (await self._read(path, "text/plain")).decode(errors="replace")

    async def credential(self) -> Credential:
        """Return what the user authenticates with."""
        return await self._access.credentials.current()

    async def server_time(self) -> datetime | None:
        """Return what time it is for the server, None if it sends none."""
        call = Call("get", ResourceRef("", "", ""))
        async with (
            self._connections.slots,
            self._open(call, self._request_timeout(call), path="/version") as response,
        ):
            await self._body(response)
        try:
            return parsedate_to_datetime(response.headers.get("Date", "")).astimezone(UTC)
        except ValueError:
            return None

    async def _read(self, path: str, accept: str) -> bytes:
        call = Call("get", ResourceRef("", "", ""))
        async with (
            self._connections.slots,
            self._open(call, self._request_timeout(call), path=path, accept=accept) as response,
        ):
            return await self._body(response)

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        return await self._connections.responses.read(response.content.iter_any())

    async def _object(self, kind: Kind[T], call: Call) -> T:
        data = await self._answer(call)
        return read_part(kind, data) if call.ref.subresource else read_object(kind, data)

    async def _page(self, kind: Kind[T], call: Call) -> Page[T]:
        return read_page(kind, await self._answer(call))

    async def _done(self, call: Call) -> None:
        await self._answer(call)

    async def _answer(self, call: Call) -> bytes:
        # The guard is called last: the lease may have been lost while waiting for a slot.
        async with (
            self._connections.slots,
            self._open(call, self._request_timeout(call)) as response,
        ):
            return await self._body(response)

    async def _events(self, kind: Kind[T], call: Call) -> AsyncGenerator[WatchEvent[T], None]:
        lines = Lines()
        async with self._open(call, self._watch_timeout(call)) as response:
            if call.opened is not None:
                call.opened()
            # The stream stops reading from the socket while its buffer is full.
            async for chunk in _chunks(response):
                for line in lines.feed(chunk):
                    yield read_event(kind, line)
            for line in lines.end():
                yield read_event(kind, line)

    def _request_timeout(self, call: Call) -> aiohttp.ClientTimeout:
        from aiohttp import ClientTimeout

        total = self._request_seconds
        if self._guard is not None and call.verb not in READS:
            total = min(total, self._guard())
        return ClientTimeout(total=total, sock_connect=CONNECT_SECONDS)

    def _watch_timeout(self, call: Call) -> aiohttp.ClientTimeout:
        from aiohttp import ClientTimeout

        promised = call.options.get("timeoutSeconds")
        idle = None
        if promised:
            idle = min(float(promised) + WATCH_SLACK_SECONDS, self._stall_seconds)
        return ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=idle)

    @asynccontextmanager
    async def _open(
        self, call: Call, limits: aiohttp.ClientTimeout, *, path: str = "", accept: str = JSON
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and yield its response if it is a success; else raise."""
        import aiohttp

        url = self._access.server + (path or url_path(call.ref)) + _query(call.options)
        try:
            response = await self._send(call, url, limits, accept)
            try:
                if response.status >= 400:
                    raise _refusal(response, await self._body(response))
                yield response
            finally:
                # Returns the connection to the pool if all was read, and closes it if not.
                response.release()
        except UnreachableError:
            raise
        except (aiohttp.ClientError, OSError) as error:
            raise unreachable(error, url) from error
        except AccessError as error:
            raise UnreachableError(str(error)) from error

    async def _send(
        self, call: Call, url: str, limits: aiohttp.ClientTimeout, accept: str
    ) -> aiohttp.ClientResponse:
        credentials = self._access.credentials
        credential = await credentials.current()
        headers = [("User-Agent", self._agent), ("Accept", accept)]
        response = await self._request(call, url, limits, credential, headers)
        if response.status == 401 and credentials.reject(credential):
            response.release()
            credential = await credentials.current()
            response = await self._request(call, url, limits, credential, headers)
        return response

    async def _request(
        self,
        call: Call,
        url: str,
        limits: aiohttp.ClientTimeout,
        credential: Credential,
        headers: list[tuple[str, str]],
    ) -> aiohttp.ClientResponse:
        import yarl

        secure = url.startswith("https:")
        return await self._connections.session().request(
            METHODS[call.verb],
            # Already quoted.
            yarl.URL(url, encoded=True),
            data=None if call.body is None else to_json(call.body),
            headers=headers + _headers(self._access, call, credential),
            ssl=self._connections.tls(credential) if secure else True,
            server_hostname=(self._access.tls_server_name or None) if secure else None,
            proxy=self._access.proxy_url or proxy_for(url, os.environ),
            timeout=limits,
            allow_redirects=False,
        )


async def _chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the chunks of a watch as they arrive."""
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except TimeoutError as error:
        raise WatchStalledError(f"{response.url.path}: the watch stalled") from error


def url_path(ref: ResourceRef) -> str:
    """Return the path of a collection, an object or a subresource."""
    parts = ["apis", ref.group, ref.version] if ref.group else ["api", ref.version]
    if ref.namespace:
        parts += ["namespaces", ref.namespace]
    parts += [part for part in (ref.plural, ref.name, ref.subresource) if part]
    return "/" + "/".join(quote(part, safe=":") for part in parts)


def _query(options: Mapping[str, str]) -> str:
    return "?" + urlencode(options) if options else ""


def _headers(access: Access, call: Call, credential: Credential) -> list[tuple[str, str]]:
    headers: list[tuple[str, str]] = []
    if not access.compression:
        headers.append(("Accept-Encoding", "identity"))
    if credential.authorization:
        headers.append(("Authorization", credential.authorization))
    if call.body is not None:
        headers.append(("Content-Type", call.patch_type or JSON))
    for name, value in access.headers.items():
        headers += [(name, item) for item in ((value,) if isinstance(value, str) else value)]
    for name, value in headers:
        if not value.isprintable():
            # Not the value: it may be a secret.
            raise AccessError(
                f"cannot send {name}: it has a line break or another control character"
            )
    return headers


def _refusal(response: aiohttp.ClientResponse, data: bytes) -> ApiError:
    status: Any = None
    if response.content_type == "application/json":
        try:
            status = from_json(data)
        except ValueError:
            status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        status = {"message": _page_text(response, data)}
    return to_error(status, code=response.status, headers=response.headers)


def _page_text(response: aiohttp.ClientResponse, data: bytes) -> str:
    text = data.decode(errors="replace").strip()
    if response.status == 404 and text == "404 page not found":
        # The response of an API server that does not serve the group.
        return "the server could not find the requested resource"
    # Not from an API server: a proxy, or something else that listens there.
    return f"the server answered {response.status} {response.reason}: {text[:200]}".removesuffix(
        ": "
    )


PARALLEL_REQUESTS = 64


class Connections:
    """A connection pool; it connects on first use."""

    def __init__(self, access: Access) -> None:
        self.access = access
        # Watches stay open, so they do not count: else they could starve the requests.
        self.slots = asyncio.Semaphore(PARALLEL_REQUESTS)
        self.responses = Responses()
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

        from sully.client.http.connector import Connector

        if self._closed:
            raise UnreachableError("the transport is closed")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=Connector(limit=0), cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session

    def tls(self, credential: Credential) -> ssl.SSLContext:
        """Return the TLS context for a credential."""
        # A new context only for a new certificate: connections are pooled by context.
        shown = Credential(certificate=credential.certificate, key=credential.key)
        if self._tls is None or self._tls[0] != shown:
            self._tls = (shown, tls_context(self.access, credential))
        return self._tls[1]

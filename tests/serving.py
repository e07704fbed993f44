"""Raw calls to a control plane, for tests that look at what is on the wire.

`Http` speaks to a running plane over TLS; `Asgi` hands requests to the application itself, for
tests that bring their own store or clock. Both answer with an `Answer`.
"""

from __future__ import annotations

import asyncio
import io
import json
import ssl
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
from yarl import URL

from embedded import SCHEME, embedded
from sully.api import build_scheme
from sully.app import ADMIN, RunningControlPlane
from sully.machinery.compat import Compat
from sully.runtime.clock import Clock
from sully.runtime.ids import Ids
from sully.runtime.metrics import Metrics
from sully.server.bootstrap import ensure_namespaces
from sully.server.http.app import HttpApp
from sully.server.http.metrics import RequestCounter
from sully.server.inprocess import InProcess
from sully.server.net.tls import Authority
from sully.store.base import Store
from sully.store.memory import MemoryStore
from sully.testing.clock import FakeClock
from sully.testing.patience import PATIENCE

Obj = dict[str, Any]
JSON = "application/json"
YAML = "application/yaml"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

_numbers = count(1)


def fresh(prefix: str = "x") -> str:
    """Return a name that no other test uses."""
    return f"{prefix}-{next(_numbers)}"


@dataclass(frozen=True, slots=True)
class Answer:
    """A response."""

    code: int
    body: bytes
    headers: list[tuple[str, str]] = field(default_factory=list)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def warnings(self) -> list[str]:
        return [value for name, value in self.headers if name.lower() == "warning"]

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")

    @property
    def message(self) -> str:
        """Return the text of a Status."""
        return str(self.json["message"])

    def ok(self, code: int = 0) -> Any:
        """Return the object, which must be there."""
        assert self.code == code or (not code and self.code in (200, 201)), self.body[:600]
        return self.json


def _encoded(body: Any) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


def _path(path: str, query: Mapping[str, str]) -> str:
    if not query:
        return path
    return f"{path}{'&' if '?' in path else '?'}{urlencode(query, quote_via=quote)}"


class Caller(ABC):
    """The verbs as HTTP requests."""

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        media: str = JSON,
        *,
        headers: Mapping[str, str] | None = None,
        **query: Any,
    ) -> Answer:
        """Send one request; `body` is bytes, text, or something to write as JSON."""
        sent = {"user-agent": "tests/1.0", **(headers or {})}
        data = _encoded(body)
        if data is not None and media:
            sent["content-type"] = media
        async with asyncio.timeout(PATIENCE):
            return await self._exchange(method, _path(path, query), data, sent)

    @abstractmethod
    async def _exchange(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str]
    ) -> Answer:
        """Carry one request there and its answer back."""

    async def get(self, path: str, accept: str = "", **query: Any) -> Answer:
        return await self.call("GET", path, headers={"accept": accept} if accept else {}, **query)

    async def post(self, path: str, body: Any, media: str = JSON, **query: Any) -> Answer:
        return await self.call("POST", path, body, media, **query)

    async def put(self, path: str, body: Any, media: str = JSON, **query: Any) -> Answer:
        return await self.call("PUT", path, body, media, **query)

    async def patch(self, path: str, body: Any, media: str = MERGE, **query: Any) -> Answer:
        return await self.call("PATCH", path, body, media, **query)

    async def delete(self, path: str, body: Any = None, **query: Any) -> Answer:
        return await self.call("DELETE", path, body, **query)


class Http(Caller):
    """Calls to a running control plane."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self.url = url

    async def _exchange(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str]
    ) -> Answer:
        url = URL(self.url + path, encoded=True)
        sent = None if data is None else io.BytesIO(data)  # large bytes would be warned of
        skip = ("content-type", "accept") if "accept" not in headers else ("content-type",)
        async with self._session.request(
            method, url, data=sent, headers=headers, skip_auto_headers=skip
        ) as reply:
            return Answer(reply.status, await reply.read(), list(reply.headers.items()))

    @asynccontextmanager
    async def watch(self, path: str, accept: str = "", **query: str) -> AsyncIterator[Lines]:
        """Open a watch; the block gets its events."""
        url = self.url + _path(path, {"watch": "true", **query})
        headers = {"accept": accept} if accept else {}
        async with self._session.get(url, headers=headers) as reply:
            assert reply.status == 200, await reply.read()
            yield Lines(reply.content)


class Lines:
    """The events of an open watch."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content

    async def next(self) -> Obj | None:
        """Return the next event, None at the end of the stream."""
        async with asyncio.timeout(PATIENCE):
            line = await self._content.readline()
        return json.loads(line) if line else None

    async def take(self, number: int) -> list[Obj]:
        """Return so many events; the stream must have them."""
        results = [await self.next() for _ in range(number)]
        return [event for event in results if event is not None]

    async def rest(self) -> list[Obj]:
        """Return everything up to the end of the stream."""
        results = []
        while (event := await self.next()) is not None:
            results.append(event)
        return results

    async def until(self, done: Callable[[Obj], bool]) -> list[Obj]:
        """Return the events up to one, which is the last."""
        results: list[Obj] = []
        while True:
            event = await self.next()
            assert event is not None, "the watch ended"
            results.append(event)
            if done(event):
                return results


def types_and_names(events: list[Obj]) -> list[tuple[str, str]]:
    """Reduce events to their types and names."""
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def client_tls(
    plane: RunningControlPlane, user: str = "", groups: tuple[str, ...] = ()
) -> ssl.SSLContext:
    """Return what a client needs to connect, with a certificate for `user` if there is one."""
    context = ssl.create_default_context(cadata=plane.authority.certificate.decode())
    if user:
        pair = Authority(plane.authority).client(user, list(groups), plane.api.clock.now())
        folder = Path(plane.config.data_dir)
        certificate = folder / f"{user}.crt"
        certificate.write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(certificate)
    return context


@asynccontextmanager
async def connected(
    plane: RunningControlPlane, user: str = "tester", groups: tuple[str, ...] = ("system:masters",)
) -> AsyncIterator[Http]:
    """Connect to a plane as a user; the empty one shows no certificate."""
    connector = aiohttp.TCPConnector(ssl=client_tls(plane, user, groups))
    async with aiohttp.ClientSession(connector=connector) as session:
        yield Http(session, plane.url)


class Asgi(Caller):
    """Calls to the application itself; as a member of system:masters, unless `user` is changed."""

    def __init__(
        self, store: Store, clock: Clock, ids: Ids | None = None, *, strict: bool = False
    ) -> None:
        self.user = ADMIN
        self.store = store
        scheme = build_scheme(Compat.KUBERNETES) if strict else SCHEME
        self.api = embedded(store, clock, ids=ids, scheme=scheme, strict=strict)
        self.app = HttpApp(self.api, clock, RequestCounter(Metrics()))

    async def _exchange(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str]
    ) -> Answer:
        request, answer = _Incoming(data or b""), _Outgoing()
        await self.app(self._scope(method, path, headers), request.receive, answer.send)
        assert answer.ended, "no answer came to an end"
        return Answer(answer.code, b"".join(answer.chunks), answer.headers)

    @asynccontextmanager
    async def watch(
        self, path: str, headers: Mapping[str, str] | None = None, **query: str
    ) -> AsyncIterator[_Outgoing]:
        """Open a watch; the block sees what was sent so far, and may go away at any time."""
        request, answer = _Incoming(b""), _Outgoing()
        scope = self._scope("GET", _path(path, {"watch": "true", **query}), headers or {})
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.app(scope, request.receive, answer.send))
            try:
                yield answer
            finally:
                request.gone.set()

    def _scope(self, method: str, path: str, headers: Mapping[str, str]) -> Obj:
        raw, _, query = path.partition("?")
        subject = [(("organizationName", group),) for group in self.user.groups]
        subject.append((("commonName", self.user.name),))
        return {
            "type": "http",
            "method": method,
            "path": raw,
            "raw_path": raw.encode(),
            "query_string": query.encode(),
            "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
            "extensions": {"sully.tls": {"peer": {"subject": subject}}},
        }


class _Incoming:
    def __init__(self, data: bytes) -> None:
        self._messages: list[Obj] = [{"type": "http.request", "body": data}]
        self.gone = asyncio.Event()

    async def receive(self) -> Obj:
        if self._messages:
            return self._messages.pop()
        await self.gone.wait()
        return {"type": "http.disconnect"}


class _Outgoing:
    """What an application has sent."""

    def __init__(self) -> None:
        self.code = 0
        self.headers: list[tuple[str, str]] = []
        self.chunks: list[bytes] = []
        self.ended = False
        self.open = asyncio.Event()
        self.open.set()
        self._arrived = asyncio.Event()

    async def send(self, message: Mapping[str, Any]) -> None:
        await self.open.wait()
        if message["type"] == "http.response.start":
            self.code = message["status"]
            self.headers = [(k.decode(), v.decode()) for k, v in message["headers"]]
        else:
            self.chunks.append(message["body"])
            self.ended = not message.get("more_body")
        self._arrived.set()

    @property
    def events(self) -> list[Obj]:
        return [json.loads(line) for line in b"".join(self.chunks).splitlines()]

    async def until(self, done: Callable[[_Outgoing], bool]) -> list[Obj]:
        """Wait for a state; return the events so far."""
        await self.reached(done)
        return self.events

    async def reached(self, done: Callable[[_Outgoing], bool]) -> None:
        """Wait for a state."""
        async with asyncio.timeout(PATIENCE):
            while not done(self):
                self._arrived.clear()
                await self._arrived.wait()


@asynccontextmanager
async def local(
    store: Store | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    *,
    pods: bool = False,
) -> AsyncIterator[Asgi]:
    """Serve a store without a socket and without controllers; `pods`: ready to take some."""
    async with store or MemoryStore() as opened:
        server = Asgi(opened, clock or FakeClock(), ids)
        await ensure_namespaces(InProcess(server.api, ADMIN))
        if pods:
            # They run as a user; elsewhere a controller makes the account.
            account = {"metadata": {"name": "default"}}
            (await server.post("/api/v1/namespaces/default/serviceaccounts", account)).ok(201)
        yield server

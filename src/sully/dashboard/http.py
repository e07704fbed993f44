"""Requests and responses of the dashboard, with the headers that every response has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import parse_qs

import msgspec

T = TypeVar("T")
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
MAX_BODY = 1 << 20
MAX_PARAMETERS = 100
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
SECURITY_HEADERS = (
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("x-frame-options", "DENY"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
)
NO_STORE = ("cache-control", "no-store")


class HttpError(Exception):
    """A request is refused."""

    def __init__(self, code: int, message: str, *, retry_after: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.headers = (("retry-after", str(retry_after)),) if retry_after else ()


class ClientGoneError(Exception):
    """The client no longer waits for a response."""


class Response(msgspec.Struct, frozen=True):
    """What is answered."""

    code: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = (NO_STORE,)


def json_response(
    value: Any, code: int = 200, headers: tuple[tuple[str, str], ...] = ()
) -> Response:
    """Return a value as JSON, which no cache stores."""
    return Response(code, msgspec.json.encode(value), headers=(NO_STORE, *headers))


@dataclass(slots=True)
class Request:
    """One request of a browser."""

    scope: Scope
    receive: Receive
    path: str
    """Below the prefix of the dashboard."""
    headers: dict[str, str] = field(init=False)
    query: dict[str, list[str]] = field(init=False)

    def __post_init__(self) -> None:
        pairs = ((name.decode("latin-1"), value) for name, value in self.scope["headers"])
        self.headers = {name.lower(): value.decode("latin-1") for name, value in pairs}
        text = self.scope.get("query_string", b"").decode("latin-1")
        try:
            self.query = parse_qs(text, keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
        except ValueError as error:
            raise HttpError(400, f"more than {MAX_PARAMETERS} parameters") from error

    @property
    def method(self) -> str:
        """Return the method; HEAD is answered as GET, without the body."""
        return str(self.scope["method"])

    @property
    def secure(self) -> bool:
        """Report whether the connection uses TLS."""
        return bool(self.scope.get("scheme") == "https")

    @property
    def origin(self) -> str:
        """Return the origin of the page that this server serves, as the browser names it."""
        return f"{self.scope.get('scheme', 'http')}://{self.headers.get('host', '')}"

    @property
    def address(self) -> str:
        """Return where the connection comes from."""
        return str((self.scope.get("client") or ("",))[0])

    def value(self, name: str) -> str:
        """Return a parameter of the query, empty if there is none."""
        return self.query.get(name, [""])[0]

    def cookie(self, name: str) -> str:
        """Return a cookie, empty if there is none."""
        for part in self.headers.get("cookie", "").split(";"):
            key, _, value = part.strip().partition("=")
            if key == name:
                return value
        return ""

    async def unless_closed(self, answer: Coroutine[Any, Any, T]) -> T:
        """Return an answer; cancel it and raise ClientGoneError when the client is gone."""
        answering = asyncio.ensure_future(answer)
        closing = asyncio.ensure_future(closed(self.receive))
        try:
            await asyncio.wait((answering, closing), return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                raise ClientGoneError
            return answering.result()
        finally:
            answering.cancel()
            closing.cancel()
            await asyncio.wait((answering, closing))

    async def json(self) -> Mapping[str, Any]:
        """Return the body, which must be a JSON object."""
        return await self.decoded(dict[str, Any])

    async def decoded(self, type_: type[T], most: int = MAX_BODY) -> T:
        """Return the body, which must be JSON of a type."""
        if self.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise HttpError(415, "the body must be application/json")
        data = b""
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise HttpError(400, "the request is incomplete")
            data += message.get("body", b"")
            if len(data) > most:
                raise HttpError(413, f"the body has more than {most} bytes")
            if not message.get("more_body", False):
                break
        try:
            return msgspec.json.decode(data, type=type_)
        except msgspec.ValidationError as error:
            raise HttpError(400, f"the body is not valid: {error}") from error
        except (msgspec.DecodeError, RecursionError) as error:
            raise HttpError(400, "the body is not JSON") from error


async def closed(receive: Receive) -> None:
    """Wait until the client is gone; the rest of its request is not needed."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def respond(send: Send, response: Response, *, head: bool = False) -> None:
    """Send a response with the headers that all have."""
    headers = [
        ("content-type", response.content_type),
        ("content-length", str(len(response.body))),
        *SECURITY_HEADERS,
        *response.headers,
    ]
    await start(send, response.code, headers)
    await send({"type": "http.response.body", "body": b"" if head else response.body})


async def start(send: Send, code: int, headers: list[tuple[str, str]]) -> None:
    """Send the head of a response."""
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": code, "headers": encoded})

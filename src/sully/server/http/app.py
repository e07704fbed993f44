"""The ASGI application: a request becomes a verb, an answer or an error becomes bytes."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from typing import Any

from sully.machinery.errors import (
    ApiError,
    InternalError,
    method_not_allowed,
)
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger
from sully.server.api import Api
from sully.server.authentication.authenticator import Authenticator
from sully.server.authentication.groups import ANONYMOUS
from sully.server.authorization.attributes import on_path, on_target
from sully.server.flowcontrol.limits import Limits
from sully.server.http import backup, pages
from sully.server.http.access import AccessControl, RequestContext
from sully.server.http.documents import Documents
from sully.server.http.exchange import BODY_SECONDS, Exchange, Receive, Send
from sully.server.http.metrics import RequestCounter
from sully.server.http.objects import ObjectRoutes, verb_of
from sully.server.http.open_watches import OpenWatches
from sully.server.http.placements import PREFIX as PLACEMENTS
from sully.server.http.placements import PlacementPages
from sully.server.requests import parse_path

_log = get_logger("server")
NOT_FOUND = b"404 page not found\n"


class HttpApp:
    """Serves one Api over ASGI."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        metrics: RequestCounter,
        access: AccessControl | None = None,
        *,
        body_seconds: float = BODY_SECONDS,
    ) -> None:
        self._api = api
        self._body_seconds = body_seconds
        self._access = access or AccessControl(
            Authenticator(clock), api.authorizer, Limits(), clock, api.writer.ids
        )
        self.watches = OpenWatches(api.store, self._access, clock)
        self._clock = clock
        self._metrics = metrics
        self._objects = ObjectRoutes(api, clock)
        self._documents = Documents(api.scheme)
        self.checks: dict[str, pages.Check] = {"ping": lambda: ""}
        self.documents: dict[str, pages.StaticPage] = {}
        self.placements: PlacementPages | None = None

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Handle one connection event of ASGI."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        await self._exchange(Exchange(scope, receive, send, body_seconds=self._body_seconds))

    async def _exchange(self, exchange: Exchange) -> None:
        started = self._clock.monotonic()
        context, received = RequestContext(), self._access.received()
        self._metrics.begin(exchange)
        try:
            await self._serve(exchange, context)
        except ApiError as error:
            forget_frames(error)
            context.error = error
            if not exchange.code:
                if context.caller is not None and context.caller is not ANONYMOUS:
                    await exchange.discard_body()
                await exchange.fail(error)
        except (ConnectionResetError, asyncio.CancelledError):
            return
        except Exception as error:  # noqa: BLE001 - a bug becomes a 500 and a log line
            _log.exception("request failed", method=exchange.method, path=exchange.path)
            forget_frames(error)
            if not exchange.code:
                await exchange.fail(InternalError(f"Internal error occurred: {error}"))
        finally:
            elapsed = self._clock.monotonic() - started
            self._metrics.end(exchange, context.verb or exchange.method, context.target, elapsed)
            self._access.finish(exchange, context, received)

    async def _serve(self, exchange: Exchange, context: RequestContext) -> None:
        path = exchange.path
        exchange.check_headers()
        self._access.authenticate(exchange, context)
        exchange.identify(context.user)
        if pages.is_public(path):
            await self._public(exchange)
            return
        if self.placements is not None and path.startswith(PLACEMENTS):
            await self.placements.serve(exchange, context)
            return
        try:
            target = parse_path(self._api.scheme, path)
        except ApiError:
            # Without permission a client does not learn that the path does not exist.
            self._access.authorize(
                exchange, context, on_path(exchange.method, path, exchange.query)
            )
            raise
        if target is not None:
            verb = verb_of(exchange, target)
            context.target, context.verb = target, verb.upper()
            asked = on_target(verb, target, exchange.query)
            user = self._access.authorize(exchange, context, asked)
            await self._access.take_seat(exchange, context, asked)
            with self.watches.following(exchange, asked) if verb == "watch" else nullcontext():
                await self._objects.serve(exchange, user, target)
            return
        asked = on_path(exchange.method, path, exchange.query)
        self._access.authorize(exchange, context, asked)
        await self._access.take_seat(exchange, context, asked)
        page = self._page(path)
        if path == backup.PATH:
            await backup.serve(exchange, self._api.store)
        elif page is None:
            await exchange.answer(404, NOT_FOUND, pages.TEXT)
        elif exchange.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        else:
            await page(exchange)

    async def _public(self, exchange: Exchange) -> None:
        if exchange.path.rstrip("/") == "/version":
            await pages.version(exchange)
        elif exchange.path.startswith("/version/"):
            await exchange.answer(404, NOT_FOUND, pages.TEXT)
        else:
            await pages.health(exchange, self.checks)

    def _page(self, path: str) -> Callable[[Exchange], Awaitable[None]] | None:
        if path == "/metrics":
            return self._metrics.page
        if path in self.documents:
            return self.documents[path].answer
        return self._documents.page(path)


def forget_frames(error: BaseException) -> None:
    """Drop the tracebacks of an error that is kept.

    Their frames hold the request with its headers and its body, and the request holds the error:
    nothing of it would be freed before the next garbage collection.
    """
    chained: BaseException | None = error
    while chained is not None:
        chained.__traceback__ = None
        chained = chained.__context__


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
            return

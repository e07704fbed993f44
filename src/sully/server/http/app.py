"""The ASGI application: dispatches requests, and encodes responses and errors."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from sully.machinery.errors import (
    ApiError,
    InternalError,
    method_not_allowed,
    route_not_found,
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
from sully.server.http.health import NOT_FOUND, TEXT, HealthPages
from sully.server.http.http_request import BODY_SECONDS, HttpRequest, Receive, Send
from sully.server.http.metrics import RequestCounter
from sully.server.http.objects import ObjectRoutes
from sully.server.http.open_watches import OpenWatches
from sully.server.http.placements.pages import PREFIX as PLACEMENTS
from sully.server.http.placements.pages import PlacementPages
from sully.server.http.verbs import verb_of
from sully.server.requests import check_timeout, parse_path

_log = get_logger("server")
AsgiApp = Callable[[Any, Any, Any], Awaitable[None]]


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
        self.api = api
        self._body_seconds = body_seconds
        self._access = access or AccessControl(
            Authenticator(clock), api.authorizer, Limits(), clock, api.writer.ids
        )
        self.watches = OpenWatches(api.store, self._access, clock)
        self._clock = clock
        self._metrics = metrics
        self._objects = ObjectRoutes(api, clock)
        self._documents = Documents(api.scheme)
        self.health = HealthPages()
        self.documents: dict[str, pages.StaticPage] = {}
        self.placements: PlacementPages | None = None
        self.mounts: dict[str, AsgiApp] = {}
        """Other applications, by the prefix of their paths; they authenticate by themselves."""

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Handle one connection event of ASGI."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        for prefix, mounted in self.mounts.items():
            if scope["path"] == prefix or scope["path"].startswith(f"{prefix}/"):
                await mounted(scope, receive, send)
                return
        await self._handle(HttpRequest(scope, receive, send, body_seconds=self._body_seconds))

    async def _handle(self, http_request: HttpRequest) -> None:
        started = self._clock.monotonic()
        context, received = RequestContext(), self._access.received()
        self._metrics.begin(http_request)
        try:
            await self._serve(http_request, context)
        except ApiError as error:
            forget_frames(error)
            context.error = error
            if not http_request.code:
                if context.caller is not None and context.caller is not ANONYMOUS:
                    await http_request.discard_body()
                await http_request.respond_error(error)
        except (ConnectionResetError, asyncio.CancelledError):
            return
        except Exception as error:  # noqa: BLE001 - a bug becomes a 500 and a log line
            _log.exception("request failed", method=http_request.method, path=http_request.path)
            forget_frames(error)
            if not http_request.code:
                await http_request.respond_error(InternalError(f"Internal error occurred: {error}"))
        finally:
            elapsed = self._clock.monotonic() - started
            self._metrics.end(
                http_request, context.verb or http_request.method, context.target, elapsed
            )
            self._access.finish(http_request, context, received)

    async def _serve(self, http_request: HttpRequest, context: RequestContext) -> None:
        path = http_request.path
        http_request.check_headers()
        check_timeout(http_request.query.get("timeout", ""))
        self._access.authenticate(http_request, context)
        http_request.identify(context.user)
        if pages.is_public(path):
            await self._public(http_request)
            return
        if self.placements is not None and path.startswith(PLACEMENTS):
            await self.placements.serve(http_request, context)
            return
        try:
            target = parse_path(self.api.scheme, path)
        except ApiError:
            # Without permission a client does not learn that the path does not exist.
            self._access.authorize(
                http_request, context, on_path(http_request.method, path, http_request.query)
            )
            raise
        if target is not None:
            verb = verb_of(http_request, target)
            context.target, context.verb = target, verb.upper()
            attributes = on_target(verb, target, http_request.query)
            user = self._access.authorize(http_request, context, attributes)
            await self._access.take_seat(http_request, context, attributes)
            if verb != "watch":
                await self._objects.serve(http_request, user, target)
                return
            with (
                self.watches.track(http_request, attributes),
                self._metrics.open_watch(http_request, target),
            ):
                await self._objects.serve(http_request, user, target)
            return
        attributes = on_path(http_request.method, path, http_request.query)
        self._access.authorize(http_request, context, attributes)
        await self._access.take_seat(http_request, context, attributes)
        page = self._page(path)
        if path == backup.PATH:
            await backup.serve(http_request, self.api.store)
        elif page is None:
            await http_request.respond(404, NOT_FOUND, TEXT)
        elif http_request.method not in ("GET", "HEAD") and not _takes_any_method(path):
            raise method_not_allowed()
        else:
            await page(http_request)

    async def _public(self, http_request: HttpRequest) -> None:
        if http_request.path.rstrip("/") == "/version":
            if http_request.method not in ("GET", "HEAD"):
                raise method_not_allowed()
            await pages.version(http_request, self._clock.now())
        elif http_request.path.startswith("/version/"):
            raise route_not_found()
        else:
            await self.health.serve(http_request)

    def _page(self, path: str) -> Callable[[HttpRequest], Awaitable[None]] | None:
        if path == "/metrics":
            return self._metrics.page
        if path == "/metrics/slis":
            return self.health.slis
        if path in self.documents:
            return self.documents[path].respond
        return self._documents.page(path)


def _takes_any_method(path: str) -> bool:
    """Report whether a page looks at no method: the list of groups, a group, and OpenAPI."""
    first, *rest = path.strip("/").split("/")
    return first == "openapi" or (first == "apis" and len(rest) < 2)


def forget_frames(error: BaseException) -> None:
    """Drop the tracebacks of an error that is stored.

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

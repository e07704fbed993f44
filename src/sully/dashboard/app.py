"""The ASGI application of the dashboard: which request is answered by whom, and which is refused.

Everything below /dashboard/api/ needs a session, except the start of one. A request that changes
something must come from the page itself: its origin is checked, and its body is JSON, which no
form can send. Data of the routes is passed by the caller that constructs the dashboard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack
from functools import cached_property, partial
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from sully import __version__
from sully.client.kubeconfig.credentials import AccessError
from sully.client.transport import UnreachableError
from sully.dashboard.compression import compressed
from sully.dashboard.http import (
    ClientGoneError,
    HttpError,
    Receive,
    Request,
    Response,
    Scope,
    Send,
    json_response,
    respond,
)
from sully.dashboard.logins import MAX_BODY as MAX_LOGIN
from sully.dashboard.logins import MAX_TOKEN, Failures, Login
from sully.dashboard.sessions import Session, SessionLimits, Sessions, TooManySessionsError
from sully.dashboard.static_files import StaticFiles
from sully.dashboard.stream import serve_stream
from sully.dashboard.work import Work
from sully.machinery.errors import ApiError, Unauthorized
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger

if TYPE_CHECKING:
    from sully.client.kubeconfig.access import Access
    from sully.dashboard.viewers import Viewer, Viewers

T = TypeVar("T")
_log = get_logger("dashboard")
PREFIX = "/dashboard"
PAGE_KEY = "x-sully-page-key"
"""The header of every request of a page that has a session."""
JANITOR_SECONDS = 10.0
MAX_LOGINS = 8
"""Tokens that are checked at the same time."""
RETRY_SECONDS = 60
_CLIENT = ("sully.dashboard.viewers", "aiohttp")
"""What the client imports with its first request; it takes longer to load than the page."""
Answer = Callable[["Viewer", Mapping[str, list[str]]], Awaitable[Any]]
Change = Callable[["Viewer", Mapping[str, Any], "Dashboard"], Awaitable[Any]]


class RouteError(Exception):
    """A request cannot be answered, for a reason that the viewer should read."""


class Routes:
    """What the page can ask and change, by path below /dashboard/api/."""

    def __init__(
        self,
        answers: Mapping[str, Answer],
        changes: Mapping[str, Change],
        live: Collection[str] = (),
    ) -> None:
        """`live` are those that need everything to be listed once."""
        self.answers = answers
        self.changes = changes
        self.live = live


class Dashboard:
    """A running dashboard, for the duration of `async with`."""

    def __init__(
        self,
        access: Callable[[], Access],
        routes: Callable[[], Routes],
        clock: Clock,
        *,
        hosts: Collection[str] = (),
        limits: SessionLimits | None = None,
    ) -> None:
        """`hosts` are the values of the Host header that are accepted; none: all.

        Routes, files, the server to use and its client are loaded by the first request that needs
        them: most starts of `sully up` need none of it.
        """
        self._access = access
        self._load_routes = routes
        self._clock = clock
        self._hosts = frozenset(hosts)
        self._logins = asyncio.Semaphore(MAX_LOGINS)
        self._stack = AsyncExitStack()
        self.sessions: Sessions[Viewer] = Sessions(
            clock, limits, user_of=lambda viewer: viewer.owner
        )
        self._failures = Failures(clock)
        self.stopping = asyncio.Event()
        self.work = Work()
        self._loaded = False

    async def __aenter__(self) -> Dashboard:
        """Start what runs in the background."""
        tasks = await self._stack.enter_async_context(asyncio.TaskGroup())
        self._janitor = tasks.create_task(self._end_sessions())
        self._tasks = tasks
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop all streams, drains and watches."""
        self.stopping.set()
        self._janitor.cancel()
        if "viewers" in vars(self):
            await self.viewers.close()
        self.work.close()
        await self._stack.__aexit__(kind, error, traceback)

    @cached_property
    def viewers(self) -> Viewers:
        """The clients of those who have signed in."""
        from sully.dashboard.viewers import Viewers

        return Viewers(self._access(), self._clock, self._tasks, self.work, self.sessions)

    @cached_property
    def _routes(self) -> Routes:
        return self._load_routes()

    @cached_property
    def _static(self) -> StaticFiles:
        return StaticFiles()

    def link(self, url: str) -> str:
        """Return a link that opens one session; its code is not sent to servers by browsers."""
        return f"{url}{PREFIX}/#code={self.sessions.new_code()}"

    async def _end_sessions(self) -> None:
        while True:
            await self._clock.sleep(JANITOR_SECONDS)
            if "viewers" in vars(self):
                await self.viewers.keep(self.sessions.viewers())

    # -- requests ---------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        head = scope["method"] == "HEAD"
        try:
            request = Request(scope, receive, str(scope["path"]).removeprefix(PREFIX))
            if request.path == "/api/stream" and request.method == "GET":
                _, session = self._authenticated(request)
                await serve_stream(self, session, request, send)
                return
            response = await compressed(request, await self._answer(request), self.work)
        except ClientGoneError:
            return
        except HttpError as error:
            response = json_response({"error": str(error)}, error.code, error.headers)
        except RouteError as error:
            response = json_response({"error": str(error)}, 422)
        except ApiError as error:
            response = json_response({"error": error.message}, error.code)
        except (UnreachableError, AccessError) as error:
            response = json_response({"error": str(error)}, 503)
        except Exception:  # noqa: BLE001 - a bug becomes a 500 and a log line
            _log.exception("request failed", method=scope["method"], path=scope["path"])
            response = json_response({"error": "internal error"}, 500)
        await respond(send, response, head=head)

    async def _answer(self, request: Request) -> Response:
        self._check_host(request)
        if request.path == "":
            return Response(308, b"", "text/plain", (("location", f"{PREFIX}/"),))
        if not request.path.startswith("/api/"):
            return self._file(request)
        name = request.path.removeprefix("/api/")
        if request.method == "POST":
            return await self._change(request, name)
        if request.method not in ("GET", "HEAD"):
            raise HttpError(405, "method not allowed")
        viewer, session = self._authenticated(request)
        if name == "session":
            # Rights may have changed since the page was opened.
            await self._as(viewer, viewer.refresh)
            return json_response(self._session_document(viewer, session))
        if name not in self._routes.answers:
            raise HttpError(404, "not found")
        answer = partial(self._routes.answers[name], viewer, request.query)
        return json_response(await request.unless_closed(self._as(viewer, answer, name)))

    def _file(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            raise HttpError(405, "method not allowed")
        response = self._static.serve(request)
        if response is None:
            raise HttpError(404, "not found")
        if not self._loaded:
            self._loaded = True
            # A user who loads the page logs in next. Meanwhile the browser loads the rest of it.
            for module in _CLIENT:
                self._tasks.create_task(self.work.run(import_module, module))
        return response

    async def _change(self, request: Request, name: str) -> Response:
        if request.headers.get("origin") != request.origin:
            raise HttpError(403, "the request does not come from this page")
        self._check_site(request)
        if name == "login":
            return await self._login(request)
        viewer, session = self._authenticated(request)
        if name == "logout":
            self.sessions.close(session)
            return json_response({}, headers=(self._cookie(request, "", 0),))
        if name not in self._routes.changes:
            raise HttpError(404, "not found")
        body = await request.json()
        # A change that has begun is not interrupted by a page that is closed.
        change = partial(self._routes.changes[name], viewer, body, self)
        return json_response(await self._as(viewer, change, name))

    async def _as(self, viewer: Viewer, work: Callable[[], Awaitable[T]], name: str = "") -> T:
        """Answer in turn; a viewer whose credential the server rejects has no session any more."""
        ready = viewer.live.wait_ready if name and name in self._routes.live else None
        try:
            async with self.work.seat(viewer.owner, ready):
                return await work()
        except Unauthorized:
            self.sessions.close_all(viewer)
            raise

    # -- access -----------------------------------------------------------------------------------

    def _check_host(self, request: Request) -> None:
        if self._hosts and request.headers.get("host") not in self._hosts:
            raise HttpError(421, "unknown host")

    def _check_site(self, request: Request) -> None:
        if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise HttpError(403, "the request does not come from this page")

    def _authenticated(self, request: Request) -> tuple[Viewer, Session[Viewer]]:
        self._check_host(request)
        self._check_site(request)
        secret = request.cookie(_cookie_name(request))
        is_page = self.sessions.is_page_key(secret, request.headers.get(PAGE_KEY, ""))
        session = self.sessions.find(secret) if is_page else None
        if session is None:
            raise HttpError(401, "no session")
        return session.viewer, session

    async def _login(self, request: Request) -> Response:
        try:
            viewer = await self._viewer_of(request, await request.decoded(Login, MAX_LOGIN))
            secret = self.sessions.open(viewer)
        except TooManySessionsError as error:
            raise HttpError(429, str(error), retry_after=RETRY_SECONDS) from error
        seconds = int(self.sessions.limits.longest.total_seconds())
        key = self.sessions.page_key(secret)
        return json_response({"key": key}, headers=(self._cookie(request, secret, seconds),))

    async def _viewer_of(self, request: Request, login: Login) -> Viewer:
        token = login.token.strip()
        if login.code and self.sessions.redeem(login.code):
            return await self.viewers.owner()
        if not login.code and not token:
            raise HttpError(400, "a code or a token is required")
        self._failures.check(request.address)
        if login.code:
            self._failures.add(request.address)
            raise HttpError(401, "the link was used already, or has expired")
        if len(token) > MAX_TOKEN or not token.isprintable() or not token.isascii():
            self._failures.add(request.address)
            raise HttpError(401, "the token is not valid")
        async with self._logins:
            # Others from there may have failed meanwhile.
            self._failures.check(request.address)
            try:
                return await self.viewers.with_token(token)
            except Unauthorized as error:
                self._failures.add(request.address)
                raise HttpError(401, "the server does not accept the token") from error

    def _cookie(self, request: Request, value: str, seconds: int) -> tuple[str, str]:
        secure = "; Secure" if request.secure else ""
        name = _cookie_name(request)
        return (
            "set-cookie",
            f"{name}={value}; Path={PREFIX}/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}",
        )

    def _session_document(self, viewer: Viewer, session: Session[Viewer]) -> dict[str, Any]:
        return {
            "user": viewer.user,
            "groups": viewer.groups,
            "server": viewer.access.server,
            "version": __version__,
            "rights": viewer.rights,
            "ends": self.sessions.end_of(session),
        }


def _cookie_name(request: Request) -> str:
    """Return the name of the cookie; without TLS with the port, which cookies do not depend on."""
    if request.secure:
        return "__Secure-sully-dashboard"
    server = request.scope.get("server") or ("", 0)
    return f"sully-dashboard-{server[1]}"

"""Serves metrics and health of a program without an API.

The API server has its own; this is for programs such as `sully controllers`. On a loopback address
they are public, over plain HTTP. On any other address metrics need TLS and a bearer token,
because they name what runs in a cluster; health does not, for the probes of kubelets have none.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from aiohttp import web

PageHandler = Callable[[], tuple[int, bytes]]
"""Returns the status code and the text of a page."""
TEXT = "text/plain; version=0.0.4; charset=utf-8"
"""The text format of Prometheus."""
_REFUSALS = {401: b"Unauthorized", 403: b"Forbidden", 503: b"cannot check the token"}


class Protection(msgspec.Struct, frozen=True):
    """What protects pages that are not public."""

    tls: ssl.SSLContext
    check: Callable[[str, str], Awaitable[int]]
    """Takes the Authorization header and the path; returns 200 or the code of a rejection."""
    paths: frozenset[str] = frozenset(("/metrics",))


def is_local(host: str) -> bool:
    """Report whether only programs on the same machine reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@asynccontextmanager
async def serving(
    host: str, port: int, pages: Mapping[str, PageHandler], protection: Protection | None = None
) -> AsyncIterator[int]:
    """Serve pages as long as the block lasts; yields the port."""
    from aiohttp import web

    app = web.Application()
    for path, page in pages.items():
        guarded = protection is not None and path in protection.paths
        app.router.add_get(path, _handler(page, protection if guarded else None))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        tls = protection.tls if protection is not None else None
        await web.TCPSite(runner, host, port, ssl_context=tls).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _handler(
    page: PageHandler, protection: Protection | None
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        from aiohttp import web

        code = 200
        if protection is not None:
            authorization = request.headers.get("Authorization", "")
            code = await protection.check(authorization, request.path)
        code, body = page() if code == 200 else (code, _REFUSALS[code])
        return web.Response(status=code, body=body, headers={"Content-Type": TEXT})

    return handle

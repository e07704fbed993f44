"""A few pages for machines, over plain HTTP: metrics and health of a program without an API.

The API server has its own; this is for programs such as `sully controllers`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web

Page = Callable[[], tuple[int, bytes]]
"""Returns the status code and the text of a page."""
TEXT = "text/plain; version=0.0.4; charset=utf-8"
"""What Prometheus reads; anyone else takes it for plain text."""


@asynccontextmanager
async def serving(host: str, port: int, pages: Mapping[str, Page]) -> AsyncIterator[int]:
    """Serve pages as long as the block lasts; yields the port."""
    from aiohttp import web

    app = web.Application()
    for path, page in pages.items():
        app.router.add_get(path, _handler(page))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _handler(page: Page) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(_: web.Request) -> web.Response:
        from aiohttp import web

        code, body = page()
        return web.Response(status=code, body=body, headers={"Content-Type": TEXT})

    return handle

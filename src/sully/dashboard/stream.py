"""The stream of changes for one page, as server-sent events; the page reconnects by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from sully.dashboard.compression import GZIP, StreamCompressor, takes_gzip
from sully.dashboard.events import encode
from sully.dashboard.http import (
    NO_STORE,
    SECURITY_HEADERS,
    HttpError,
    Request,
    Send,
    closed,
    start,
)
from sully.dashboard.sessions import Session

if TYPE_CHECKING:
    from sully.dashboard.app import Dashboard
    from sully.dashboard.viewers import Viewer

MAX_STREAMS = 20
"""Pages of one viewer: each is sent the whole fleet when it is opened."""
RETRY_SECONDS = 60
BEAT_SECONDS = 5.0
"""How often the page hears that the connection works, and whether the session has ended is seen."""


async def serve_stream(
    dashboard: Dashboard, session: Session[Viewer], request: Request, send: Send
) -> None:
    """Send events until the page is closed or the session ends."""
    viewer = session.viewer
    if viewer.streams >= MAX_STREAMS:
        raise HttpError(429, "too many pages are open; close some", retry_after=RETRY_SECONDS)
    viewer.streams += 1
    try:
        await _serve(dashboard, session, request, send)
    finally:
        viewer.streams -= 1


async def _serve(
    dashboard: Dashboard, session: Session[Viewer], request: Request, send: Send
) -> None:
    compressor = StreamCompressor(dashboard.work) if takes_gzip(request) else None
    encoding = GZIP if compressor is not None else ()
    headers = [("content-type", "text/event-stream"), NO_STORE, *SECURITY_HEADERS, *encoding]
    await start(send, 200, headers)

    async def write(data: bytes) -> None:
        body = await compressor.compress(data) if compressor is not None else data
        await send({"type": "http.response.body", "body": body, "more_body": True})

    async with asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(_send(dashboard, session, write))
        closing = tasks.create_task(closed(request.receive))
        stopping = tasks.create_task(dashboard.stopping.wait())
        await asyncio.wait((sending, closing, stopping), return_when=asyncio.FIRST_COMPLETED)
        for task in (sending, closing, stopping):
            task.cancel()
    if not closing.done() or closing.cancelled():
        end = compressor.end() if compressor is not None else b""
        await send({"type": "http.response.body", "body": end})


async def _send(
    dashboard: Dashboard, session: Session[Viewer], write: Callable[[bytes], Awaitable[None]]
) -> None:
    live = session.viewer.live
    await write(encode("beat", {}))
    while not await live.is_ready_within(BEAT_SECONDS):
        await write(encode("loading", {"error": live.error}))
    subscription = live.subscribe()
    try:
        while dashboard.sessions.is_open(session):
            # An open page is in use.
            session.used = session.viewer.clock.now()
            event = await subscription.next(BEAT_SECONDS)
            await write(event if event is not None else encode("beat", {}))
            if subscription.lagging:
                return
        await write(encode("ended", {}))
    finally:
        live.unsubscribe(subscription)

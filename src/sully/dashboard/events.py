"""Events for the open pages: each page has a queue of what it has not been sent yet."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

MAX_QUEUED = 256
"""Events that a page may lag behind; then it has to begin again."""


class Subscription:
    """The events for one page."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(MAX_QUEUED)
        self.lagging = False

    def put(self, event: bytes) -> None:
        """Add an event, unless the page lags behind too far."""
        if self._queue.full():
            self.lagging = True
        else:
            self._queue.put_nowait(event)

    async def next(self, seconds: float) -> bytes | None:
        """Return the next event, or None after some seconds without one."""
        try:
            async with asyncio.timeout(seconds):
                return await self._queue.get()
        except TimeoutError:
            return None


def encode(event: str, value: Any) -> bytes:
    """Return a server-sent event."""
    return b"event: %s\ndata: %s\n\n" % (event.encode(), msgspec.json.encode(value))

"""Compresses answers and streams for browsers that accept it; what is large, in a thread.

A fleet of 10 000 devices is about a megabyte of JSON, and a tenth of that compressed.
"""

from __future__ import annotations

import gzip
import zlib
from typing import Final

from msgspec.structs import replace

from sully.dashboard.http import Request, Response
from sully.dashboard.work import Work

GZIP: Final = (("content-encoding", "gzip"), ("vary", "accept-encoding"))
WORTH_COMPRESSING: Final = 8 << 10
"""Shorter answers are sent as they are."""
_IN_THREAD: Final = 64 << 10
"""What is longer would delay others on the event loop by more than a millisecond."""
_LEVEL: Final = 1
"""The fastest: a higher one saves little of such data."""


def takes_gzip(request: Request) -> bool:
    """Report whether a browser accepts compressed answers."""
    for part in request.headers.get("accept-encoding", "").split(","):
        name, _, weight = part.replace(" ", "").lower().partition(";q=")
        if name == "gzip":
            return weight.strip("0.") != "" if weight else True
    return False


async def compressed(request: Request, response: Response, work: Work) -> Response:
    """Return a response as small as the browser accepts it."""
    body = response.body
    if len(body) < WORTH_COMPRESSING or not takes_gzip(request):
        return response
    smaller = await work.run(gzip.compress, body, _LEVEL, mtime=0)
    return replace(response, body=smaller, headers=(*response.headers, *GZIP))


class StreamCompressor:
    """Compresses a stream; each event can be read as soon as it arrives."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._zlib = zlib.compressobj(_LEVEL, wbits=31)

    async def compress(self, data: bytes) -> bytes:
        """Return what to send for an event."""
        if len(data) > _IN_THREAD:
            return await self._work.run(self._compress, data)
        return self._compress(data)

    def _compress(self, data: bytes) -> bytes:
        return self._zlib.compress(data) + self._zlib.flush(zlib.Z_SYNC_FLUSH)

    def end(self) -> bytes:
        """Return what ends the stream."""
        return self._zlib.flush()

"""Watches over HTTP: streams of events, in whatever pieces they come."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import web

from client.foreign import A, connected
from client.scripted import THINGS, Thing, thing
from sully.client.transport import (
    Kind,
    UnreachableError,
    UnreadableError,
    WatchEvent,
)
from sully.machinery.errors import (
    Expired,
)
from sully.testing.patience import PATIENCE


class TestWatch:
    """Streams of events, in whatever pieces they come."""

    LINES = (
        {"type": "ADDED", "object": A},
        {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}},
        {"type": "DELETED", "object": A},
    )
    WANT: tuple[WatchEvent[Any], ...] = (
        WatchEvent("ADDED", thing("a", 7, uid="u"), "7"),
        WatchEvent("BOOKMARK", None, "9"),
        WatchEvent("DELETED", thing("a", 7, uid="u"), "7"),
    )

    async def follow(self, chunks: list[bytes], kind: Kind[Any] = THINGS) -> list[WatchEvent[Any]]:
        async def answer(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            for chunk in chunks:
                if chunk == b"TEAR":
                    assert request.transport is not None
                    request.transport.abort()
                    break
                await response.write(chunk)
            return response

        async with connected(answer) as http, aclosing(http.watch(kind)) as events:
            return [event async for event in events]

    @pytest.mark.parametrize("size", [1, 7, 100, 10_000])
    @pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"])
    async def test_pieces(self, size: int, end: bytes) -> None:
        stream = b"\n".join(json.dumps(line).encode() for line in self.LINES) + end
        chunks = [stream[at : at + size] for at in range(0, len(stream), size)]

        assert await self.follow(chunks) == list(self.WANT)

    async def test_type_that_requires_more_than_a_bookmark_has(self) -> None:
        class Strict(Thing, frozen=True, kw_only=True):
            size: int

        lines = [{"type": "ADDED", "object": A | {"size": 3}}, self.LINES[1]]
        chunks = [json.dumps(line).encode() + b"\n" for line in lines]
        first, second = await self.follow(chunks, THINGS.read_as(Strict))

        assert first.object == Strict(metadata=thing("a", 7, uid="u").metadata, size=3)
        assert second == WatchEvent("BOOKMARK", None, "9")

    async def test_error_event_is_raised(self) -> None:
        gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
        with pytest.raises(Expired, match="too old"):
            await self.follow([json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n"])

    async def test_torn_stream(self) -> None:
        with pytest.raises(UnreachableError):
            await self.follow([json.dumps(self.LINES[0]).encode() + b"\n", b"TEAR"])

    @pytest.mark.parametrize(
        "line", [b"nonsense\n", b'{"type": "NEW", "object": {}}\n', b'{"type": "ADDED"}\n']
    )
    async def test_nonsense(self, line: bytes) -> None:
        with pytest.raises(UnreadableError):
            await self.follow([line])

    async def test_closing_a_watch_closes_its_connection(self) -> None:
        left = asyncio.Event()

        async def answer(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(json.dumps(self.LINES[0]).encode() + b"\n")
            try:
                await asyncio.Event().wait()
            finally:
                left.set()
            return response

        async with connected(answer) as http:
            events = http.watch(THINGS)
            assert await anext(events) == self.WANT[0]
            await events.aclose()
            await asyncio.wait_for(left.wait(), PATIENCE)

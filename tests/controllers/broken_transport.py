"""A way to the server that can be cut: what happens to caches then is what tests are about."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeVar

from controllers.world import World
from sully.client.direct import DirectTransport
from sully.client.options import DEFAULT_LIST, DEFAULT_WATCH, ListOptions, WatchOptions
from sully.client.transport import Kind, Page, UnreachableError, WatchEvent
from sully.server.inprocess import InProcess
from sully.server.requests import User

T = TypeVar("T")


class BreakableTransport(DirectTransport):
    """The way on which caches are kept up to date; only this one fails.

    `cut` ends watches and refuses lists. `hush` is a dead connection that reports no error: what
    is open stays open and brings nothing more.
    """

    def __init__(self, world: World) -> None:
        super().__init__(InProcess(world.api, User("informers", ("system:masters",))))
        self.away = False
        self._stalled: asyncio.Event = asyncio.Event()
        self._broken: asyncio.Event = asyncio.Event()
        self.lists = 0

    def cut(self) -> None:
        self.away = True
        self._broken.set()

    def mend(self) -> None:
        self.away = False
        self._broken = asyncio.Event()

    def hush(self) -> None:
        """Silence what is open; what is opened later is not concerned."""
        self._stalled.set()
        self._stalled = asyncio.Event()

    async def list(
        self, kind: Kind[T], namespace: str = "", options: ListOptions = DEFAULT_LIST
    ) -> Page[T]:
        self.lists += 1
        if self.away:
            raise UnreachableError("the line is cut")
        return await super().list(kind, namespace, options)

    async def watch(
        self, kind: Kind[T], namespace: str = "", options: WatchOptions = DEFAULT_WATCH
    ) -> AsyncGenerator[WatchEvent[T], None]:
        broken, stalled = self._broken, self._stalled
        if broken.is_set():
            raise UnreachableError("the line is cut")
        async with aclosing(super().watch(kind, namespace, options)) as events:
            coming = asyncio.ensure_future(anext(events))
            endings = [asyncio.ensure_future(item.wait()) for item in (broken, stalled)]
            if options.opened is not None:
                options.opened()
            try:
                while True:
                    await asyncio.wait([coming, *endings], return_when=asyncio.FIRST_COMPLETED)
                    if broken.is_set():
                        raise UnreachableError("the line was cut")
                    if stalled.is_set():
                        await asyncio.Event().wait()
                    yield coming.result()
                    coming = asyncio.ensure_future(anext(events))
            finally:
                for task in (coming, *endings):
                    task.cancel()
                await asyncio.gather(coming, *endings, return_exceptions=True)

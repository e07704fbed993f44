"""An API server whose history is written while it is followed, and which misbehaves on demand.

scripted.py has servers that answer from a list; this one has a state, pages its lists, forgets
history, and breaks, ends or stalls its watches at any moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from client.scripted import (
    PartialTransport,
    Thing,
    added,
    after,
    bookmark,
    deleted,
    modified,
    thing,
)
from sully.client.options import DEFAULT_LIST, DEFAULT_WATCH, ListOptions, WatchOptions
from sully.client.transport import Kind, Page, UnreachableError, WatchEvent, WatchStalledError
from sully.machinery.errors import Expired, TooManyRequests

PAGE = 2


class Chronicle(PartialTransport):
    """A server with one collection."""

    def __init__(self) -> None:
        self.history: list[WatchEvent[Thing]] = []
        self.compacted = 0
        self.state: dict[str, Thing] = {}
        self._lives: dict[str, int] = {}
        self._moved = asyncio.Event()
        self._endings: list[Exception | None] = []
        self._round = 0
        self._marks = 0
        self.busy = 0
        """So many requests are refused."""
        self.lists = 0

    @property
    def version(self) -> int:
        return len(self.history)

    def write(self, name: str) -> None:
        """Let an object be born, change, or go, in turns; each life has a uid of its own."""
        turn = self._lives.get(name, 0)
        self._lives[name] = turn + 1
        obj = thing(name, self.version + 1, color=str(turn), uid=f"{name}-{turn // 3}")
        self.history.append((added, modified, deleted)[turn % 3](obj))
        if turn % 3 == 2:
            del self.state[name]
        else:
            self.state[name] = obj
        self._wake()

    def forget(self) -> None:
        """Compact all history."""
        self.compacted = self.version

    def mark(self, times: int = 1) -> None:
        """Have every open watch send bookmarks."""
        self._marks += times
        self._wake()

    def end(self, error: Exception | None) -> None:
        """End every open watch: well, or with an error."""
        self._round += 1
        self._endings.append(error)
        self._wake()

    def _wake(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    async def list(
        self, kind: Kind[Any], namespace: str = "", options: ListOptions = DEFAULT_LIST
    ) -> Page[Any]:
        self.lists += 1
        await asyncio.sleep(0)
        self._refuse()
        version, start = self.version, 0
        if options.continue_token:
            version, start = (int(part) for part in options.continue_token.split(":"))
            if version < self.compacted:
                raise Expired("the continue token is too old")
        items = list(after(self.history[:version]).values())
        until = start + PAGE if options.limit else len(items)
        more = f"{version}:{until}" if until < len(items) else ""
        return Page(items[start:until], str(version), more)

    async def watch(
        self, kind: Kind[Any], namespace: str = "", options: WatchOptions = DEFAULT_WATCH
    ) -> AsyncGenerator[WatchEvent[Any], None]:
        await asyncio.sleep(0)
        self._refuse()
        place = int(options.resource_version)
        if place < self.compacted:
            raise Expired("too old resource version")
        if options.opened is not None:
            options.opened()
        opened, marked = self._round, self._marks
        while True:
            while place < self.version:
                # An ending may cut in between two events, or come first.
                if self._round != opened:
                    break
                yield self.history[place]
                place += 1
            if self._round != opened:
                ending = self._endings[opened]
                if ending is not None:
                    raise ending
                return
            if marked < self._marks:
                marked += 1
                yield bookmark(place)
                continue
            await self._moved.wait()

    def _refuse(self) -> None:
        if self.busy:
            self.busy -= 1
            raise TooManyRequests("later", headers={"Retry-After": "3"})


ENDINGS: dict[str, Exception | None] = {
    "end": None,
    "drop": UnreachableError("connection reset"),
    "stall": WatchStalledError("the watch stalled"),
    "gone": Expired("too old resource version"),
}

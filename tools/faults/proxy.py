"""A TCP proxy between a server and a member of etcd, whose network can fail."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class Proxy:
    """Forwards connections of one port to another."""

    def __init__(self, target: int) -> None:
        self.port = 0
        self._target = target
        self._server: asyncio.Server | None = None
        self._delay = 0.0
        self._cut = False
        self._open = asyncio.Event()
        self._open.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close everything."""
        self.cut()
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def cut(self) -> None:
        """Reset all connections, and refuse new ones."""
        self._cut = True
        for writer in self._writers:
            writer.transport.abort()

    def hold(self) -> None:
        """Forward nothing, without an error."""
        self._open.clear()

    def slow(self, seconds: float) -> None:
        """Forward everything later."""
        self._delay = seconds

    def heal(self) -> None:
        """Forward as before; what was held back arrives now."""
        self._cut, self._delay = False, 0.0
        self._open.set()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._connected(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._cut:
            writer.transport.abort()
            return
        ends = {writer}
        self._writers.add(writer)
        try:
            back, forth = await asyncio.open_connection("127.0.0.1", self._target)
            ends.add(forth)
            self._writers.add(forth)
            await asyncio.gather(self._forward(reader, forth), self._forward(back, writer))
        except (OSError, asyncio.CancelledError):
            for end in ends:
                end.transport.abort()
        finally:
            self._writers -= ends

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                await self._open.wait()
                if self._delay:
                    await asyncio.sleep(self._delay)
                writer.write(data)
                await writer.drain()
        writer.close()

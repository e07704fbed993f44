"""A wire between a client and a server that a test can cut, in either direction."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Wire:
    """Forwards connections; `stalled` swallows answers, `cut` ends all and refuses new ones."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._writers: set[asyncio.StreamWriter] = set()
        self.open: set[asyncio.Task[None]] = set()
        self.port = 0
        self.stalled = False
        self.swallowed = asyncio.Event()
        self._cut = False

    def cut(self) -> None:
        self._cut = True
        for writer in list(self._writers):
            writer.transport.abort()

    def mend(self) -> None:
        self._cut = self.stalled = False

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self.open.add(task)
        task.add_done_callback(self.open.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = {writer}
        self._writers.add(writer)
        try:
            # It may be cut, also while we connect; and the server may be gone.
            if self._cut:
                return
            back, forth = await asyncio.open_connection("127.0.0.1", self._target)
            ends.add(forth)
            if self._cut or writer.transport.is_closing():
                return
            self._writers.add(forth)
            await asyncio.gather(self._pump(reader, forth), self._pump(back, writer, answer=True))
        finally:
            self._writers -= ends
            for end in ends:
                end.transport.abort()

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, answer: bool = False
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(1 << 16):
                if answer and self.stalled:
                    self.swallowed.set()
                    continue
                sink.write(data)
                await sink.drain()
        sink.transport.abort()


@asynccontextmanager
async def wire_to(port: int) -> AsyncIterator[Wire]:
    wire = Wire(port)
    server = await asyncio.start_server(wire.accept, "127.0.0.1", 0)
    wire.port = server.sockets[0].getsockname()[1]
    try:
        yield wire
    finally:
        wire.cut()
        server.close()
        await server.wait_closed()
        if wire.open:
            await asyncio.wait(list(wire.open))
        # What is aborted is closed in the next iteration of the loop.
        await asyncio.sleep(0)

"""The network between processes: messages are delayed, reordered and lost, and watches break.

A client gets a `Transport`. A request reaches the server after a delay and runs there as a task of
the server; its answer takes another delay. Any of them can be lost, then the client knows nothing:
the request may have been executed. A watch is a stream: its events stay in order, and it breaks or
falls silent.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from simulator.loop import Process, SimulatedLoop
from simulator.server import Server
from simulator.storage import ACTOR, Actor
from sully.client.calls import READS, Call, WriteGuard
from sully.client.direct import DirectTransport, _event
from sully.client.transport import (
    Kind,
    UnreachableError,
    WatchEvent,
    WatchStalledError,
)
from sully.server.inprocess import InProcess, Reply, _Made
from sully.server.requests import User

T = TypeVar("T")
Batch = Sequence[tuple[str, Reply]]

REQUEST_SECONDS = 60.0
STALL_SECONDS = 90.0
COMMIT = "commit"
"""The verb of a request with several writes."""


class Tap(Protocol):
    """Sees what a server sends."""

    def watch_opened(self, stream: Stream) -> None: ...
    def watch_sent(self, stream: Stream, batch: Batch) -> None: ...
    def write_started(self, process: Process, user: str, call: Call) -> None: ...
    def read_started(self) -> int: ...
    def answered(self, started: int, user: str, call: Call, reply: Reply) -> None: ...


@dataclass(slots=True)
class Conditions:
    """How bad the network is."""

    delays: tuple[float, ...] = (0.0005, 0.005, 0.05)
    lost: float = 0.0
    """The probability that a message is lost."""


class Network:
    """Connects clients with the server that is currently up."""

    def __init__(self, loop: SimulatedLoop, rng: random.Random, tap: Tap) -> None:
        self.loop = loop
        self.rng = rng
        self.tap = tap
        self.server: Server | None = None
        self.conditions = Conditions()
        self.cut: set[str] = set()
        """The processes that the server cannot be reached from."""
        self._waiting: dict[asyncio.Future[Any], Process] = {}
        self._streams: dict[Stream, None] = {}

    def delay(self) -> float:
        """Return how long a message takes."""
        return self.rng.choice(self.conditions.delays) * (0.5 + self.rng.random())

    def loses(self, process: Process) -> bool:
        """Report whether a message is lost."""
        return process.machine in self.cut or self.rng.random() < self.conditions.lost

    def server_died(self) -> None:
        """Reset all connections."""
        self.server = None
        for future in self._waiting:
            self._fail(future)
        for stream in list(self._streams):
            self.break_stream(stream)

    def client_died(self, process: Process) -> None:
        """Close the watches of a client."""
        for stream in [known for known in self._streams if known.process is process]:
            self.close_stream(stream)

    def break_streams(self, machine: str, share: float) -> None:
        """Break some watches of a machine."""
        for stream in list(self._streams):
            if stream.process.machine == machine and self.rng.random() < share:
                self.break_stream(stream)

    def silence(self, machine: str, share: float) -> None:
        """Let some watches of a machine deliver nothing more, without an error."""
        for stream in list(self._streams):
            if stream.process.machine == machine and self.rng.random() < share:
                stream.silent = True

    def break_stream(self, stream: Stream) -> None:
        """Reset the connection of a watch."""
        self._streams.pop(stream, None)
        stream.close()
        self.loop.later(self.delay(), stream.fail, UnreachableError("connection reset"))

    def close_stream(self, stream: Stream) -> None:
        """Close a watch whose client has ended it."""
        self._streams.pop(stream, None)
        self.loop.later(self.delay(), stream.close)

    # -- requests ---------------------------------------------------------------------------------

    async def call(
        self, process: Process, user: User, agent: str, call: Call, seconds: float
    ) -> Reply:
        """Send a request and wait for its answer."""
        future: asyncio.Future[Reply] = self.loop.create_future()
        self._waiting[future] = process
        try:
            if not self.loses(process):
                self.loop.later(self.delay(), self._arrived, future, process, user, agent, call)
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError as error:
            raise UnreachableError("timed out") from error
        finally:
            self._waiting.pop(future, None)

    def _arrived(
        self, future: asyncio.Future[Reply], process: Process, user: User, agent: str, call: Call
    ) -> None:
        server = self.server
        if server is None:
            self._fail(future)
            return
        server.process.spawn(self._serve(server, future, process, user, agent, call))

    async def _serve(
        self,
        server: Server,
        future: asyncio.Future[Reply],
        process: Process,
        user: User,
        agent: str,
        call: Call,
    ) -> None:
        ACTOR.set(Actor(process, user.name, call.verb, self.loop.time()))
        started = self.tap.read_started()
        access = InProcess(server.api, user, agent=agent)
        try:
            calls = (call,)
            if call.verb == COMMIT:
                calls = call.body
                await access.commit(calls)
                reply: Reply | Exception = _Made({})
            else:
                reply = await access.call(
                    call.verb,
                    call.ref,
                    body=call.body,
                    options=call.options,
                    patch_type=call.patch_type,
                )
            if isinstance(reply, Reply):
                for served in calls:
                    self.tap.answered(started, user.name, served, reply)
        except Exception as error:  # noqa: BLE001 - the client gets it
            reply = error
        if not self.loses(process):
            self.loop.later(self.delay(), _answer, future, reply)

    def _fail(self, future: asyncio.Future[Any]) -> None:
        self.loop.later(self.delay(), _answer, future, UnreachableError("connection refused"))

    # -- watches ----------------------------------------------------------------------------------

    async def watch(
        self, process: Process, user: User, agent: str, call: Call
    ) -> AsyncGenerator[Batch | None, None]:
        """Yield None when the watch is accepted, then the batches of events."""
        stream = Stream(self, process, call)
        await asyncio.sleep(self.delay())
        server = self.server
        if server is None or self.loses(process):
            await asyncio.sleep(self.delay() * 10)
            raise UnreachableError("connection refused")
        self._streams[stream] = None
        stream.serve(server, InProcess(server.api, user, agent=agent))
        try:
            async for batch in stream:
                yield batch
        finally:
            self.close_stream(stream)


class Stream:
    """The response of one watch."""

    def __init__(self, network: Network, process: Process, call: Call) -> None:
        self.process = process
        self.call = call
        self.silent = False
        self.seen = -1
        """For the tap: how many events of the log it has got."""
        self._network = network
        self._sent: deque[Batch | Exception | None] = deque()
        self._items: deque[Batch | Exception | None] = deque()
        self._ready = asyncio.Event()
        self._last = 0.0
        self._task: asyncio.Task[Any] | None = None
        self._server: Server | None = None

    def serve(self, server: Server, access: InProcess) -> None:
        """Run the watch on the server."""
        self._server = server
        self._task = server.process.spawn(self._run(access))

    async def _run(self, access: InProcess) -> None:
        batches = access.watch(self.call.ref, options=self.call.options)
        try:
            async with aclosing(batches) as events:  # type: ignore[type-var]  # a generator, which a type variable cannot be
                self._deliver(None)
                self._network.tap.watch_opened(self)
                async for batch in events:
                    self._network.tap.watch_sent(self, batch)
                    self._deliver(batch)
        except Exception as error:  # noqa: BLE001 - the client gets it
            self._deliver(error)
            return
        self._deliver(StopAsyncIteration())

    def _deliver(self, item: Batch | Exception | None) -> None:
        loop = self._network.loop
        if self.process.machine in self._network.cut:
            self.silent = True
        # In order, whatever delay each one has.
        self._last = max(self._last, loop.time() + self._network.delay())
        self._sent.append(item)
        loop.later(self._last - loop.time(), self._arrived)

    def _arrived(self) -> None:
        item = self._sent.popleft()
        if not self.silent:
            self._items.append(item)
            self._ready.set()

    def fail(self, error: Exception) -> None:
        """End the watch with an error."""
        self._items.append(error)
        self._ready.set()

    def close(self) -> None:
        """Let the server end the watch."""
        if self._task is not None and self._server is not None:
            self._server.process.call(self._task.cancel)

    async def __aiter__(self) -> AsyncIterator[Batch | None]:
        """Yield what arrives."""
        while True:
            while not self._items:
                self._ready.clear()
                try:
                    async with asyncio.timeout(STALL_SECONDS):
                        await self._ready.wait()
                except TimeoutError as error:
                    raise WatchStalledError("the watch stalled") from error
            item = self._items.popleft()
            if isinstance(item, StopAsyncIteration):
                return
            if isinstance(item, Exception):
                raise item
            yield item


def _answer(future: asyncio.Future[Reply], reply: Reply | Exception) -> None:
    if future.done():
        return
    if isinstance(reply, Exception):
        future.set_exception(reply)
    else:
        future.set_result(reply)


class SimulatedTransport(DirectTransport):
    """A `Transport` over the simulated network."""

    def __init__(
        self,
        network: Network,
        process: Process,
        user: User,
        *,
        agent: str = "",
        guard: WriteGuard | None = None,
        request_seconds: float = REQUEST_SECONDS,
    ) -> None:
        self._network = network
        self._process = process
        self._user = user
        self._agent = agent or user.name
        self._write_guard = guard
        self._seconds = request_seconds

    async def close(self) -> None:
        """Nothing to close."""

    async def _call(self, call: Call) -> Reply:
        seconds = self._seconds
        if call.verb not in READS and self._write_guard is not None:
            seconds = min(seconds, self._write_guard())
            self._network.tap.write_started(self._process, self._user.name, call)
        return await self._network.call(self._process, self._user, self._agent, call, seconds)

    async def commit(self, calls: Sequence[Call]) -> None:
        seconds = self._seconds
        if self._write_guard is not None:
            seconds = min(seconds, self._write_guard())
            for call in calls:
                self._network.tap.write_started(self._process, self._user.name, call)
        # One message: `sully up` has these calls within its process.
        together = Call(COMMIT, calls[0].ref, body=calls)
        await self._network.call(self._process, self._user, self._agent, together, seconds)

    async def _events(self, kind: Kind[T], call: Call) -> AsyncGenerator[WatchEvent[T], None]:
        batches = self._network.watch(self._process, self._user, self._agent, call)
        async with aclosing(batches):
            async for batch in batches:
                if batch is None:
                    if call.opened is not None:
                        call.opened()
                    continue
                for type_, reply in batch:
                    yield _event(kind, type_, reply)


def query_selects(options: Mapping[str, str]) -> bool:
    """Report whether a request has a selector."""
    return bool(options.get("labelSelector") or options.get("fieldSelector"))

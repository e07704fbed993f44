"""A way to the server that records what a controller asked, and fails on demand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from controllers.world import World
from sully.client.calls import Call
from sully.client.direct import DirectTransport, Reply
from sully.machinery.errors import ApiError, InternalError
from sully.server.inprocess import InProcess
from sully.server.requests import User


def broken(
    times: int = 1, *, error: type[ApiError] = InternalError, text: str = "it failed"
) -> list[Exception]:
    """Return what so many calls in a row end with."""
    return [error(text) for _ in range(times)]


class RecordingTransport(DirectTransport):
    """A transport of one controller. Calls go by names such as `patch pods/status`."""

    def __init__(self, world: World, name: str, agent: str = "") -> None:
        user = User(name, ("system:masters",))
        super().__init__(InProcess(world.api, user, agent=agent or name))
        self.calls: list[str] = []
        """What was asked for, in order; events only count."""
        self.events = 0
        self.before: dict[str, Callable[[], Awaitable[Any]]] = {}
        """Runs once, before a call."""
        self.refusals: dict[str, ApiError] = {}
        """What calls end with, until a test takes it away."""
        self.failures: dict[str, list[Exception]] = {}
        """What the next calls end with."""
        self.losses: dict[str, list[Exception]] = {}
        """As failures, but what was asked happens nevertheless."""

    def name_of(self, call: Call) -> str:
        """Return what a call goes by."""
        part = f"/{call.ref.subresource}" if call.ref.subresource else ""
        return f"{call.verb} {call.ref.plural}{part}"

    async def _call(self, call: Call) -> Reply:
        what = self.name_of(call)
        await self._note(what, call)
        reply = await super()._call(call)
        if self.losses.get(what):
            raise self.losses[what].pop()
        return reply

    async def commit(self, calls: Sequence[Call]) -> None:
        """Commit calls, which go by the name of the last one."""
        what = f"commit {calls[-1].ref.plural}"
        await self._note(what, *calls)
        await super().commit(calls)
        if self.losses.get(what):
            raise self.losses[what].pop()

    async def _note(self, what: str, *calls: Call) -> None:
        if calls[0].ref.plural == "events":
            self.events += len(calls)
        else:
            self.calls.append(what)
        if what in self.before:
            await self.before.pop(what)()
        if what in self.refusals:
            raise self.refusals[what]
        if self.failures.get(what):
            raise self.failures[what].pop()

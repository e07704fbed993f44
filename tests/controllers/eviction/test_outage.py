"""Caches that are behind: no pod leaves on what the server may have taken back meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import pytest

from controllers.eviction.evicting import (
    RECORDS,
    Evicting,
    Noted,
    fate,
    for_seconds,
    holder,
    prepare,
    publish,
    rule,
    unrule,
)
from controllers.world import CALM, World
from sully.client.direct import DirectTransport
from sully.client.options import ALL, FOLLOW, ListOptions, WatchOptions
from sully.client.transport import Kind, Page, UnreachableError, WatchEvent
from sully.controllers.manager import Manager
from sully.server.inprocess import InProcess
from sully.server.requests import User

T = TypeVar("T")
BOUND = 90.0


class Line(DirectTransport):
    """The way on which caches are kept up to date; only this one fails.

    `cut` ends watches and refuses lists. `hush` is a line that is dead and does not say so: what
    is open stays open and brings nothing more.
    """

    def __init__(self, world: World) -> None:
        super().__init__(InProcess(world.api, User("informers", ("system:masters",))))
        self.away = False
        self._silent: asyncio.Event = asyncio.Event()
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
        self._silent.set()
        self._silent = asyncio.Event()

    async def list(self, kind: Kind[T], namespace: str = "", options: ListOptions = ALL) -> Page[T]:
        self.lists += 1
        if self.away:
            raise UnreachableError("the line is cut")
        return await super().list(kind, namespace, options)

    async def watch(
        self, kind: Kind[T], namespace: str = "", options: WatchOptions = FOLLOW
    ) -> AsyncGenerator[WatchEvent[T], None]:
        broken, silent = self._broken, self._silent
        if broken.is_set():
            raise UnreachableError("the line is cut")
        async with aclosing(super().watch(kind, namespace, options)) as events:
            coming = asyncio.ensure_future(anext(events))
            endings = [asyncio.ensure_future(each.wait()) for each in (broken, silent)]
            try:
                while True:
                    await asyncio.wait([coming, *endings], return_when=asyncio.FIRST_COMPLETED)
                    if broken.is_set():
                        raise UnreachableError("the line was cut")
                    if silent.is_set():
                        await asyncio.Event().wait()
                    yield coming.result()
                    coming = asyncio.ensure_future(anext(events))
            finally:
                for task in (coming, *endings):
                    task.cancel()
                await asyncio.gather(coming, *endings, return_exceptions=True)


@asynccontextmanager
async def evicting(world: World, made: Evicting) -> AsyncIterator[Line]:
    """Run the controller with caches that a test can leave behind."""
    line = Line(world)
    manager = Manager(line, clock=world.clock)
    manager.add(made.make()(world, manager), backoff=CALM)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(manager.run())
        await world.settle()
        yield line
        manager.stop()


@dataclass(frozen=True)
class Case:
    how: str
    """What happens to the line: cut, hush or nothing."""
    lifted: bool
    """Whether the rule is deleted meanwhile."""
    tolerated: int
    """When the pod is due."""
    want: str
    """What became of the pod while the line was not mended."""
    after: str
    """And afterwards."""
    strict: bool = False


CASES = {
    "an outage, and the rule goes": Case("cut", True, 20, "stays", "stays"),
    "an outage, and nothing else": Case("cut", False, 20, "stays", "leaves"),
    "a dead line past the bound": Case("hush", True, 100, "stays", "stays"),
    "a dead line past the bound, and the rule stays": Case("hush", False, 100, "leaves", "leaves"),
    "a dead line within the bound": Case("hush", True, 60, "leaves", "leaves"),
    "silence because nothing happens": Case("", False, 1000, "leaves", "leaves"),
    "the reference does not ask": Case("cut", True, 20, "leaves", "leaves", strict=True),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_what_is_not_confirmed_evicts_nobody(world: World, case: Case) -> None:
    made = Evicting(strict=case.strict)
    await prepare(world)
    await publish(world)
    await holder(world, "p", tolerations=(for_seconds(case.tolerated),))
    async with evicting(world, made) as line:
        await rule(world)
        await world.settle()
        if case.how:
            getattr(line, case.how)()
        if case.lifted:
            await unrule(world)
        await world.pass_time(case.tolerated + 1)
        during = await fate(world, "p")
        line.mend()
        await world.pass_time(70)

        assert (during, await fate(world, "p")) == (case.want, case.after)


async def test_a_mark_that_took_long_does_not_delete_on_what_was_true_before(world: World) -> None:
    transport = Noted(world)
    made = Evicting(transport=transport)
    await prepare(world)
    await publish(world)
    await holder(world, "p", tolerations=(for_seconds(20),))
    async with evicting(world, made) as line:
        await rule(world)
        await world.settle()

        async def hang() -> None:
            line.cut()
            await unrule(world)
            await world.settle()
            line.mend()

        transport.before["patch pods"] = hang
        await world.pass_time(100)

        assert made.calls("pods") == ["get", "patch"]
        assert await fate(world, "p") == "stays"
        assert (await world.admin.list(RECORDS)).items == []

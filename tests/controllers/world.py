"""An API server in this process, controllers on it, and a clock that stands still."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from itertools import permutations
from typing import Any, Protocol

import pytest

from embedded import SCHEME, embedded
from sully.client.direct import DirectTransport
from sully.client.objects import key_of
from sully.client.transport import Kind
from sully.controllers.framework.controller import Controller
from sully.controllers.framework.manager import Manager
from sully.machinery.gates import Gates
from sully.machinery.scheme import Scheme
from sully.runtime.backoff import Backoff
from sully.server.inprocess import InProcess
from sully.server.requests import User
from sully.store.memory import MemoryStore
from sully.testing.clock import FakeClock

Obj = dict[str, Any]
Make = Callable[["World", Manager], Controller]


class Step(Protocol):
    """Something that happens to a world."""

    __name__: str

    def __call__(self, world: World) -> Coroutine[Any, Any, None]:
        """Let it happen."""
        ...


NAMESPACES: Kind[Obj] = Kind("", "v1", "namespaces", "Namespace", dict, namespaced=False)
ACCOUNTS: Kind[Obj] = Kind("", "v1", "serviceaccounts", "ServiceAccount", dict)
CONFIG_MAPS: Kind[Obj] = Kind("", "v1", "configmaps", "ConfigMap", dict)
PODS: Kind[Obj] = Kind("", "v1", "pods", "Pod", dict)
CALM = Backoff(base=0.05, cap=5.0, jitter=0.0)
QUIET_TURNS = 40
"""After so many turns of the loop without a write nothing is under way; no path is that long."""


@asynccontextmanager
async def running(manager: Manager) -> AsyncIterator[None]:
    """Run all that a manager has as long as the block lasts."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(manager.run())
        try:
            yield
        finally:
            manager.stop()


class World:
    """A server with nothing on it but what the test and the controllers put there."""

    owner_uid = ""  # of an owner that steps of a test delete

    def __init__(self, gates: Gates | None = None) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore()
        self.serve(gates=gates)

    def serve(
        self, *, gates: Gates | None = None, scheme: Scheme = SCHEME, strict: bool = False
    ) -> None:
        """Start the server, or another one on what is stored."""
        self.api = embedded(self.store, self.clock, gates=gates, scheme=scheme, strict=strict)
        self.admin = self.transport("admin")

    def transport(self, name: str) -> DirectTransport:
        return DirectTransport(InProcess(self.api, User(name, ("system:masters",)), agent=name))

    @asynccontextmanager
    async def controlled(self, *makers: Make) -> AsyncIterator[Manager]:
        """Run controllers as long as the block lasts."""
        manager = Manager(self.transport("informers"), clock=self.clock)
        for make in makers:
            manager.add(make(self, manager), backoff=CALM)
        async with running(manager):
            yield manager

    async def settle(self) -> None:
        """Let everyone work until nothing moves, without any time passing."""
        turns, seen = 0, self.store.revision
        while turns < QUIET_TURNS:
            await asyncio.sleep(0)
            moved = self.store.revision != seen
            turns, seen = (0 if moved else turns + 1), self.store.revision

    async def pass_time(self, seconds: float, step: float = 5.0) -> None:
        """Let time pass in steps, with everyone working in between."""
        await self.settle()
        while seconds > 0:
            self.clock.advance(min(step, seconds))
            seconds -= step
            await self.settle()

    async def namespace(self, name: str, **spec: Any) -> Obj:
        return await self.admin.create(NAMESPACES, {"metadata": {"name": name}, "spec": spec})

    async def create(self, kind: Kind[Obj], namespace: str, name: str, **more: Any) -> Obj:
        metadata = {"namespace": namespace, "name": name} | more.pop("metadata", {})
        return await self.admin.create(kind, {"metadata": metadata, **more})

    async def names(self, kind: Kind[Any], namespace: str = "") -> list[str]:
        """Return namespace/name of all objects of a kind."""
        page = await self.admin.list(kind, namespace)
        return [str(key_of(item)) for item in page.items]

    async def content(self, namespace: str) -> dict[str, Any]:
        """Return all that the store has in a namespace, by its place."""
        result: dict[str, Any] = {}
        for resource in SCHEME.resources():
            if resource.namespaced:
                page = await self.store.list(resource.storage_key, namespace)
                result |= {f"{resource.storage_key}/{r.key.name}": r.revision for r in page.records}
        return result


def orders(*steps: Step) -> list[Any]:
    """Return all orders of steps, as parameters of a test."""
    return [
        pytest.param(order, id=" ".join(step.__name__ for step in order))
        for order in permutations(steps)
    ]


async def play(
    world: World, steps: tuple[Step, ...], make: Make, *, start: int, pauses: bool
) -> None:
    """Take steps, the controller starting before the one with the number `start`."""
    for step in steps[:start]:
        await step(world)
    async with world.controlled(make):
        if pauses:
            await world.settle()
        for step in steps[start:]:
            await step(world)
            if pauses:
                await world.settle()
        await world.pass_time(20)

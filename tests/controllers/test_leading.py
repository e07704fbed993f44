"""Controllers that run only while their process leads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from client.candidates import Contest, Host
from controllers.world import CONFIG_MAPS, World
from sully.client.direct import DirectTransport
from sully.client.informers.informer import Informer, own_key
from sully.client.leases import NotLeadingError
from sully.client.options import PatchType
from sully.client.transport import Key, Transport, UnreachableError
from sully.controllers.framework.controller import DONE, Result, Watch
from sully.controllers.framework.leaderelection import LeaderElectedManager, RestartPolicy
from sully.controllers.framework.manager import STOP_SECONDS, Manager
from sully.server.inprocess import InProcess
from sully.server.requests import User


class Signing:
    """Writes the name of its process on every config map; waits in between on demand."""

    name = "signing"

    def __init__(self, maps: Informer[Any], transport: Transport, who: str) -> None:
        self.maps = maps
        self.transport = transport
        self.who = who
        self.go = asyncio.Event()
        self.go.set()
        self.done: list[str] = []

    def watches(self) -> Iterable[Watch[Any]]:
        yield Watch(self.maps, own_key)

    async def reconcile(self, key: Key) -> Result:
        await self.go.wait()
        result = self.maps.get(key)
        if result is not None and (result.get("data") or {}).get(self.who) is None:
            patch = {"data": {self.who: "was here"}}
            await self.transport.patch(CONFIG_MAPS, key, patch, PatchType.MERGE)
            self.done.append(key.name)
        return DONE


class Crew:
    """The controllers of one host, as often as it leads."""

    def __init__(self, world: World, host: Host) -> None:
        self.world = world
        self.host = host
        self.terms: list[Signing] = []
        self.failures = 0
        self.leading = LeaderElectedManager(self.build, clock=host.clock, elector=host.elector)

    async def build(self) -> Manager:
        if self.failures:
            self.failures -= 1
            raise UnreachableError("not yet")
        user = User(self.host.name, ("system:masters",))
        access = DirectTransport(
            InProcess(self.world.api, user, agent=self.host.name), guard=self.host.elector.time_left
        )
        manager = Manager(access, clock=self.host.clock)
        signing = Signing(manager.informer(CONFIG_MAPS), access, self.host.name)
        manager.add(signing)
        self.terms.append(signing)
        return manager


@asynccontextmanager
async def crews(world: World, *names: str) -> AsyncIterator[list[Crew]]:
    """Run crews; the first one leads."""
    async with Contest(world, *names) as contest, asyncio.TaskGroup() as tasks:
        made = [Crew(world, host) for host in contest.hosts]
        for crew in made:
            tasks.create_task(crew.leading.run())
            await world.settle()
        yield made
        for crew in made:
            crew.host.running.set()
            crew.host.wire.cut = False
            for term in crew.terms:
                term.go.set()
            crew.leading.stop()
        await world.pass_time(STOP_SECONDS)


async def add_map(world: World, name: str) -> None:
    await world.create(CONFIG_MAPS, "kube-system", name)


async def signed(world: World) -> dict[str, list[str]]:
    page = await world.admin.list(CONFIG_MAPS)
    return {item["metadata"]["name"]: sorted(item.get("data") or {}) for item in page.items}


async def test_only_the_leader_works(world: World) -> None:
    async with crews(world, "a", "b") as (a, b):
        await add_map(world, "one")
        await world.settle()
        result = await signed(world)

    assert result == {"one": ["a"]}
    assert (len(a.terms), b.terms) == (1, [])


async def test_a_stop_ends_the_work_first_and_then_hands_over(world: World) -> None:
    async with crews(world, "a", "b") as (a, b):
        a.terms[0].go.clear()
        await add_map(world, "one")
        await world.settle()
        a.leading.stop()
        await world.settle()
        waiting = list(b.terms)
        a.terms[0].go.set()
        await world.settle()
        result = await signed(world)

    assert waiting == []
    assert a.terms[0].done == ["one"]
    assert result == {"one": ["a", "b"]}


async def test_work_that_does_not_end_is_cut_off(world: World) -> None:
    async with crews(world, "a", "b") as (a, _):
        a.terms[0].go.clear()
        await add_map(world, "one")
        await world.settle()
        a.leading.stop()
        await world.pass_time(STOP_SECONDS, step=0.5)
        result = await signed(world)

    assert result == {"one": ["b"]}


async def test_whoever_loses_the_lease_stops_and_restarts(world: World) -> None:
    async with crews(world, "a", "b") as (a, b):
        a.host.wire.cut = True
        await world.pass_time(10, step=0.25)
        since = a.leading.since
        await add_map(world, "one")
        await world.pass_time(8, step=0.25)
        a.host.wire.cut = False
        b.leading.stop()
        await world.pass_time(STOP_SECONDS, step=0.25)
        result = await signed(world)

    assert since is None
    assert len(a.terms) == 2
    assert a.terms[0].done == []
    assert result == {"one": ["a", "b"]}


async def test_whoever_wakes_too_late_does_not_write(world: World) -> None:
    async with crews(world, "a", "b") as (a, _):
        a.terms[0].go.clear()
        await add_map(world, "one")
        await world.settle()
        a.host.running.clear()
        await world.pass_time(20, step=0.25)
        # Its controller comes first, before it could learn that it lost.
        a.terms[0].go.set()
        await world.settle()
        result = await signed(world)

    assert result == {"one": ["b"]}


async def test_a_server_that_is_not_ready_is_waited_for(world: World) -> None:
    async with Contest(world, "a") as contest, asyncio.TaskGroup() as tasks:
        crew = Crew(world, contest.hosts[0])
        crew.failures = 2
        tasks.create_task(crew.leading.run())
        await world.pass_time(5, step=0.25)
        begun = crew.leading.since
        crew.leading.stop()
        await world.settle()

    assert begun is not None
    assert len(crew.terms) == 1


async def test_without_a_lease_there_is_one_term(world: World) -> None:
    async with Contest(world) as _, asyncio.TaskGroup() as tasks:
        manager = Manager(world.admin, clock=world.clock)

        async def build() -> Manager:
            return manager

        leading = LeaderElectedManager(build, clock=world.clock, elector=None)
        tasks.create_task(leading.run())
        await leading.settled()
        leading.stop()


class FailingError(Exception):
    """A defect."""


@asynccontextmanager
async def failing(
    world: World, restarts: RestartPolicy | None, *config_maps: str
) -> AsyncIterator[list[Signing]]:
    """Run controllers that fail while there is a config map `poison`; yield their terms."""
    terms: list[Signing] = []

    async def build() -> Manager:
        manager = Manager(world.admin, clock=world.clock)
        maps = manager.informer(CONFIG_MAPS)
        terms.append(Signing(maps, world.admin, "a"))
        manager.add(terms[-1])
        maps.on_change(fail)
        return manager

    def fail(_: object, new: dict[str, Any] | None) -> None:
        if new is not None and new["metadata"]["name"] == "poison":
            raise FailingError

    leading = LeaderElectedManager(build, clock=world.clock, elector=None, restarts=restarts)
    async with Contest(world) as _, asyncio.TaskGroup() as tasks:
        for name in config_maps:
            await add_map(world, name)
        tasks.create_task(leading.run())
        await leading.settled()
        yield terms
        leading.stop()


async def test_controllers_that_fail_are_restarted_until_they_do_not(world: World) -> None:
    async with failing(world, RestartPolicy((OSError,))) as terms:
        await add_map(world, "poison")
        await world.pass_time(20, step=0.5)
        restarts = len(terms) - 1
        await world.admin.delete(CONFIG_MAPS, Key("kube-system", "poison"))
        await world.pass_time(20, step=0.5)
        await add_map(world, "healthy")
        await world.settle()
        result = await signed(world)

    # After 1, 2, 4 and 8 seconds.
    assert restarts == 4
    assert result == {"healthy": ["a"]}


async def test_a_server_is_ready_although_its_controllers_fail(world: World) -> None:
    async with failing(world, RestartPolicy((OSError,)), "poison") as terms:
        assert len(terms) == 1


FATAL: dict[str, RestartPolicy | None] = {
    "no policy": None,
    "an error of a kind that ends the process": RestartPolicy((OSError, FailingError)),
}


@pytest.mark.parametrize("restarts", FATAL.values(), ids=FATAL.keys())
async def test_controllers_that_fail_for_good(world: World, restarts: RestartPolicy | None) -> None:
    with pytest.RaisesGroup(FailingError, flatten_subgroups=True):
        async with failing(world, restarts):
            await add_map(world, "poison")
            await world.pass_time(1, step=0.5)


async def test_a_write_without_the_lease_is_refused(world: World) -> None:
    async with Contest(world, "a") as contest:
        guarded = DirectTransport(
            InProcess(world.api, User("a", ("system:masters",))),
            guard=contest.hosts[0].elector.time_left,
        )
        await guarded.list(CONFIG_MAPS)
        with pytest.raises(NotLeadingError):
            await guarded.create(CONFIG_MAPS, {"metadata": {"namespace": "x", "name": "y"}})

"""The manager: shared caches, the order of starting and stopping, numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

from controllers.world import ACCOUNTS, CONFIG_MAPS, NAMESPACES, World
from sully.client.direct import DirectTransport
from sully.client.informers.informer import Informer, own_key
from sully.client.informers.reflector import ObjectSelector
from sully.client.options import DEFAULT_LIST, ListOptions
from sully.client.transport import Key, Kind, Page
from sully.controllers.framework.controller import DONE, Result, Watch
from sully.controllers.framework.manager import STOP_SECONDS, Manager
from sully.runtime.metrics import Metrics
from sully.server.inprocess import InProcess
from sully.server.requests import User
from sully.testing.patience import PATIENCE

T = TypeVar("T")


class Counting:
    """Counts what it sees of one kind whenever another changes."""

    name = "counting"

    def __init__(self, woken_by: Informer[Any], counted: Informer[Any]) -> None:
        self.woken_by = woken_by
        self.counted = counted
        self.seen: list[tuple[str, int]] = []

    def watches(self) -> Iterable[Watch[Any]]:
        yield Watch(self.woken_by, own_key)

    async def reconcile(self, key: Key) -> Result:
        self.seen.append((str(key), len(self.counted)))
        return DONE


class Stuck(Counting):
    """Begins, and never ends."""

    cancelled = False

    async def reconcile(self, key: Key) -> Result:
        self.seen.append((str(key), 0))
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return DONE


def counting(manager: Manager) -> Counting:
    result = Counting(manager.informer(NAMESPACES), manager.informer(CONFIG_MAPS))
    manager.add(result)
    return result


def test_those_who_read_the_same_share_a_cache(world: World) -> None:
    manager = Manager(world.admin, clock=world.clock)
    default = ObjectSelector(field_selector="metadata.name=default")

    assert manager.informer(NAMESPACES) is manager.informer(NAMESPACES)
    assert manager.informer(ACCOUNTS, default) is manager.informer(ACCOUNTS, default)
    assert manager.informer(ACCOUNTS, default) is not manager.informer(ACCOUNTS)
    assert manager.informer(ACCOUNTS) is not manager.informer(CONFIG_MAPS)
    typed = NAMESPACES.read_as(dict[str, Any])
    assert manager.informer(NAMESPACES) is not manager.informer(typed)


class SlowTransport(DirectTransport):
    """Lists config maps only on demand."""

    def __init__(self, world: World) -> None:
        super().__init__(InProcess(world.api, User("slow", ("system:masters",))))
        self.gate = asyncio.Event()

    async def list(
        self, kind: Kind[T], namespace: str = "", options: ListOptions = DEFAULT_LIST
    ) -> Page[T]:
        if kind.plural == "configmaps":
            await self.gate.wait()
        return await super().list(kind, namespace, options)


async def test_workers_wait_for_all_caches(world: World) -> None:
    for name in ("a", "b"):
        await world.namespace(name)
        await world.create(CONFIG_MAPS, name, "m")
    transport = SlowTransport(world)
    manager = Manager(transport, clock=world.clock)
    controller = counting(manager)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(manager.run())
        await world.settle()
        assert len(controller.woken_by) == 2
        assert controller.seen == []
        transport.gate.set()
        await manager.settled()
        manager.stop()

    assert sorted(controller.seen) == [("a", 2), ("b", 2)]


async def test_stops_before_it_has_started(world: World) -> None:
    manager = Manager(world.admin, clock=world.clock)
    counting(manager)
    manager.stop()

    await asyncio.wait_for(manager.run(), timeout=PATIENCE)


async def test_nothing_is_added_to_a_running_manager(world: World) -> None:
    manager = Manager(world.admin, clock=world.clock)
    controller = counting(manager)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(manager.run())
        await manager.settled()
        with pytest.raises(RuntimeError, match="that is running"):
            manager.informer(ACCOUNTS)
        with pytest.raises(RuntimeError, match="that is running"):
            manager.add(controller)
        assert manager.informer(NAMESPACES) is controller.woken_by
        manager.stop()


async def test_what_does_not_end_by_itself_is_cancelled(world: World) -> None:
    await world.namespace("a")
    manager = Manager(world.admin, clock=world.clock)
    stuck = Stuck(manager.informer(NAMESPACES), manager.informer(NAMESPACES))
    manager.add(stuck)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(manager.run())
        await world.settle()
        manager.stop()
        await world.settle()
        assert stuck.seen == [("a", 0)]
        assert not running.done()
        assert not stuck.cancelled
        world.clock.advance(STOP_SECONDS)

    assert stuck.cancelled


async def test_nothing_is_left_on_the_server(world: World) -> None:
    await world.namespace("a")
    manager = Manager(world.admin, clock=world.clock)
    controller = counting(manager)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(manager.run())
        await manager.settled()
        manager.stop()
    before = list(controller.seen)
    await world.namespace("b")
    await world.settle()

    assert controller.seen == before
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_queues_are_counted(world: World) -> None:
    await world.namespace("a")
    metrics = Metrics()
    manager = Manager(world.admin, clock=world.clock, metrics=metrics)
    counting(manager)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(manager.run())
        await manager.settled()
        manager.stop()

    assert b'workqueue_adds_total{name="counting"} 1.0' in metrics.render()
    assert b'workqueue_work_duration_seconds_count{name="counting"} 1.0' in metrics.render()

"""Runs controllers together: one informer per collection, shared; workers once all have synced.

`app.py` asks for the informers, hands them to the controllers it makes, and adds those. On the way
out workers end first, then the informers they read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

from sully.client.informers.informer import Informer
from sully.client.informers.metrics import InformerMetrics
from sully.client.informers.outages import Troubles
from sully.client.informers.reflector import Selection
from sully.client.transport import Kind, Transport
from sully.controllers.framework import Controller, Runner
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock
from sully.runtime.metrics import Metrics
from sully.runtime.tasks import wait_first

T = TypeVar("T")

EVERYTHING = Selection()
STOP_SECONDS = 5.0
"""How long a reconcile that is under way may take to end; then it is cancelled."""


class Manager:
    """Starts, stops and watches over controllers; runs once."""

    def __init__(
        self, transport: Transport, *, clock: Clock, metrics: Metrics | None = None
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._metrics = metrics
        self._counting = InformerMetrics(metrics) if metrics else None
        self._troubles = Troubles(clock)
        self._informers: dict[tuple[Kind[Any], Selection], Informer[Any]] = {}
        self._runners: list[Runner] = []
        self._alongside: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._running = False
        self._stopping = asyncio.Event()

    def informer(self, kind: Kind[T], selection: Selection = EVERYTHING) -> Informer[T]:
        """Return the cache of a collection; who asks for the same one shares it."""
        found = self._informers.get((kind, selection))
        if found is None:
            self._check_not_running()
            found = self._informers[kind, selection] = self._new(kind, selection)
        return cast("Informer[T]", found)

    def _new(self, kind: Kind[T], selection: Selection) -> Informer[T]:
        made = Informer(self._transport, kind, clock=self._clock, selection=selection)
        counting = self._counting
        made.report_to(self._troubles, counting.follow(made, selection) if counting else None)
        return made

    def add(
        self, controller: Controller, *, workers: int = 2, backoff: Backoff | None = None
    ) -> None:
        """Run a controller with the others."""
        self._check_not_running()
        observer = self._metrics.queue(controller.name) if self._metrics else None
        runner = Runner(
            controller,
            clock=self._clock,
            workers=workers,
            backoff=backoff,
            observer=observer,
            troubles=self._troubles,
        )
        self._runners.append(runner)

    def alongside(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run something that controllers need, such as a recorder of events, until they ended."""
        self._check_not_running()
        self._alongside.append(run)

    async def run(self) -> None:
        """Run everything until `stop`."""
        self._check_not_running()
        self._running = True
        async with asyncio.TaskGroup() as tasks:
            following = [tasks.create_task(each.run()) for each in self._informers.values()]
            following += [tasks.create_task(run()) for run in self._alongside]
            try:
                await wait_first(self._synced(), self._stopping.wait())
                await self._work()
            finally:
                for task in following:
                    task.cancel()

    def stop(self) -> None:
        """Ask `run` to end; it returns when nothing is under way any more."""
        self._stopping.set()

    async def settled(self) -> None:
        """Wait until all objects there were at the start have been dealt with once."""
        await self._synced()
        for runner in self._runners:
            await runner.queue.drained()

    def problems(self) -> dict[str, str]:
        """Return which collections cannot be followed now, and why."""
        return {
            each.kind.plural: str(each.contact.problem)
            for each in self._informers.values()
            if each.contact.problem is not None
        }

    @property
    def delayed(self) -> int:
        """Return how many keys wait for a time to come."""
        return sum(runner.queue.delayed for runner in self._runners)

    async def _synced(self) -> None:
        for informer in self._informers.values():
            await informer.wait_synced()

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            working = [tasks.create_task(runner.run()) for runner in self._runners]
            await self._stopping.wait()
            for runner in self._runners:
                runner.stop()
            if working:
                await wait_first(asyncio.wait(working), self._clock.sleep(STOP_SECONDS))
            for task in working:
                task.cancel()

    def _check_not_running(self) -> None:
        if self._running:
            raise RuntimeError("a manager takes no informers or controllers once it runs")

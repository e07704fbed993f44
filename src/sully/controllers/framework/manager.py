"""Runs controllers together, as controller-runtime's Manager: shared informers, then workers.

Informers are shared by kind and selector. Workers start once all informers have synced, and stop
before the informers they read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar, cast

from sully.client.events import EventRecorder
from sully.client.informers.informer import Informer
from sully.client.informers.metrics import InformerMetrics
from sully.client.informers.outages import Outages
from sully.client.informers.reflector import ObjectSelector
from sully.client.objects import strip_managed_fields
from sully.client.transport import Kind, Transport
from sully.controllers.framework.controller import Controller, ControllerEnv, Runner
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock
from sully.runtime.metrics import Metrics
from sully.runtime.tasks import wait_first

T = TypeVar("T")

EVERYTHING = ObjectSelector()
STOP_SECONDS = 5.0
"""How long a running reconcile may take to end before it is cancelled."""


class Manager:
    """Starts and stops controllers; runs once."""

    def __init__(
        self, transport: Transport, *, clock: Clock, metrics: Metrics | None = None
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._metrics = metrics
        self._informer_metrics = InformerMetrics(metrics) if metrics else None
        self._outages = Outages(clock)
        self._informers: dict[tuple[Kind[Any], ObjectSelector], Informer[Any]] = {}
        self._runners: list[Runner] = []
        self._runnables: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._running = False
        self._tasks: asyncio.TaskGroup | None = None
        self._started: dict[Kind[Any], asyncio.Task[None]] = {}
        self._stopping = asyncio.Event()

    def informer(self, kind: Kind[T], selector: ObjectSelector = EVERYTHING) -> Informer[T]:
        """Return the informer of a collection; the same one for the same selector."""
        informer = self._informers.get((kind, selector))
        if informer is None:
            self._check_not_running()
            informer = self._informers[kind, selector] = self._new(kind, selector)
        return cast("Informer[T]", informer)

    def complete_informers(self) -> Iterator[Informer[Any]]:
        """Yield the informers of whole collections."""
        return (
            informer
            for (_, selector), informer in self._informers.items()
            if selector == EVERYTHING
        )

    def _new(self, kind: Kind[T], selector: ObjectSelector) -> Informer[T]:
        informer = Informer(self._transport, kind, clock=self._clock, selector=selector)
        # Controllers do not read them.
        informer.set_transform(strip_managed_fields)
        metrics = self._informer_metrics
        informer.report_to(self._outages, metrics.follow(informer, selector) if metrics else None)
        return informer

    def start(self, kind: Kind[T]) -> Informer[T]:
        """Start an informer while controllers run: of a kind that the server has only now."""
        informer = self._new(kind, EVERYTHING)
        if self._tasks is not None:
            self._started[kind] = self._tasks.create_task(informer.run())
        return informer

    def end(self, kind: Kind[Any]) -> None:
        """End an informer that was started."""
        task = self._started.pop(kind, None)
        if task is not None:
            task.cancel()

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
            outages=self._outages,
        )
        self._runners.append(runner)

    def env(self, transport: Transport, component: str) -> ControllerEnv:
        """Return what a controller with this client acts with; `component` is in its events."""
        recorder = EventRecorder(transport, component, clock=self._clock)
        self.add_runnable(recorder.run)
        return ControllerEnv(transport, recorder, self._clock)

    def add_runnable(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run what controllers need, such as an event recorder, until they have stopped."""
        self._check_not_running()
        self._runnables.append(run)

    async def run(self) -> None:
        """Run everything until `stop`."""
        self._check_not_running()
        self._running = True
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            running = [tasks.create_task(informer.run()) for informer in self._informers.values()]
            running += [tasks.create_task(run()) for run in self._runnables]
            try:
                await wait_first(self._synced(), self._stopping.wait())
                await self._work()
            finally:
                self._tasks = None
                for task in (*running, *self._started.values()):
                    task.cancel()

    def stop(self) -> None:
        """Ask `run` to end; it returns when no reconcile is running."""
        self._stopping.set()

    async def settled(self) -> None:
        """Wait until all objects that existed at the start were reconciled once."""
        await self._synced()
        for runner in self._runners:
            await runner.queue.drained()

    def problems(self) -> dict[str, str]:
        """Return which resources cannot be watched, and why."""
        return {
            informer.kind.plural: str(informer.freshness.problem)
            for informer in self._informers.values()
            if informer.freshness.problem is not None
        }

    @property
    def delayed(self) -> int:
        """Return how many keys are queued for a later time."""
        return sum(runner.queue.delayed for runner in self._runners)

    async def _synced(self) -> None:
        for informer in self._informers.values():
            await informer.wait_synced()

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            workers = [tasks.create_task(runner.run()) for runner in self._runners]
            await self._stopping.wait()
            for runner in self._runners:
                runner.stop()
            if workers:
                await wait_first(asyncio.wait(workers), self._clock.sleep(STOP_SECONDS))
            for task in workers:
                task.cancel()

    def _check_not_running(self) -> None:
        if self._running:
            raise RuntimeError("cannot add informers or controllers to a manager that is running")

"""An event loop whose time and order follow from a seed.

Time is virtual: when nothing is ready, it jumps to the next timer, so a day of waiting takes no
time. Which of several ready tasks runs next is chosen at random. A process is a group of tasks
that share a context: a killed one never runs again, as after `kill -9`, whatever its tasks were
waiting for. No `finally` of theirs runs either.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import random
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from heapq import heapify, heappop, heappush
from typing import Any

from sully.runtime.clock import Clock

PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)


class _Numbers:
    """Numbers tasks and futures: sets of them would else depend on where they are in memory."""

    count = itertools.count()


class Process:
    """Tasks that are killed together."""

    def __init__(self, name: str, loop: SimulatedLoop, *, machine: str, clock: Clock) -> None:
        self.name = name
        self.machine = machine
        self.clock = clock
        self.alive = True
        self.fuse: int | None = None
        """After how many more steps it is killed."""
        self.on_fuse: Callable[[], None] = self.kill
        self.resumed_at = float("-inf")
        """When it last ran again after a suspension."""
        self.held: list[asyncio.Handle] | None = None
        """What it will run when it is resumed; None while it runs."""
        self._loop = loop
        self._context = contextvars.copy_context()
        self._context.run(PROCESS.set, self)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start a task of this process."""
        return self._loop.create_task(work, context=self._context.copy())

    def call(self, work: Callable[[], object]) -> None:
        """Run a function as this process, as soon as possible."""
        self._loop.call_soon(work, context=self._context.copy())

    def kill(self) -> None:
        """End the process between two steps of its tasks."""
        self.alive = False

    def suspend(self) -> None:
        """Let the process do nothing, as SIGSTOP does; time continues."""
        if self.held is None:
            self.held = []

    def resume(self) -> None:
        """Let the process continue where it was; it only notices by its clock."""
        held, self.held = self.held or [], None
        self.resumed_at = self._loop.time()
        self._loop.add_ready(held)


class _Task(asyncio.Task[Any]):
    """A task whose place in a set follows from when it was created, not from its address."""

    def __new__(cls, *_: Any, **__: Any) -> _Task:
        task = super().__new__(cls)
        task.number = next(_Numbers.count)
        return task

    number: int

    def __hash__(self) -> int:
        return self.number


class _Future(asyncio.Future[Any]):
    """A future whose place in a set follows from when it was created."""

    def __init__(self, *, loop: asyncio.AbstractEventLoop) -> None:
        self.number = next(_Numbers.count)
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.number


def _task(
    loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any
) -> asyncio.Task[Any]:
    return _Task(work, loop=loop, **options)


class StuckError(RuntimeError):
    """Nothing is ready and nothing will be."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs tasks in an order and at times that follow from a seed."""

    _ready: deque[Any]
    _debug: bool

    def __init__(self, rng: random.Random, *, reorder: float = 0.3) -> None:
        super().__init__()
        _Numbers.count = itertools.count()
        self._rng = rng
        self._reorder = reorder
        self._virtual = 0.0
        self.steps = 0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timer_count = itertools.count()
        self._cancelled_timers = 0
        self._tasks: list[asyncio.Task[Any]] = []
        self.set_task_factory(self._new_task)  # type: ignore[arg-type]  # typeshed names `**kwargs`
        self.set_exception_handler(lambda *_: None)

    def time(self) -> float:
        """Return the virtual time, in seconds."""
        return self._virtual

    def call_at(  # type: ignore[override]  # typeshed has type variables for the arguments
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call a function at a time; of equal times the first that was asked for comes first."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        timer._scheduled = True  # type: ignore[attr-defined]  # not in typeshed
        heappush(self._timers, (when, next(self._timer_count), timer))
        return timer

    def _timer_handle_cancelled(self, _: asyncio.TimerHandle) -> None:
        self._cancelled_timers += 1
        if self._cancelled_timers > 64 and 2 * self._cancelled_timers > len(self._timers):
            # Most requests are answered long before their timeout.
            self._timers = [timer for timer in self._timers if not timer[2].cancelled()]
            heapify(self._timers)
            self._cancelled_timers = 0

    def create_future(self) -> asyncio.Future[Any]:
        """Return a new future."""
        return _Future(loop=self)

    def run_in_executor(  # type: ignore[override]  # no executor: the result exists immediately
        self, _: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run a function now; there are no threads."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whoever waits gets it
            future.set_exception(error)
        return future

    def later(self, seconds: float, work: Callable[..., object], *args: object) -> None:
        """Call a function in a while, whatever happens to the process that asks for it."""
        self.call_later(seconds, work, *args, context=contextvars.Context())

    def add_ready(self, handles: Iterable[asyncio.Handle]) -> None:
        """Run these as soon as possible."""
        self._ready.extend(handles)

    def forget(self) -> None:
        """Drop all tasks without a word; only after the last step."""
        for task in self._tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # not in typeshed
        # Nobody retrieves the errors of what was killed.
        self.set_exception_handler(lambda *_: None)
        self._ready.clear()
        self._timers.clear()
        self.close()

    def _new_task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        task = _task(loop, work, **options)
        if len(self._tasks) > 4096:
            self._tasks = [known for known in self._tasks if not known.done()]
        # Referenced, so that a killed task is never collected: that would run its `finally`.
        self._tasks.append(task)
        return task

    def _write_to_self(self) -> None:
        """Nothing sleeps that had to be woken."""

    def _run_once(self) -> None:
        ready, timers = self._ready, self._timers
        while timers and timers[0][2]._cancelled:
            heappop(timers)
            self._cancelled_timers -= 1
        if not ready:
            if not timers:
                raise StuckError("nothing is left to run")
            self._virtual = max(self._virtual, timers[0][0])
        while timers and timers[0][0] <= self._virtual:
            timer = heappop(timers)[2]
            timer._scheduled = False  # type: ignore[attr-defined]  # not in typeshed
            if timer._cancelled:
                self._cancelled_timers -= 1
            else:
                ready.append(timer)
        if len(ready) > 1 and self._rng.random() < self._reorder:
            self._bring_forward()
        handle = ready.popleft()
        if handle._cancelled:
            return
        process = handle._context.get(PROCESS)
        if process is not None and not process.alive:
            return
        if process is not None and process.held is not None:
            process.held.append(handle)
            return
        self.steps += 1
        handle._run()
        if process is not None and process.fuse is not None:
            process.fuse -= 1
            if process.fuse <= 0:
                process.fuse = None
                process.on_fuse()

    def _bring_forward(self) -> None:
        """Let a task run before others; plain callbacks keep their order, as asyncio promises."""
        ready = self._ready
        index = self._rng.randrange(1, len(ready))
        handle = ready[index]
        if isinstance(getattr(handle._callback, "__self__", None), asyncio.Task):
            del ready[index]
            ready.appendleft(handle)

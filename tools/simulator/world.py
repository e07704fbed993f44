"""One run: a plan, executed on a simulated cluster, until it converges or breaks a promise."""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import structlog

from simulator.changes import User
from simulator.clients import Controllers, Nodes, admin
from simulator.clock import SimulatedClock
from simulator.convergence import unsettled
from simulator.disk import SimulatedDisk
from simulator.invariants import STALE_SLACK, Invariants
from simulator.knowledge import Knowledge
from simulator.loop import Process, SimulatedLoop
from simulator.network import Conditions, Network
from simulator.operations import Plan
from simulator.scenarios import CONTROLLERS
from simulator.server import start_server
from simulator.template import template_image
from simulator.truth import Truth
from sully.client.calls import Call
from sully.controllers.framework.manager import Manager
from sully.evictor.settings import EvictionSettings
from sully.machinery.errors import ApiError
from sully.runtime import backoff
from sully.server.inprocess import Reply
from sully.store.errors import StoreError

Obj = dict[str, Any]
QUIET_SECONDS = 1500.0
"""How long it may take to converge after the last fault."""
ATTEMPTS = 30


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken."""

    at: float
    promise: str
    text: str

    def __str__(self) -> str:
        """Return one line."""
        return f"{self.at:9.3f}  {self.promise}: {self.text}"


@dataclass(slots=True)
class Outcome:
    """What a run has shown."""

    plan: Plan
    violations: list[Violation] = field(default_factory=list)
    steps: int = 0
    seconds: float = 0.0
    revision: int = 0
    evictions: int = 0
    faults: int = 0
    trace: list[str] = field(default_factory=list)
    """What happened, one line per write; equal for equal seeds."""
    log: list[str] | None = None
    """What processes logged, if that was asked for."""


class _Logs:
    """Passes what processes log to the world that runs.

    Loggers keep their processors, so these must not be methods of a world: it would be kept, too.
    """

    def __init__(self) -> None:
        self.world: Callable[[Any], None] | None = None
        self._processors: dict[int, list[Any]] = {}
        """By level: loggers notice a new one by the identity of the list."""

    def to(self, world: Callable[[Any], None], level: int) -> None:
        """Pass everything of a level on to a world."""
        self.world = world
        structlog.configure(
            processors=self._processors.setdefault(level, [self._process]),
            wrapper_class=structlog.make_filtering_bound_logger(level),
            cache_logger_on_first_use=False,
        )

    def _process(self, _: Any, __: str, event: Any) -> Any:
        if self.world is not None:
            self.world(event)
        raise structlog.DropEvent


_LOGS = _Logs()


class _ViolatedError(Exception):
    """The first violation ends a run."""


def run(plan: Plan, *, trace: bool = False, collect: bool = True) -> Outcome:
    """Execute a plan.

    A process that ends soon need not collect what is left of a world, a fifth of the cost of a run.
    """
    gc.disable()
    if not collect:
        return _World(plan, trace=trace).run()
    # What is there already is not looked at when the world is collected.
    gc.freeze()
    try:
        return _World(plan, trace=trace).run()
    finally:
        _collect()
        gc.unfreeze()
        gc.enable()


def _collect() -> None:
    """Free the memory of a world: tasks that were killed in it end here, and fail."""
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            # Twice: what the first one closes lets go of the rest.
            gc.collect()
            gc.collect()
    finally:
        sys.unraisablehook = hook


class _World:
    def __init__(self, plan: Plan, *, trace: bool) -> None:
        self._plan = plan
        self._outcome = Outcome(plan)
        seeds = random.Random(plan.seed + 1)
        self._rng = random.Random(seeds.random())
        # Before the loop: it may need one of its own.
        image = template_image(plan.nodes, plan.devices)
        self._loop = SimulatedLoop(random.Random(seeds.random()), reorder=plan.reorder)
        backoff.SHARED.seed(seeds.random())
        self._disk = SimulatedDisk(random.Random(seeds.random()), image)
        self._disk.on_power_cut = self._power_cut
        self._truth = Truth(self._report)
        settings = EvictionSettings(max_per_minute=plan.max_per_minute)
        self._eviction = settings
        self._invariants = Invariants(
            self._truth,
            self._loop,
            self._report,
            slack=STALE_SLACK if plan.silent else 1.0 + 20 * max(plan.delays),
            max_per_minute=plan.max_per_minute,
        )
        self._knowledge = Knowledge(self._truth, self._loop, self._manager_of, self._report)
        tap = _Tap(self._truth, self._invariants, self._knowledge)
        self._network = Network(self._loop, random.Random(seeds.random()), tap)
        self._network.conditions = Conditions(plan.delays)
        self._clocks = {
            machine: SimulatedClock(self._loop, rate=rate) for machine, rate in plan.drift.items()
        }
        self._starts = 0
        self._clients: dict[str, Controllers | Nodes] = {}
        self._processes: dict[str, Process] = {}
        self._level = 40
        if trace:
            self._outcome.log, self._level = [], 10
            self._truth.listeners.append(self._record)

    def run(self) -> Outcome:
        loop, outcome = self._loop, self._outcome
        loop.set_exception_handler(self._uncaught)
        _LOGS.to(self._logged, self._level)
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._main())
        except _ViolatedError:
            pass
        finally:
            asyncio.set_event_loop(None)
            _LOGS.world = None
            outcome.steps, outcome.seconds = loop.steps, loop.time()
            outcome.revision = self._truth.revision
            outcome.evictions = len(self._invariants.evictions)
            loop.forget()
            self._disk.close()
        return outcome

    # -- the story --------------------------------------------------------------------------------

    async def _main(self) -> None:
        await self._start_server()
        process = self._process("admin")
        api = admin(self._network, process)
        user = User(api, process.clock, self._plan.devices, self._report)
        for machine in (*CONTROLLERS, "nodes"):
            self._start(machine)
        tasks = []
        for operation in self._plan.operations:
            await self._until(operation.at)
            method = self._FAULTS.get(operation.name)
            if method is not None:
                self._outcome.faults += 1
                method(self, **operation.args)
            else:
                tasks.append(process.spawn(user.execute(operation)))
        await self._until(self._plan.duration)
        await self._quiet(tasks)

    async def _until(self, time: float) -> None:
        """Wait for a time; the first violation ends the run."""
        await asyncio.sleep(max(0.0, time - self._loop.time()))
        self._check()

    def _check(self) -> None:
        if self._outcome.violations:
            raise _ViolatedError

    async def _quiet(self, tasks: list[asyncio.Task[Any]]) -> None:
        """Repair everything, and wait until nothing is left to do."""
        self._network.conditions = Conditions(self._plan.delays)
        self._network.cut.clear()
        self._disk.fuse, self._disk.failing = None, 0
        for process in self._processes.values():
            process.fuse = None
        end = self._loop.time() + QUIET_SECONDS
        problems = ["not looked yet"]
        while problems:
            await self._until(self._loop.time() + 20.0)
            problems = self._problems(tasks)
            if problems and self._loop.time() > end:
                self._report("convergence", "; ".join(problems[:5]))
                self._check()

    def _problems(self, tasks: Iterable[asyncio.Task[Any]]) -> list[str]:
        if self._network.server is None:
            return ["there is no server"]
        managers = [
            client.manager
            for client in self._clients.values()
            if client.manager is not None
            and (isinstance(client, Nodes) or client.elected.since is not None)
        ]
        if len(managers) != 2:
            return [f"{len(managers) - 1} controllers lead"]
        if not all(task.done() for task in tasks):
            return ["an operation has not ended"]
        now = min(clock.now() for clock in self._clocks.values())
        return list(unsettled(self._truth, self._invariants, managers, now))

    # -- processes --------------------------------------------------------------------------------

    def _process(self, machine: str) -> Process:
        self._starts += 1
        name = f"{machine}-{self._starts}"
        return Process(name, self._loop, machine=machine, clock=self._clocks[machine])

    def _manager_of(self, process: Process) -> Manager | None:
        return self._clients[process.machine].manager

    def _start(self, machine: str) -> None:
        process = self._processes[machine] = self._process(machine)
        client: Controllers | Nodes
        if machine == "nodes":
            client = Nodes(self._network, process, self._plan.nodes)
        else:
            seed = self._rng.getrandbits(32)
            client = Controllers(self._network, process, seed, self._eviction)
        self._clients[machine] = client
        process.spawn(self._watched(client.run(), process))

    async def _watched(self, work: Any, process: Process) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - whatever it is, it ended a process
            self._report("crash", f"{process.name} ended: {error!r}")
        else:
            self._report("crash", f"{process.name} ended")

    async def _start_server(self) -> None:
        process = self._processes["server"] = self._process("server")
        task = process.spawn(self._serve(process))
        await asyncio.wait([task])

    async def _serve(self, process: Process) -> None:
        clock = self._clocks["server"]
        try:
            server = await start_server(process, clock, self._disk, self._truth, self._rng)
        except (StoreError, ApiError) as error:
            if self._disk.failing or "simulated I/O error" in str(error):
                # It could not start; who runs it retries.
                self._loop.later(1.0, self._restart_server)
                return
            self._report("durable", f"the server does not start: {error}")
            return
        except Exception as error:  # noqa: BLE001 - every failure is reported
            self._report("crash", f"the server does not start: {error!r}")
            return
        self._network.server = server
        process.spawn(self._watched(server.run(history=self._plan.history), process))

    def _restart_server(self) -> None:
        process = self._processes["server"] = self._process("server")
        process.spawn(self._serve(process))

    def _server_down(self, down: float) -> None:
        self._processes["server"].kill()
        self._network.server_died()
        self._loop.later(down, self._restart_server)

    # -- faults -----------------------------------------------------------------------------------

    def _crash_server(self, down: float) -> None:
        if self._processes["server"].alive:
            self._disk.crash()
            self._server_down(down)

    def _arm_power_cut(self, writes: int, down: float) -> None:
        self._disk.fuse = writes
        self._down = down

    def _power_cut(self) -> None:
        # Called by the disk, in the middle of a write.
        self._processes["server"].kill()
        self._loop.later(0.0, self._server_down, self._down)

    def _io_errors(self, count: int) -> None:
        self._disk.failing = count

    def _kill(self, machine: str, steps: int, down: float) -> None:
        process = self._processes[machine]

        def killed() -> None:
            process.kill()
            self._network.client_died(process)
            self._loop.later(down, self._start, machine)

        process.fuse, process.on_fuse = steps, killed

    def _cut(self, machine: str, seconds: float) -> None:
        self._network.cut.add(machine)
        self._loop.later(seconds, self._network.cut.discard, machine)

    def _lose(self, share: float, seconds: float) -> None:
        self._network.conditions = Conditions(self._plan.delays, share)
        self._loop.later(seconds, self._lose_none)

    def _lose_none(self) -> None:
        self._network.conditions = Conditions(self._plan.delays)

    def _suspend(self, machine: str, seconds: float) -> None:
        process = self._processes[machine]
        process.suspend()
        self._loop.later(seconds, process.resume)

    def _break(self, machine: str, share: float) -> None:
        self._network.break_streams(machine, share)

    def _silence(self, machine: str, share: float) -> None:
        self._network.silence(machine, share)

    def _step_clock(self, machine: str, seconds: float) -> None:
        self._clocks[machine].step(seconds)

    _FAULTS: ClassVar[dict[str, Callable[..., None]]] = {
        "crash server": _crash_server,
        "power cut": _arm_power_cut,
        "io errors": _io_errors,
        "kill": _kill,
        "cut": _cut,
        "lose messages": _lose,
        "break watches": _break,
        "silence watches": _silence,
        "step clock": _step_clock,
        "suspend": _suspend,
    }

    # -- reports ----------------------------------------------------------------------------------

    def _report(self, promise: str, text: str) -> None:
        self._outcome.violations.append(Violation(self._loop.time(), promise, text))

    def _uncaught(self, _: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None:
            self._report("crash", f"{context.get('message')}: {error!r}")

    def _logged(self, event: Any) -> None:
        if self._outcome.log is not None:
            self._outcome.log.append(f"{self._loop.time():9.3f}  {event}")
        if event.get("event") == "reconcile failed unexpectedly":
            self._report("crash", f"{event.get('controller')}: {event.get('exc_info')!r}")

    def _record(self, event: Any, _: Obj, __: Obj | None, actor: Any) -> None:
        self._outcome.trace.append(
            f"{self._loop.time():.6f} {event.revision} {event.kind} {event.record.key}"
            f" {actor.user} {hash(event.record.value)}"
        )


class _Tap:
    """Shows what happens on the network to those who check it."""

    def __init__(self, truth: Truth, invariants: Invariants, knowledge: Knowledge) -> None:
        self._writes = (invariants.write_started, knowledge.write_started)
        self.watch_opened = truth.watch_opened
        self.watch_sent = truth.watch_sent
        self.read_started = truth.read_started
        self._answers = (truth.answered, invariants.answered)

    def answered(self, started: int, user: str, call: Call, reply: Reply) -> None:
        """Show the answer to a request that succeeded."""
        for check in self._answers:
            check(started, user, call, reply)

    def write_started(self, process: Process, user: str, call: Call) -> None:
        """Show a write of a controller."""
        for check in self._writes:
            check(process, user, call)

"""Schedules pods onto devices and evicts them, with one fault after the other.

    python tools/fault_injection.py replicas --pods 1000 --seed 7

First pods are created that need devices of one model, then a rule evicts all of those at a rate,
other rules taint pools, and further pods are created. In each half, fault follows fault: while one
lasts, clients use whichever replica answers. In the end everything is compared: the responses that
clients got, the events of moving watches, records and rules, and the audit logs of the replicas.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from kills.fleet import CLAIMS, LEASES, PODS, RECORDS, TAINT_RULES, Obj
from replicas import work
from replicas.comparing import LEASE_SECONDS, compare, compare_logs, count
from replicas.faults import Fault, plan
from replicas.figures import FaultResult, Figures
from replicas.machines import Machine, Machines
from replicas.scene import Scene, StuckError, serving
from sully.client.http.transport import HttpTransport
from sully.client.transport import Kind, Page
from sully.machinery.serialization.codec import to_json

T = TypeVar("T")
Progress = Callable[[str], None]

WRITERS = 4
OUTAGE_AFTER, OUTAGE_SECONDS = 3.0, 12.0
"""When no request is answered any more once the majority is lost, and how long that lasts."""
BRIEFLY, MOMENT = (2.0, 6.0), (0.5, 3.0)
KEEP_SECONDS = 20.0
EVICTION_SECONDS = 12
"""The eviction rate is such that pods are evicted in about this many seconds of each fault."""


class Rounds:
    """One run."""

    def __init__(self, folder: Path, pods: int, faults: int, seed: int) -> None:
        self.figures = Figures(pods=pods)
        self._folder = folder
        self._rng = random.Random(seed)
        self._plan = plan(self._rng, faults)
        self._early, self._late = work.early(pods), work.late(pods)
        self._nodes = work.nodes_for(pods)
        self._created: set[str] = set()
        self._scene: Scene | None = None
        self._lost: list[tuple[FaultResult, datetime]] = []
        """The losses of leaders, and when each began."""

    async def run(self, progress: Progress = lambda _: None) -> Figures:
        """Run everything."""
        began = time.monotonic()
        flags = ("--simulated-nodes", str(self._nodes), "--log-level", "warning")
        with Machines(self._folder, *flags) as machines:
            try:
                await self._live(machines, progress)
            except* StuckError as stuck:
                self.figures.problems += messages(stuck)
            self.figures.problems += filter(None, [m.exit_problem() for m in machines.all])
            for machine in machines.all:
                machine.end()
        if self._scene is not None:
            compare_logs(self._scene, self._lost, self.figures)
        self.figures.seconds = time.monotonic() - began
        return self.figures

    async def _live(self, machines: Machines, progress: Progress) -> None:
        async with serving(machines, self._rng) as scene:
            self._scene = scene
            await scene.set_up(self._nodes)
            async with scene.busy():
                try:
                    await self._work(scene, progress)
                finally:
                    count(scene, self.figures)
                    await _keep(scene, self._folder / "state.json")

    async def _work(self, scene: Scene, progress: Progress) -> None:
        half = (len(self._plan) + 1) // 2
        first, second = self._plan[:half], self._plan[half:]
        for fault, pods in zip(first, split(self._early, len(first)), strict=True):
            await self._round(scene, fault, pods, ())
            progress(self._line(scene))
        # Later all their devices would be tainted.
        await scene.until(lambda: scene.ledger.bound() == len(self._early))
        rate = max(2, len(self._early) // (EVICTION_SECONDS * max(1, len(second))))
        scene.ledger.big_rule = True
        await scene.clients.create(TAINT_RULES, work.big_rule(rate))
        pools = work.pools(self._nodes, work.PIECEMEAL)
        parts = zip(
            second,
            split(self._late, len(second)),
            split(pools[: len(pools) // 2], len(second)),
            strict=True,
        )
        for fault, pods, tainted in parts:
            await self._round(scene, fault, pods, tainted)
            progress(self._line(scene))
        await scene.until(lambda: not scene.ledger.unfinished(), scene.ledger.unfinished)
        progress(self._line(scene))
        await compare(scene, self._created, self.figures)

    async def _round(
        self, scene: Scene, fault: Fault, pods: Sequence[work.PlannedPod], pools: Sequence[str]
    ) -> None:
        """Let clients do their part of the work, with a fault in the middle."""
        half = len(pods) // 2
        await self._create(scene, pods[:half])
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._inject(scene, fault))
            tasks.create_task(self._create(scene, pods[half:], over=LEASE_SECONDS))
            tasks.create_task(self._taint(scene, pools))

    async def _create(
        self, scene: Scene, pods: Sequence[work.PlannedPod], *, over: float = 0.0
    ) -> None:
        """Create pods, over some seconds: there must be work for the next leader."""
        waiting = list(reversed(pods))

        async def create_each() -> None:
            while waiting:
                planned = waiting.pop()
                if planned.claim and planned.number % 2 == 0:
                    await scene.clients.create(CLAIMS, work.claim(planned.claim))
                await scene.clients.create(PODS, work.pod(planned))
                self._created.add(planned.name)
                await asyncio.sleep(WRITERS * over / len(pods))

        async with asyncio.TaskGroup() as tasks:
            for _ in range(WRITERS):
                tasks.create_task(create_each())

    async def _taint(self, scene: Scene, pools: Sequence[str]) -> None:
        for pool in pools:
            # First: a pod may be evicted before the rule is acknowledged.
            scene.ledger.tainted.add(pool)
            await scene.clients.create(TAINT_RULES, work.pool_rule(pool))

    async def _inject(self, scene: Scene, fault: Fault) -> None:
        machines, leader = scene.machines, await scene.leader()
        others = [m for m in machines.all if m is not leader]
        target = leader if fault.leader else self._rng.choice(others)
        other = self._rng.choice([m for m in machines.all if m is not target])
        began, moment = time.monotonic(), datetime.now(UTC)
        fault.begin(machines, target, other)
        await self._wait(scene, fault, target)
        ended = time.monotonic()
        self._note(scene, fault, target, (began, ended), moment)
        fault.end(machines, target, other)
        machines.network.heal()
        await scene.wait_healthy()

    async def _wait(self, scene: Scene, fault: Fault, target: Machine) -> None:
        """Let it last: until another leads and a moment longer, or for a time."""
        if fault.total_outage:
            await asyncio.sleep(OUTAGE_AFTER + OUTAGE_SECONDS)
            return
        if fault.moves:
            await scene.until(lambda: scene.moved_from(target))
        await asyncio.sleep(self._rng.uniform(*(MOMENT if fault.moves else BRIEFLY)))

    def _note(
        self,
        scene: Scene,
        fault: Fault,
        target: Machine,
        between: tuple[float, float],
        moment: datetime,
    ) -> None:
        began, ended = between
        result = FaultResult(
            fault.name, target.name, ended - began, scene.clients.number(began, ended)
        )
        self.figures.results.append(result)
        if fault.moves:
            self._lost.append((result, moment))
        if fault.total_outage and (answered := scene.clients.number(began + OUTAGE_AFTER, ended)):
            self.figures.problems.append(f"{fault.name}: {answered} requests were answered")
        if not fault.total_outage and not result.acknowledged:
            self.figures.problems.append(f"{fault.name}: no request was answered")

    def _line(self, scene: Scene) -> str:
        done, ledger = self.figures.results, scene.ledger
        counts = f"{ledger.bound()} bound, {ledger.deleted_count()} deleted"
        return f"{counts}, {len(done)} faults, the last: {done[-1].name if done else 'none'}"


async def _keep(scene: Scene, file: Path) -> None:
    """Save the last state: it cannot be read afterwards."""
    state = {}
    # Perhaps no replica answers; that is reported already.
    with suppress(TimeoutError):
        async with asyncio.timeout(KEEP_SECONDS):
            for kind in (PODS, CLAIMS, TAINT_RULES, RECORDS, LEASES):
                page = await scene.clients.call(partial(_all, kind))
                state[kind.plural] = list(page.items)
    await asyncio.to_thread(file.write_bytes, to_json(state))


async def _all(kind: Kind[Obj], api: HttpTransport) -> Page[Obj]:
    return await api.list(kind)


def messages(group: BaseExceptionGroup[StuckError]) -> list[str]:
    """Return the messages of all errors in a group."""
    texts: list[str] = []
    for error in group.exceptions:
        texts += messages(error) if isinstance(error, BaseExceptionGroup) else [str(error)]
    return texts


def split(items: Sequence[T], number: int) -> list[Sequence[T]]:
    """Return consecutive parts of about the same length."""
    size = len(items) / max(1, number)
    return [items[round(part * size) : round((part + 1) * size)] for part in range(number)]

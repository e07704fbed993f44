"""Schedules pods onto devices and evicts them, while one machine after the other is in trouble.

    python tools/robust.py replicas --pods 1000 --seed 7

First come pods that need devices of one model, then a rule sends all of those away at a pace, other
rules empty pools, and further pods come. In each half, trouble follows trouble: while one lasts
clients go on against whichever replica answers. In the end everything is compared: what clients
were told, what wandering watches saw, what records and rules say, and what the replicas wrote down
about themselves.
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
from replicas.figures import Figures, Happened
from replicas.machines import Machine, Machines
from replicas.scene import Scene, StuckError, serving
from replicas.troubles import Trouble, plan
from sully.client.http.transport import HttpTransport
from sully.client.transport import Kind, Page
from sully.machinery.codec import to_json

T = TypeVar("T")
Progress = Callable[[str], None]

WRITERS = 4
SILENT_AFTER, SILENT_FOR = 3.0, 12.0
"""When nobody is answered any more once the majority is lost, and how long that lasts."""
BRIEFLY, MOMENT = (2.0, 6.0), (0.5, 3.0)
KEEP_SECONDS = 20.0
LEFT_EVERY_ROUND = 12
"""The pace of those who leave is such that about this many seconds of each trouble have some."""


class Rounds:
    """One run."""

    def __init__(self, folder: Path, pods: int, troubles: int, seed: int) -> None:
        self.figures = Figures(pods=pods)
        self._folder = folder
        self._chance = random.Random(seed)
        self._plan = plan(self._chance, troubles)
        self._early, self._late = work.early(pods), work.late(pods)
        self._nodes = work.nodes_for(pods)
        self._made: set[str] = set()
        self._scene: Scene | None = None
        self._lost: list[tuple[Happened, datetime]] = []
        """The losses of leaders, and when each began."""

    async def run(self, progress: Progress = lambda _: None) -> Figures:
        """Do all of it."""
        began = time.monotonic()
        flags = ("--simulated-nodes", str(self._nodes), "--log-level", "warning")
        with Machines(self._folder, *flags) as machines:
            try:
                await self._live(machines, progress)
            except* StuckError as stuck:
                self.figures.problems += leaves(stuck)
            self.figures.problems += filter(None, [each.look() for each in machines.all])
            for machine in machines.all:
                machine.end()
        if self._scene is not None:
            compare_logs(self._scene, self._lost, self.figures)
        self.figures.seconds = time.monotonic() - began
        return self.figures

    async def _live(self, machines: Machines, progress: Progress) -> None:
        async with serving(machines, self._chance) as scene:
            self._scene = scene
            await scene.furnish(self._nodes)
            async with scene.busy():
                try:
                    await self._work(scene, progress)
                finally:
                    count(scene, self.figures)
                    await _keep(scene, self._folder / "state.json")

    async def _work(self, scene: Scene, progress: Progress) -> None:
        half = (len(self._plan) + 1) // 2
        first, second = self._plan[:half], self._plan[half:]
        for trouble, pods in zip(first, split(self._early, len(first)), strict=True):
            await self._round(scene, trouble, pods, ())
            progress(self._line(scene))
        # Later they would find no device that is not tainted.
        await scene.until(lambda: scene.ledger.bound() == len(self._early))
        pace = max(2, len(self._early) // (LEFT_EVERY_ROUND * max(1, len(second))))
        scene.ledger.big_rule = True
        await scene.clients.make(TAINT_RULES, work.big_rule(pace))
        pools = work.pools(self._nodes, work.PIECEMEAL)
        parts = zip(
            second,
            split(self._late, len(second)),
            split(pools[: len(pools) // 2], len(second)),
            strict=True,
        )
        for trouble, pods, tainted in parts:
            await self._round(scene, trouble, pods, tainted)
            progress(self._line(scene))
        await scene.until(lambda: not scene.ledger.unfinished(), scene.ledger.unfinished)
        progress(self._line(scene))
        await compare(scene, self._made, self.figures)

    async def _round(
        self, scene: Scene, trouble: Trouble, pods: Sequence[work.Wanted], pools: Sequence[str]
    ) -> None:
        """Let clients do their part of the work, and trouble come in the midst of it."""
        half = len(pods) // 2
        await self._make(scene, pods[:half])
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._suffer(scene, trouble))
            tasks.create_task(self._make(scene, pods[half:], over=LEASE_SECONDS))
            tasks.create_task(self._taint(scene, pools))

    async def _make(self, scene: Scene, pods: Sequence[work.Wanted], *, over: float = 0.0) -> None:
        """Create pods, over some seconds: there must be work for whoever takes over."""
        waiting = list(reversed(pods))

        async def one_after_the_other() -> None:
            while waiting:
                wanted = waiting.pop()
                if wanted.claim and wanted.number % 2 == 0:
                    await scene.clients.make(CLAIMS, work.claim(wanted.claim))
                await scene.clients.make(PODS, work.pod(wanted))
                self._made.add(wanted.name)
                await asyncio.sleep(WRITERS * over / len(pods))

        async with asyncio.TaskGroup() as tasks:
            for _ in range(WRITERS):
                tasks.create_task(one_after_the_other())

    async def _taint(self, scene: Scene, pools: Sequence[str]) -> None:
        for pool in pools:
            # First: a pod may have to leave before we are told that the rule is there.
            scene.ledger.tainted.add(pool)
            await scene.clients.make(TAINT_RULES, work.pool_rule(pool))

    async def _suffer(self, scene: Scene, trouble: Trouble) -> None:
        machines, leader = scene.machines, await scene.leader()
        others = [each for each in machines.all if each is not leader]
        target = leader if trouble.leader else self._chance.choice(others)
        other = self._chance.choice([each for each in machines.all if each is not target])
        began, moment = time.monotonic(), datetime.now(UTC)
        trouble.begin(machines, target, other)
        await self._wait(scene, trouble, target)
        ended = time.monotonic()
        self._note(scene, trouble, target, (began, ended), moment)
        trouble.end(machines, target, other)
        machines.network.heal()
        await scene.all_well()

    async def _wait(self, scene: Scene, trouble: Trouble, target: Machine) -> None:
        """Let it last: until another leads and a moment longer, or for a time."""
        if trouble.silence:
            await asyncio.sleep(SILENT_AFTER + SILENT_FOR)
            return
        if trouble.moves:
            await scene.until(lambda: scene.moved_from(target))
        await asyncio.sleep(self._chance.uniform(*(MOMENT if trouble.moves else BRIEFLY)))

    def _note(
        self,
        scene: Scene,
        trouble: Trouble,
        target: Machine,
        between: tuple[float, float],
        moment: datetime,
    ) -> None:
        began, ended = between
        happened = Happened(
            trouble.name, target.name, ended - began, scene.clients.number(began, ended)
        )
        self.figures.happened.append(happened)
        if trouble.moves:
            self._lost.append((happened, moment))
        if trouble.silence and (said := scene.clients.number(began + SILENT_AFTER, ended)):
            self.figures.problems.append(f"{trouble.name}: {said} requests were answered")
        if not trouble.silence and not happened.acknowledged:
            self.figures.problems.append(f"{trouble.name}: no client got anything done")

    def _line(self, scene: Scene) -> str:
        done, ledger = self.figures.happened, scene.ledger
        counts = f"{ledger.bound()} bound, {ledger.gone()} gone"
        return f"{counts}, {len(done)} troubles, the last: {done[-1].name if done else 'none'}"


async def _keep(scene: Scene, file: Path) -> None:
    """Write down how everything is in the end: nobody can ask afterwards."""
    found = {}
    # Perhaps nobody answers; that is told already.
    with suppress(TimeoutError):
        async with asyncio.timeout(KEEP_SECONDS):
            for kind in (PODS, CLAIMS, TAINT_RULES, RECORDS, LEASES):
                page = await scene.clients.ask(partial(_all, kind))
                found[kind.plural] = list(page.items)
    await asyncio.to_thread(file.write_bytes, to_json(found))


async def _all(kind: Kind[Obj], api: HttpTransport) -> Page[Obj]:
    return await api.list(kind)


def leaves(group: BaseExceptionGroup[StuckError]) -> list[str]:
    """Return what the errors in a group say, however deep they are in it."""
    found = []
    for each in group.exceptions:
        found += leaves(each) if isinstance(each, BaseExceptionGroup) else [str(each)]
    return found


def split(items: Sequence[T], number: int) -> list[Sequence[T]]:
    """Return consecutive parts of about the same length."""
    size = len(items) / max(1, number)
    return [items[round(each * size) : round((each + 1) * size)] for each in range(number)]

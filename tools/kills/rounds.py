"""Schedules pods onto devices and evicts them, and kills the controllers all the while.

    python tools/fault_injection.py controllers --pods 1000 --seed 7

The API server stays up; two `sully controllers` compete for a short lease. The leader is killed
after a random number of changes, counted from when it got the lease, and another is started.
Nothing is timed, so a slow machine sees the same kinds of moments. Deleted pods are confirmed as a
kubelet would do it.
"""

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import ExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kills import fleet
from kills.fleet import Obj
from kills.ledger import Ledger
from sully.client.http.transport import HttpTransport
from sully.client.kubeconfig.kubeconfig import load_kubeconfig
from sully.client.options import DeleteOptions, WatchOptions
from sully.client.transport import Key, Kind
from sully.machinery.errors import Conflict, NotFound
from sully.testing.cluster import Process, process
from sully.testing.patience import PATIENCE
from sully.testing.remote import CommandProcess, controllers

# On a machine that is so busy that nobody can renew in time, no leader stays long enough.
TIMES = ("--lease-duration", "3s", "--renew-deadline", "2500ms", "--retry-period", "200ms")
LEASE = Key("kube-system", "sully-controllers")
CONCURRENT = 16


@dataclass(slots=True)
class Figures:
    """The results of a run."""

    kills: int = 0
    bound: int = 0
    evicted: int = 0
    records: int = 0
    problems: list[str] = field(default_factory=list)


class Rounds:
    """One run."""

    def __init__(self, pods: int, seed: int, *, between: tuple[int, int] = (30, 500)) -> None:
        self.ledger = Ledger()
        self.figures = Figures()
        self._pods = pods
        # One part of the devices stays free.
        self._nodes = -(-pods * 5 // (4 * fleet.PER_NODE))
        self._rng = random.Random(seed)
        self._between = between
        self._crews: list[CommandProcess] = []
        self._changed_event = asyncio.Event()
        self._changes = 0
        self._killing = True
        self._leader = 0

    async def run(self, progress: Callable[[Figures], None] = lambda _: None) -> Figures:
        """Schedule all, evict most, and compare."""
        flags = ("--store", "memory", "--log-level", "error")
        with process("--disable-controllers", *flags) as up, ExitStack() as stack:
            access = load_kubeconfig([up.kubeconfig], required=True).access()
            async with HttpTransport(access) as api:
                await self._set_up(api)
                for _ in range(2):
                    self._start(up, stack)
                async with self._following(api, up, stack):
                    await self._schedule(api, progress)
                    await self._evict(api, progress)
                    self._killing = False
                    await self._settle(api)
                await self._compare(api)
        self.figures.problems = self.ledger.problems
        return self.figures

    async def _set_up(self, api: HttpTransport) -> None:
        await api.create(fleet.NAMESPACES, {"metadata": {"name": fleet.NAMESPACE}})
        await api.create(fleet.CLASSES, fleet.device_class())
        await api.create(fleet.TEMPLATES, fleet.template())
        numbers = range(self._nodes)
        await _all(api.create(fleet.NODES, fleet.node(number)) for number in numbers)
        await _all(api.create(fleet.SLICES, fleet.slice_of(number)) for number in numbers)

    async def _schedule(self, api: HttpTransport, progress: Callable[[Figures], None]) -> None:
        # Pods are refused until the namespace has its service account.
        await self._wait_service_account(api)
        await _all(api.create(fleet.PODS, fleet.pod(number)) for number in range(self._pods))

        def all_bound() -> bool:
            self.figures.bound = self.ledger.bound()
            progress(self.figures)
            return self.figures.bound == self._pods

        await self._until(all_bound)

    async def _evict(self, api: HttpTransport, progress: Callable[[Figures], None]) -> None:
        pools = {history.node for history in self.ledger.must_be_evicted().values()}
        await _all(api.create(fleet.TAINT_RULES, fleet.rule(pool)) for pool in sorted(pools))
        evicted = self.ledger.must_be_evicted().values()

        def all_deleted() -> bool:
            self.figures.evicted = sum(history.deleted for history in evicted)
            progress(self.figures)
            return self.figures.evicted == len(evicted)

        await self._until(all_deleted)

    async def _settle(self, api: HttpTransport) -> None:
        """Wait until the last leader has deleted claims of deleted pods and written conditions."""
        kept = self._pods - len(self.ledger.must_be_evicted())
        await self._until(lambda: self.ledger.claims == self.ledger.held == kept)
        try:
            async with asyncio.timeout(PATIENCE):
                await self._wait_reported(api)
        except TimeoutError:
            # What they report instead is compared later.
            return

    async def _wait_reported(self, api: HttpTransport) -> None:
        reported: dict[str, bool] = {}
        pools = {history.node for history in self.ledger.must_be_evicted().values()}
        async with aclosing(api.watch(fleet.TAINT_RULES, options=_from_start())) as events:
            async for event in events:
                if event.object is not None:
                    pool = event.object["metadata"]["name"]
                    reported[pool] = _finished(event.object, self._counted(pool))
                if all(reported.get(pool) for pool in pools):
                    return

    def _counted(self, pool: str) -> int:
        return sum(history.node == pool for history in self.ledger.must_be_evicted().values())

    async def _compare(self, api: HttpTransport) -> None:
        try:
            records = list((await api.list(fleet.RECORDS)).items)
        except NotFound:
            return  # a server that keeps none
        self.figures.records = len(records)
        rules = list((await api.list(fleet.TAINT_RULES)).items)
        self.ledger.check_counts(records, rules)

    async def _wait_service_account(self, api: HttpTransport) -> None:
        accounts: Kind[Obj] = Kind("", "v1", "serviceaccounts", "ServiceAccount", dict)
        async with aclosing(api.watch(accounts, fleet.NAMESPACE, _from_start())) as events:
            async for event in events:
                # A bookmark has no object.
                if event.object is not None:
                    return

    @asynccontextmanager
    async def _following(
        self, api: HttpTransport, up: Process, stack: ExitStack
    ) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            following = [
                tasks.create_task(self._follow(api, fleet.CLAIMS, self.ledger.saw_claim)),
                tasks.create_task(self._follow(api, fleet.PODS, self.ledger.saw_pod)),
                tasks.create_task(self._watch_leader(api)),
                tasks.create_task(self._confirm(api)),
                tasks.create_task(self._kill(up, stack)),
            ]
            yield
            for task in following:
                task.cancel()

    async def _follow(
        self, api: HttpTransport, kind: Kind[Obj], saw: Callable[[str, Obj], None]
    ) -> None:
        async with aclosing(api.watch(kind, options=_from_start())) as events:
            async for event in events:
                if event.object is not None:
                    saw(event.type, event.object)
                    self._notify()
        raise RuntimeError(f"the watch of {kind.plural} ended, so something may have been missed")

    async def _watch_leader(self, api: HttpTransport) -> None:
        options = _from_start()
        async with aclosing(api.watch(fleet.LEASES, LEASE.namespace, options)) as events:
            async for event in events:
                if event.object is None:
                    continue
                spec = event.object.get("spec") or {}
                name = spec.get("holderIdentity") or "__"
                self._leader = int(name.split("_")[-2] or 0)
                self._notify()
        raise RuntimeError("the watch of leases ended, so the leader is not known any more")

    async def _confirm(self, api: HttpTransport) -> None:
        """Act as the kubelet: a terminating pod has ended."""
        now, seen = DeleteOptions(grace_period_seconds=0), 0
        while True:
            # What changes while pods are deleted counts for the next round.
            await self._changed(seen)
            seen = self._changes
            terminating = [
                p.name for p in self.ledger.pods.values() if p.terminating and not p.deleted
            ]
            await _all(_delete(api, name, now) for name in terminating)

    async def _kill(self, up: Process, stack: ExitStack) -> None:
        while self._killing:
            await self._until(self._has_leader)
            until = self.ledger.events + self._rng.randint(*self._between)
            await self._until(partial(self._reached, until))
            crew = next((c for c in self._crews if c.child.pid == self._leader), None)
            if crew is None or not self._killing:
                continue
            self._crews.remove(crew)
            crew.stop(signal.SIGKILL)
            self.figures.kills += 1
            self._start(up, stack)

    def _reached(self, events: int) -> bool:
        return self.ledger.events >= events

    def _has_leader(self) -> bool:
        return any(crew.child.pid == self._leader for crew in self._crews)

    def _start(self, up: Process, stack: ExitStack) -> None:
        crew = stack.enter_context(controllers(up.kubeconfig, *TIMES, "--log-level", "error"))
        self._crews.append(crew)

    async def _until(self, done: Callable[[], bool]) -> None:
        while not done() and not self.ledger.problems:
            seen = self.ledger.events
            try:
                async with asyncio.timeout(PATIENCE):
                    while self.ledger.events == seen and not done():
                        await self._changed(self._changes)
            except TimeoutError as error:
                exits = {crew.child.pid: crew.child.poll() for crew in self._crews}
                error.add_note(f"{self.figures}, leader {self._leader}, exit codes {exits}")
                raise

    def _notify(self) -> None:
        self._changes += 1
        self._changed_event.set()

    async def _changed(self, since: int) -> None:
        """Wait until there are more changes; several tasks may wait."""
        while self._changes == since:
            self._changed_event.clear()
            await self._changed_event.wait()


def _from_start() -> WatchOptions:
    return WatchOptions(timeout_seconds=24 * 3600)


def _finished(rule: Obj, number: int) -> bool:
    """Report whether the status of a rule is complete."""
    conditions = {
        entry["type"]: entry for entry in (rule.get("status") or {}).get("conditions") or ()
    }
    count = str(conditions.get("sully.dev/Evicted", {}).get("message", ""))
    running = conditions.get("EvictionInProgress", {}).get("status")
    return running == "False" and count.startswith(f"{number} ")


async def _delete(api: HttpTransport, name: str, options: DeleteOptions) -> None:
    try:
        await api.delete(fleet.PODS, Key(fleet.NAMESPACE, name), options)
    except (NotFound, Conflict):
        return


async def _all(calls: Iterable[Awaitable[Any]]) -> None:
    """Wait for all, some at a time."""
    slots = asyncio.Semaphore(CONCURRENT)

    async def one(call: Awaitable[Any]) -> None:
        async with slots:
            await call

    async with asyncio.TaskGroup() as tasks:
        for call in calls:
            tasks.create_task(one(call))

"""Holds a load for a long time, and checks that the control plane stays as fast and as small.

    python bench/held.py [--minutes 30] [--store etcd] [--nodes 5000] [--pods 20000]
                         [--watchers 200] [--changes 20] [--plot docs/pictures/held-sqlite.svg]

First nodes with devices are created, and pods with a claim each, which the scheduler binds. Then
changes are made at a fixed rate: pods are labeled, slices get and lose a taint, rules are created
and deleted, and pods are deleted and created again. Single objects are read at the same rate.
Watchers follow pods, slices, rules and claims, and each must get every event. Every ten seconds
the response times, the delay of watches and the memory are noted. In the end the server restarts
on its data. `build/bench/held-STORE.json` has all of it.

Events and records of rules are kept for five minutes only. By default they are kept for an hour and
for 30 days, so the store would grow all the time, and with it the memory.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import shapes
import uvloop
from devices import bind, set_up
from harness import Connection, Event, Server, Watch
from plots import Panel, picture
from recording import FOLDER, machine
from shapes import Shape

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
from etcds import Etcd

SAMPLE_SECONDS = 10.0
WARM_UP = 0.2
"""The share of the samples that memory is not compared with."""
GROWTH = 1.05
"""How much more memory the last samples may have than those after the warm-up."""
P99_SECONDS, RESTART_SECONDS = 1.0, 10.0
CONNECTIONS = 8
MERGE = "application/merge-patch+json"
WATCHED = (
    shapes.PODS,
    shapes.PODS,
    f"{shapes.RESOURCE}/resourceslices",
    shapes.RULES,
    f"{shapes.RESOURCE}/namespaces/default/resourceclaims",
)
"""What watchers follow, in turn."""
RETENTION = ("--event-ttl", "5m", "--history-retention", "5m")


@dataclass(slots=True)
class Sample:
    """Ten seconds."""

    seconds: float
    memory: float
    cpu: float
    """Of the server, as a share of one core."""
    requests: int
    median: float
    p99: float
    longest: float
    watch_p99: float
    """From sending a change of a pod until the last watcher has its event."""
    events: int


@dataclass(slots=True)
class Result:
    """A run."""

    store: str
    options: dict[str, Any]
    machine: dict[str, Any] = field(default_factory=machine)
    loaded_seconds: float = 0.0
    restart_seconds: float = 0.0
    p99: float = 0.0
    samples: list[Sample] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Follower(Watch):
    """A watcher that notices its end."""

    ended = False
    closing = False

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - of the base
        """Note an end that nobody asked for."""
        self.ended = not self.closing


class Watchers:
    """All watchers, and what they got."""

    def __init__(self) -> None:
        self.followers: list[Follower] = []
        self.counts: list[Counter[str]] = []
        self.paths: list[str] = []
        self.delays: list[float] = []
        self._waiting: dict[str, tuple[float, int]] = {}
        self._pods = 0

    async def open(self, server: Server, number: int) -> None:
        """Start so many."""
        for path in itertools.islice(itertools.cycle(WATCHED), number):
            count: Counter[str] = Counter()
            of_pods = path == shapes.PODS
            self._pods += of_pods

            def take(event: Event, count: Counter[str] = count, of_pods: bool = of_pods) -> None:
                if event.type == "BOOKMARK":
                    return
                count["events"] += 1
                if of_pods:
                    self._seen(event.object.metadata.name)

            # Otherwise the server ends a watch after half an hour.
            follower = await Follower.open(server, path, take, "&timeoutSeconds=86400")
            self.followers.append(follower)
            self.counts.append(count)
            self.paths.append(path)

    def sent(self, pod: str) -> None:
        """Note that a change of a pod is sent."""
        self._waiting[pod] = (time.perf_counter(), self._pods)

    def _seen(self, pod: str) -> None:
        if pod not in self._waiting:
            return
        began, left = self._waiting[pod]
        if left > 1:
            self._waiting[pod] = (began, left - 1)
        else:
            del self._waiting[pod]
            self.delays.append(time.perf_counter() - began)

    @property
    def total(self) -> int:
        """Return how many events all of them got."""
        return sum(count["events"] for count in self.counts)

    async def problems(self) -> list[str]:
        """Wait until no event comes any more; return which watchers ended or missed some."""
        before = -1
        while before != self.total:
            before = self.total
            await asyncio.sleep(3.0)
        problems = [
            f"the watch {number} of {self.paths[number]} was ended"
            for number, follower in enumerate(self.followers)
            if follower.ended
        ]
        for path in sorted(set(self.paths)):
            counts = {
                c["events"] for c, of in zip(self.counts, self.paths, strict=True) if of == path
            }
            if len(counts) > 1:
                problems.append(f"watchers of {path} got {sorted(counts)} events")
        return problems

    def close(self) -> None:
        """End all."""
        for follower in self.followers:
            follower.closing = True
            follower.close()


class Load:
    """The changes and reads, at a fixed rate."""

    def __init__(self, server: Server, options: argparse.Namespace, watchers: Watchers) -> None:
        self.times: list[float] = []
        self.problems: list[str] = []
        self._server = server
        self._nodes, self._devices = options.nodes, options.devices
        self._pods = [f"pod-{number:04d}" for number in range(options.pods)]
        self._rate = options.changes
        self._watchers = watchers
        self._rng = random.Random(1)
        self._numbers = itertools.count()
        self._queue: asyncio.Queue[tuple[bool, float]] = asyncio.Queue()
        """Whether to change something, and when that is due."""
        self._slices: dict[str, bool] = {}

    async def run(self) -> None:
        """Send requests until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(CONNECTIONS):
                tasks.create_task(self._work())
            began = time.perf_counter()
            for number in itertools.count(1):
                # By the clock: a slow server gets no fewer requests, and they count from then.
                now = time.perf_counter()
                self._queue.put_nowait((True, now))
                self._queue.put_nowait((False, now))
                await asyncio.sleep(began + number / self._rate - time.perf_counter())

    async def _work(self) -> None:
        async with self._server.connect() as connection:
            while True:
                changes, due = await self._queue.get()
                if changes:
                    await self._change(connection, due)
                else:
                    await self._call(connection, "GET", f"{shapes.PODS}/{self._any()}", due=due)

    def _any(self) -> str:
        return self._rng.choice(self._pods)

    async def _change(self, connection: Connection, due: float) -> None:
        chosen = self._rng.random()
        if chosen < 0.6:
            await self._label(connection, due)
        elif chosen < 0.8:
            await self._taint_slice(connection, due)
        elif chosen < 0.9:
            await self._rule(connection, due)
        else:
            await self._replace(connection, due)

    async def _label(self, connection: Connection, due: float) -> None:
        pod = self._any()
        labels = {"metadata": {"labels": {"changed": str(next(self._numbers))}}}
        self._watchers.sent(pod)
        await self._call(connection, "PATCH", f"{shapes.PODS}/{pod}", labels, due=due)

    async def _taint_slice(self, connection: Connection, due: float) -> None:
        node = f"node-{self._rng.randrange(self._nodes):04d}"
        made = shapes.slice_of(node, self._devices)
        tainted = self._slices[node] = not self._slices.get(node, False)
        made["spec"]["pool"]["generation"] = 1
        if tainted:
            taint = {"key": "example.com/hot", "effect": "NoSchedule"}
            made["spec"]["devices"][0]["taints"] = [taint]
        path = f"{shapes.RESOURCE}/resourceslices/{made['metadata']['name']}"
        await self._call(connection, "PUT", path, made, due=due)

    async def _rule(self, connection: Connection, due: float) -> None:
        number = next(self._numbers)
        node = f"node-{self._rng.randrange(self._nodes):04d}"
        rule = shapes.rule(f"held-{number}", {"pool": node}, "NoSchedule")
        await self._call(connection, "POST", shapes.RULES, rule, due=due)
        await self._call(connection, "DELETE", f"{shapes.RULES}/held-{number}")

    async def _replace(self, connection: Connection, due: float) -> None:
        """Delete a pod, and create another one."""
        pod = self._pods.pop(self._rng.randrange(len(self._pods)))
        path = f"{shapes.PODS}/{pod}?gracePeriodSeconds=0"
        await self._call(connection, "DELETE", path, due=due)
        name = f"pod-new-{next(self._numbers)}"
        await self._call(connection, "POST", shapes.PODS, shapes.pod(name))
        self._pods.append(name)

    async def _call(
        self, connection: Connection, method: str, path: str, body: Any = None, *, due: float = 0.0
    ) -> None:
        """Send a request; its time counts from when it is due, otherwise from now."""
        data = b"" if body is None else json.dumps(body).encode()
        media = MERGE if method == "PATCH" else "application/json"
        began = due or time.perf_counter()
        code, answer = await connection.call(method, path, data, media)
        self.times.append(time.perf_counter() - began)
        if code not in (200, 201):
            self.problems.append(f"{method} {path}: {code} {answer.decode()[:200]}")


def _quantile(values: list[float], share: float) -> float:
    ordered = sorted(values) or [0.0]
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


async def hold(server: Server, options: argparse.Namespace, result: Result) -> None:
    """Hold the load, and note what it is like."""
    watchers = Watchers()
    await watchers.open(server, options.watchers)
    load = Load(server, options, watchers)
    running = asyncio.create_task(load.run())
    began = last = time.perf_counter()
    every: list[float] = []
    while last - began < options.minutes * 60 and not running.done():
        cpu, events = server.cpu(), watchers.total
        await asyncio.sleep(SAMPLE_SECONDS)
        now = time.perf_counter()
        times, load.times = load.times, []
        delays, watchers.delays = watchers.delays, []
        every += times
        sample = Sample(
            seconds=now - began,
            memory=server.memory(),
            cpu=(server.cpu() - cpu) / (now - last),
            requests=len(times),
            median=_quantile(times, 0.5),
            p99=_quantile(times, 0.99),
            longest=max(times, default=0.0),
            watch_p99=_quantile(delays, 0.99),
            events=watchers.total - events,
        )
        last = now
        result.samples.append(sample)
        print(
            f"{sample.seconds:6.0f} s  {sample.memory:6.0f} MiB  {sample.cpu * 100:4.0f} %"
            f"  {sample.requests:5} requests  median {sample.median * 1000:6.1f}"
            f"  p99 {sample.p99 * 1000:7.1f} ms  watch p99 {sample.watch_p99 * 1000:7.1f} ms"
            f"  {sample.events} events",
            flush=True,
        )
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    if not running.cancelled() and (error := running.exception()) is not None:
        result.problems.append(f"the load ended: {error!r}")
    result.p99 = _quantile(every, 0.99)
    result.problems += load.problems[:10] + await watchers.problems()
    watchers.close()


def judge(result: Result) -> list[str]:
    """Return what a run shows that must not be."""
    problems = list(result.problems)
    if result.p99 > P99_SECONDS:
        problems.append(f"p99 is {result.p99:.2f} s")
    if result.restart_seconds > RESTART_SECONDS:
        problems.append(f"the restart took {result.restart_seconds:.1f} s")
    warm = result.samples[int(len(result.samples) * WARM_UP) :]
    part = max(1, len(warm) // 5)
    first = _quantile([sample.memory for sample in warm[:part]], 0.5)
    last = _quantile([sample.memory for sample in warm[-part:]], 0.5)
    if last > first * GROWTH:
        problems.append(f"memory grew from {first:.0f} to {last:.0f} MiB")
    return problems


async def run(store: str, options: argparse.Namespace) -> Result:
    """Load a control plane, hold the load, restart."""
    shape = Shape(options.nodes, options.devices, options.pods)
    result = Result(options.store, {k: str(v) for k, v in vars(options).items()})
    server = Server(store, *RETENTION)
    try:
        began = time.perf_counter()
        await set_up(server, shape)
        await bind(server, "pod-", list(shapes.load(shape)))
        result.loaded_seconds = time.perf_counter() - began
        print(f"loaded in {result.loaded_seconds:.0f} s, {server.memory():.0f} MiB", flush=True)
        await hold(server, options, result)
        result.restart_seconds = server.restart()
        print(f"restarted in {result.restart_seconds:.1f} s, p99 {result.p99 * 1000:.0f} ms")
    finally:
        server.stop()
    result.problems = judge(result)
    return result


def panels(samples: list[Sample]) -> list[Panel]:
    """Return what is drawn of a run: response times, the delay of watches, memory."""
    minutes = [sample.seconds / 60 for sample in samples]
    return [
        Panel("response time, p99 (ms)", minutes, [s.p99 * 1000 for s in samples], "min"),
        Panel(
            "change to the last watcher, p99 (ms)",
            minutes,
            [s.watch_p99 * 1000 for s in samples],
            "min",
        ),
        Panel("memory of the server (MiB)", minutes, [s.memory for s in samples], "min"),
    ]


def main() -> int:
    """Run it, and write what it was like."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--store", choices=("sqlite", "etcd"), default="sqlite")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--devices", type=int, default=10, help="per node")
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--watchers", type=int, default=200)
    parser.add_argument("--changes", type=float, default=20.0, help="per second")
    parser.add_argument("--plot", type=Path, help="file for a picture, as SVG")
    options = parser.parse_args()
    with ExitStack() as stack:
        store = "sqlite"
        if options.store == "etcd":
            # On the disk, where SQLite is too.
            store = str(stack.enter_context(Etcd(size=3, folder=None)).address)
        result = uvloop.run(run(store, options))
    FOLDER.mkdir(parents=True, exist_ok=True)
    written = FOLDER / f"held-{options.store}.json"
    written.write_text(json.dumps(asdict(result), indent=1) + "\n")
    print(f"recorded in {written}")
    if options.plot is not None:
        size = f"{options.nodes} nodes, {options.pods} pods, {options.watchers} watchers"
        title = f"{size}, {options.changes:g} changes per second, {options.store}"
        options.plot.write_text(picture(title, panels(result.samples)))
    for problem in result.problems:
        print(f"PROBLEM {problem}")
    return 1 if result.problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""Measures devices end to end: pods scheduled, pods evicted, slices published, rules merged.

    python bench/devices.py [--only NAME]... [--store sqlite|memory] [--list]

Each benchmark starts a control plane of its own, everything in one process, and loads it over HTTPS
from this one with 16 connections. The shapes are those of the baseline (docs/performance.md), and
so is the clock: from sending the first create until a watch has shown the last pod bound, or
marked for deletion. shapes.py has the objects, merging.py what is measured without a server.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

import merging
import recording
import shapes
import uvloop
from harness import Event, Server, Watch, spread
from shapes import Sent, Shape

CONNECTIONS = 16
PATIENCE = 300.0
"""Seconds without progress after which a benchmark gives up."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the result."""

    name: str
    value: float
    unit: str
    reference: float | None = None
    more: bool = True  # whether more is better
    note: str = ""
    cpu: float = 0.0  # what one of them costs the server, in milliseconds; 0 is not measured

    def line(self) -> str:
        """Write it for people; a ratio over 1 is better than Kubernetes."""
        ratio = reference = ""
        if self.reference is not None and self.value:
            times = self.value / self.reference if self.more else self.reference / self.value
            reference, ratio = f"{self.reference:g}", f"{times:.1f}x"
        shown = f"{self.value:.0f}" if self.value >= 100 else f"{self.value:.2f}"
        return (
            f"{self.name:22}{shown:>10} {self.unit:<7}{reference:>10}{ratio:>9}  {self.note}"
        ).rstrip()


class Tally:
    """When something was first seen of each pod, and when the last one is in."""

    def __init__(self, prefix: str, want: int, counts: Callable[[Event], bool]) -> None:
        self._prefix, self._want, self._counts = prefix, want, counts
        self.seen: dict[str, float] = {}
        self._done = asyncio.Event()

    def take(self, event: Event) -> None:
        """Look at an event of the watch."""
        name = event.object.metadata.name
        if name.startswith(self._prefix) and name not in self.seen and self._counts(event):
            self.seen[name] = time.perf_counter()
            if len(self.seen) == self._want:
                self._done.set()

    async def last(self) -> float:
        """Wait for all of them; return when the last one was seen."""
        known = -1
        while not self._done.is_set():
            if len(self.seen) == known:
                raise RuntimeError(f"only {known} of {self._want} after {PATIENCE:.0f} s")
            known = len(self.seen)
            try:
                await asyncio.wait_for(self._done.wait(), PATIENCE)
            except TimeoutError:
                continue
        return max(self.seen.values())


def is_bound(event: Event) -> bool:
    """Report whether a pod has its node."""
    return bool(event.object.spec.node_name)


def is_marked(event: Event) -> bool:
    """Report whether a pod is on its way out."""
    return bool(event.object.metadata.deletion_timestamp)


async def bind(server: Server, prefix: str, pods: list[Sent]) -> tuple[float, float, Tally]:
    """Create pods and wait until all are bound; return the times of begin and end."""
    tally = Tally(prefix, len(pods), is_bound)
    watch = await Watch.open(server, shapes.PODS, tally.take)
    began = time.perf_counter()
    await spread(server, CONNECTIONS, pods)
    ended = await tally.last()
    watch.close()
    return began, ended, tally


@dataclass(frozen=True, slots=True)
class EvictionTimes:
    """How pods were evicted, in seconds from when the rule was sent."""

    first: float
    last: float
    cpu: float
    """What the server used for all of them."""


async def measure_evictions(server: Server, shape: Shape) -> EvictionTimes:
    """Taint all devices of pods that are bound, and wait until all are marked for deletion."""
    await quiet(server)
    tally = Tally("pod-", shape.pods, is_marked)
    watch = await Watch.open(server, shapes.PODS, tally.take)
    rule = shapes.rule("evict", {"driver": shapes.DRIVER}, "NoExecute")
    async with server.connect() as connection:
        cpu, began = server.cpu(), time.perf_counter()
        await connection.create(shapes.RULES, rule)
        ended = await tally.last()
    used = server.cpu() - cpu
    watch.close()
    return EvictionTimes(min(tally.seen.values()) - began, ended - began, used)


async def set_up(server: Server, shape: Shape) -> None:
    """Create what the pods need, and wait until it is quiet."""
    await spread(server, CONNECTIONS, shapes.world(shape))
    filling = list(shapes.fillers(shape))
    if filling:
        await bind(server, "filler-", filling)
    await quiet(server)


async def quiet(server: Server) -> None:
    """Wait until the server has nothing to do any more."""
    while True:
        before = server.cpu()
        await asyncio.sleep(0.3)
        if server.cpu() - before <= 0.03:
            return


async def schedule(name: str, store: str, shape: Shape, reference: float | None) -> list[Figure]:
    """Measure how many pods a second find their devices and node."""
    server = Server(store)
    try:
        await set_up(server, shape)
        cpu = server.cpu()
        began, ended, _ = await bind(server, "pod-", list(shapes.load(shape)))
        used = (server.cpu() - cpu) / shape.pods * 1000
        note = f"server CPU {used:.2f} ms/pod, {ended - began:.2f} s, {server.memory():.0f} MiB"
        return [
            Figure(name, shape.pods / (ended - began), "pods/s", reference, note=note, cpu=used)
        ]
    finally:
        server.stop()


async def evict(name: str, store: str, shape: Shape, reference: float) -> list[Figure]:
    """Measure from sending a rule until the last pod is marked for deletion."""
    server = Server(store)
    try:
        await set_up(server, shape)
        await bind(server, "pod-", list(shapes.load(shape)))
        left = await measure_evictions(server, shape)
        used = left.cpu / shape.pods * 1000
        note = f"server CPU {used:.2f} ms/pod, first after {left.first * 1000:.0f} ms"
        return [Figure(name, left.last, "s", reference, more=False, note=note, cpu=used)]
    finally:
        server.stop()


async def rate_limited(name: str, store: str, reference: float) -> list[Figure]:
    """Measure how long a pod takes to be bound when the server is not busy."""
    server = Server(store)
    try:
        await set_up(server, Shape(100, 8, 0))
        tally = Tally("pod-", 50, is_bound)
        watch = await Watch.open(server, shapes.PODS, tally.take)
        sent: dict[str, float] = {}
        async with server.connect() as connection:
            for number in range(50):
                sent[f"pod-{number:04d}"] = time.perf_counter()
                await connection.create(shapes.PODS, shapes.pod(f"pod-{number:04d}"))
                await asyncio.sleep(0.1)
        await tally.last()
        watch.close()
        took = sorted((tally.seen[pod] - began) * 1000 for pod, began in sent.items())
        note = f"longest {took[-1]:.1f} ms; 10 pods/s"
        return [Figure(name, took[len(took) // 2], "ms", reference, more=False, note=note)]
    finally:
        server.stop()


async def publish(name: str, store: str, slices: int, devices: int) -> list[Figure]:
    """Measure how fast slices are taken, and what they weigh."""
    server = Server(store)
    try:
        await quiet(server)
        before, cpu = server.memory(), server.cpu()
        sent: Iterable[Sent] = (
            (f"{shapes.RESOURCE}/resourceslices", shapes.slice_of(f"node-{number:04d}", devices))
            for number in range(slices)
        )
        began = time.perf_counter()
        await spread(server, CONNECTIONS, sent)
        took = time.perf_counter() - began
        used = (server.cpu() - cpu) / slices * 1000
        await quiet(server)
        note = f"{slices} slices of {devices} devices, server CPU {used:.2f} ms each"
        total = f"{before:.0f} MiB before, {slices * devices} devices"
        return [
            Figure(f"{name}", slices / took, "/s", 430 if devices == 8 else None, note=note),
            Figure(f"{name} memory", server.memory(), "MiB", note=total),
        ]
    finally:
        server.stop()


Benchmark = Callable[[str, str], Awaitable[list[Figure]]]


def _schedule(shape: Shape, reference: float | None = None) -> Benchmark:
    return lambda name, store: schedule(name, store, shape, reference)


async def _merge(name: str, _: str) -> list[Figure]:
    return [Figure(f"{name} {case}", *rest) for case, *rest in merging.measure()]


BENCHMARKS: dict[str, Benchmark] = {
    "100x8": _schedule(Shape(100, 8, 500), 63.9),
    "500x10": _schedule(Shape(500, 10, 1000), 64.7),
    "1000x8": _schedule(Shape(1000, 8, 1000), 36.5),
    "5000x8": _schedule(Shape(5000, 8, 1000)),
    "half-full": _schedule(Shape(200, 10, 1000, half_full=True), 49.3),
    "selectors": _schedule(Shape(500, 10, 1000, selector=True), 25.6),
    "match": _schedule(Shape(200, 8, 500, match=True)),
    "1000-rules": _schedule(Shape(100, 8, 500, rules=1000)),
    "rate_limited": lambda name, store: rate_limited(name, store, 40.2),
    "evict": lambda name, store: evict(name, store, Shape(1000, 8, 1000), 6.35),
    "publish": lambda name, store: publish(name, store, 5000, 8),
    "100k": lambda name, store: publish(name, store, 1563, 64),
    "merge": _merge,
}


async def measure(names: Iterable[str], store: str) -> None:
    """Run benchmarks and print a table as it grows."""
    figures: dict[str, float] = {}
    print(f"store {store}")
    print(f"{'benchmark':22}{'Sully':>10} {'':7}{'reference':>10}{'ratio':>9}", flush=True)
    for name in names:
        print(f"… {name}", file=sys.stderr, flush=True)
        for figure in await BENCHMARKS[name](name, store):
            print(figure.line(), flush=True)
            figures[f"{figure.name} {figure.unit}"] = figure.value
            if figure.cpu:
                figures[f"{figure.name} CPU ms"] = figure.cpu
    print("\n".join(recording.record(f"devices-{store}", figures)))


def main() -> None:
    """Read the flags and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", default="sqlite", choices=("sqlite", "memory"))
    parser.add_argument("--only", action="append", choices=BENCHMARKS, metavar="NAME")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    options = parser.parse_args()
    if options.list:
        print("\n".join(BENCHMARKS))
        return
    uvloop.run(measure(options.only or BENCHMARKS, options.store))


if __name__ == "__main__":
    main()

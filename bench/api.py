"""Measures the API server: time to ready, memory, GET, LIST, CREATE, WATCH over TLS.

    python bench/api.py [--store sqlite|memory|etcd|etcd3] [--seconds 3]

The load comes from one process beside the server, on the same machine: its own share of the
processor is part of every figure. The shapes of the work are those of the baseline table in
docs/performance.md. `etcd` starts a member of its own on the same disk, `etcd3` three of them.
stores.py compares stores, and ways to reach one, in one run.
"""

import argparse
import asyncio
import itertools
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import recording
from harness import Connection, Server

sys.path.append(str(Path(__file__).parent.parent / "tools"))
from etcds import Etcd

Work = Callable[[Connection, int], Awaitable[None]]
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "", "labels": {"app": "bench"}},
    "spec": {
        "containers": [{"name": "c", "image": "example.com/none:1"}],
        "schedulerName": "nobody",
        "automountServiceAccountToken": False,
    },
}
RULE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "bench"},
    "spec": {
        "deviceSelector": {"driver": "gpu.example.com"},
        "taint": {"key": "example.com/bench", "effect": "NoSchedule"},
    },
}


def quantiles(times: list[float]) -> str:
    """Show the median and the 99th percentile in milliseconds."""
    ordered = sorted(times)
    return (
        f"p50 {statistics.median(ordered) * 1000:6.2f} ms"
        f"  p99 {ordered[int(len(ordered) * 0.99) - 1] * 1000:7.2f} ms"
    )


@dataclass(frozen=True, slots=True)
class Load:
    """How fast some requests went."""

    times: list[float]
    took: float
    used: float
    """Processor time of the server."""

    @property
    def rate(self) -> float:
        """Return requests per second."""
        return len(self.times) / self.took

    def __str__(self) -> str:
        """Write it for people."""
        return (
            f"{self.rate:9.0f}/s  {quantiles(self.times)}"
            f"  server CPU {self.used / len(self.times) * 1e6:6.0f} us/request"
        )


async def load(server: Server, clients: int, seconds: float, work: Work) -> Load:
    """Run `work(connection, number)` on many connections and return how fast it went."""
    times: list[float] = []
    counter = iter(range(10**9))
    end = time.perf_counter() + seconds

    async def one() -> None:
        async with server.connect() as connection:
            while time.perf_counter() < end:
                began = time.perf_counter()
                await work(connection, next(counter))
                times.append(time.perf_counter() - began)

    cpu, began = server.cpu(), time.perf_counter()
    await asyncio.gather(*(one() for _ in range(clients)))
    took = time.perf_counter() - began
    return Load(times, took, server.cpu() - cpu)


class Watching(asyncio.Protocol):
    """A watcher that does nothing but note when an event arrives."""

    def __init__(self, path: str, seen: list[float], count: int, done: asyncio.Event) -> None:
        self.path, self.seen, self.count, self.done = path, seen, count, done
        self.started = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        transport.write(f"GET {self.path} HTTP/1.1\r\nhost: x\r\nuser-agent: b\r\n\r\n".encode())

    def data_received(self, data: bytes) -> None:
        if not self.started.done():
            self.started.set_result(None)
        if b'"type"' in data:
            self.seen.append(time.perf_counter())
            if len(self.seen) >= self.count:
                self.done.set()


async def fan_out(server: Server, watchers: int, writes: int) -> tuple[list[float], list[float]]:
    """Measure from sending a write, and from its answer, until the last watcher has its event."""
    path = "/api/v1/namespaces/default/configmaps"
    query = "watch=1&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
    seen: list[float] = []
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    open_watches = []
    for _ in range(watchers):
        _transport, watching = await loop.create_connection(
            lambda: Watching(f"{path}?{query}", seen, watchers, done),
            server.host,
            server.port,
            ssl=server.context,
            server_hostname="127.0.0.1",
        )
        await watching.started
        open_watches.append(watching)
    spread, after = [], []
    async with server.connect() as writer:
        for number in range(writes):
            seen.clear()
            done.clear()
            body = config_map(f"watched-{watchers}-{number}")
            began = time.perf_counter()
            await writer.call("POST", path, body)
            answered = time.perf_counter()
            await done.wait()
            spread.append(max(seen) - began)
            after.append(max(max(seen) - answered, 0.0))
            await asyncio.sleep(0.01)
    for watching in open_watches:
        watching.transport.close()
    return spread, after


def config_map(name: str) -> bytes:
    """Return a ConfigMap of about one KiB."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name},
            "data": {"key": "x" * 1024},
        }
    ).encode()


async def one_rule(server: Server) -> None:
    """Create the rule that `get` reads."""
    async with server.connect() as setup:
        await setup.create("/apis/resource.k8s.io/v1/devicetaintrules", RULE)


async def thousand_pods(server: Server) -> None:
    """Create the pods that `list_pods` reads."""
    async with server.connect() as setup:
        for number in range(1000):
            pod = {**POD, "metadata": {**POD["metadata"], "name": f"p-{number:04d}"}}
            await setup.create("/api/v1/namespaces/default/pods", pod)


async def get(connection: Connection, _: int) -> None:
    """Read the rule."""
    code, answer = await connection.call("GET", "/apis/resource.k8s.io/v1/devicetaintrules/bench")
    assert code == 200, answer


async def create(connection: Connection, number: int) -> None:
    """Create a ConfigMap like no other."""
    body = config_map(f"c-{number}-{time.perf_counter_ns()}")
    code, answer = await connection.call("POST", "/api/v1/namespaces/default/configmaps", body)
    assert code == 201, answer


async def list_pods(connection: Connection, _: int) -> None:
    """Read all pods of a namespace."""
    code, answer = await connection.call("GET", "/api/v1/namespaces/default/pods")
    assert code == 200, answer


async def measure(store: str, places: Iterator[str], seconds: float) -> None:
    """Run everything and print a table."""
    starts = []
    for _ in range(3):
        probe = Server(next(places))
        starts.append(probe.ready)
        probe.stop()
    server = Server(next(places))
    await asyncio.sleep(1)
    print(f"store {store}")
    print(f"process start -> ready   {statistics.median(starts):.2f} s   (three runs)")
    print(f"idle memory              {server.memory():.0f} MiB")
    figures = {"ready s": statistics.median(starts), "idle MiB": server.memory()}
    await one_rule(server)
    figures |= await _loads(server, seconds, "GET rule", get)
    figures |= await _loads(server, seconds, "CREATE ConfigMap", create)
    await thousand_pods(server)
    figures |= await _loads(server, seconds, "LIST 1000 pods", list_pods)
    for watchers in (1, 50, 200):
        spread, after = await fan_out(server, watchers, 100)
        print(
            f"{watchers:4d} watchers: write sent -> last event  {quantiles(spread)}"
            f"  (after the answer {quantiles(after)})"
        )
        figures[f"last of {watchers} watchers, median ms"] = statistics.median(spread) * 1000
    print(f"memory afterwards        {server.memory():.0f} MiB")
    server.stop()
    print("\n".join(recording.record(f"api-{store}", figures)))


async def _loads(server: Server, seconds: float, name: str, work: Work) -> dict[str, float]:
    """Run requests of one client and of 16, print what they took, and return the figures."""
    figures: dict[str, float] = {}
    for clients in (1, 16):
        print(f"{f'{name}, {clients:2d} clients':30}", end="")
        result = await load(server, clients, seconds, work)
        print(result, flush=True)
        shown = f"{name}, {clients} clients"
        figures[f"{shown}, per second"] = result.rate
        figures[f"{shown}, CPU us"] = result.used / len(result.times) * 1e6
    return figures


def main() -> None:
    """Read the flags and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    stores = ("sqlite", "memory", "etcd", "etcd3")
    parser.add_argument("--store", default="sqlite", choices=stores)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    import uvloop

    with ExitStack() as stack:
        places = itertools.repeat(options.store)
        if options.store.startswith("etcd"):
            etcd = stack.enter_context(Etcd(size=3 if options.store == "etcd3" else 1, folder=None))
            # A prefix for each: every server here has certificates of its own.
            places = (f"{etcd.address}-{number}" for number in itertools.count())
        uvloop.run(measure(options.store, places, options.seconds))


if __name__ == "__main__":
    main()

"""Compares, in one run: SQLite with etcd, and controllers in the server with those beside it.

    python bench/stores.py [--seconds 1] [--rounds 1] [--only NAME]... [--column NAME]...

Every figure is measured for each column by the same code, one after the other, so that ratios mean
something though the figures themselves depend on the machine and its load. The shapes are those of
api.py, devices.py and placing.py, smaller. `etcd` is one member on the same disk, `etcd3` three of
them; with `beside`, SQLite is underneath and `sully controllers` is a process of its own that
reaches the server over HTTPS. The last table has single calls of the client's two transports. Of
several rounds the best of each figure counts: what else runs on a machine only ever takes away.
CPU is the processor time of Sully's own processes, which depends on that least.
"""

import argparse
import asyncio
import itertools
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import devices
import placing
import shapes
import uvloop
from harness import Server
from shapes import Shape

import api
from etcds import Etcd  # found by api.py
from sully.client.direct import DirectTransport
from sully.client.http.transport import HttpTransport
from sully.client.kubeconfig.kubeconfig import find_access
from sully.client.transport import Key, Kind, Transport
from sully.controller_setup import CONTROLLERS
from sully.runtime.log import configure as configure_log
from sully.server.requests import User
from sully.testing.cluster import in_process
from sully.testing.remote import CommandProcess, controllers

SHAPE = Shape(125, 8, 1000)
CLUSTERS = 300
SINGLE_CALLS = 500
NAMESPACES: Kind[dict[str, Any]] = Kind("", "v1", "namespaces", "Namespace", dict, namespaced=False)
MAPS: Kind[dict[str, Any]] = Kind("", "v1", "configmaps", "ConfigMap", dict)

Figures = dict[str, float]
"""By name; names that end in `/s` are better when they are higher, all others when lower."""


class Beside(Server):
    """A server whose controllers are another process."""

    def __init__(self, crew: CommandProcess, server: Server) -> None:
        self.__dict__.update(server.__dict__)
        self._crew = crew

    def cpu(self) -> float:
        """Return the processor time of both."""
        fields = Path(f"/proc/{self._crew.child.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return super().cpu() + (int(fields[11]) + int(fields[12])) / 100


class Column:
    """One way to run a control plane."""

    def __init__(self, name: str, stack: ExitStack) -> None:
        self._name = name
        self._etcd: Etcd | None = None
        if name.startswith("etcd"):
            # On the disk, where SQLite is too.
            self._etcd = stack.enter_context(Etcd(size=3 if name == "etcd3" else 1, folder=None))
        self._numbers = itertools.count()

    @contextmanager
    def server(self) -> Iterator[Server]:
        """Run a fresh one."""
        with ExitStack() as stack:
            # A prefix for each: every server here has certificates of its own.
            store = f"{self._etcd.address}-{next(self._numbers)}" if self._etcd else "sqlite"
            server = Server(store, *(["--disable-controllers"] if self._name == "beside" else []))
            stack.callback(server.stop)
            if self._name == "beside":
                config = Path(server.folder.name) / "kubeconfig"
                everything = ("--evictor", "sully", "--only", ",".join(CONTROLLERS))
                crew = stack.enter_context(controllers(config, *everything))
                crew.wait_for("leading since")
                server = Beside(crew, server)
            yield server


async def requests(server: Server, seconds: float) -> Figures:
    """Measure single requests."""
    await api.one_rule(server)
    figures: Figures = {}
    for clients, shown in ((1, "1 client"), (16, "16 clients")):
        for what, work in (("GET", api.get), ("CREATE of 1 KiB", api.create)):
            done = await api.load(server, clients, seconds, work)
            figures[f"{what}, {shown}, /s"] = done.rate
            if clients > 1:
                figures[f"{what}, {shown}, CPU us"] = done.used / len(done.times) * 1e6
    await api.thousand_pods(server)
    listed = await api.load(server, 1, seconds, api.list_pods)
    figures["LIST of 1000 pods, ms"] = statistics.median(listed.times) * 1000
    spread, _ = await api.fan_out(server, 50, 50)
    figures["write to the last of 50 watchers, ms"] = statistics.median(spread) * 1000
    return figures


async def pods(server: Server, _: float) -> Figures:
    """Measure scheduling and eviction of pods."""
    await devices.set_up(server, SHAPE)
    busy = server.cpu()
    began, ended, _tally = await devices.bind(server, "pod-", list(shapes.load(SHAPE)))
    binding = server.cpu() - busy
    left = await devices.measure_evictions(server, SHAPE)
    return {
        f"{SHAPE.pods} pods scheduled, pods/s": SHAPE.pods / (ended - began),
        "one pod scheduled, CPU ms": binding / SHAPE.pods * 1000,
        f"{SHAPE.pods} pods evicted, s": left.last,
        "one pod evicted, CPU ms": left.cpu / SHAPE.pods * 1000,
    }


async def placements(server: Server, _: float) -> Figures:
    """Measure decisions, and a cluster that becomes unreachable."""
    hub = placing.Hub(server)
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(hub.follow())
        written = await placing.written(hub, CLUSTERS, **placing.ALIKE)
        began = time.perf_counter()
        await hub.flip([3], "False")
        last = await hub.until(
            lambda: not any("c00003" in names for names in hub.decisions.values())
        )
        watching.cancel()
    return {
        f"100 placements over {CLUSTERS} clusters, s": written["all decisions written"],
        "a flip that moves all of them, s": last - began,
    }


Part = Callable[[Server, float], Awaitable[Figures]]
PARTS: dict[str, Part] = {"requests": requests, "pods": pods, "placements": placements}
COLUMNS = ("sqlite", "etcd", "etcd3", "beside")


async def transports() -> dict[str, Figures]:
    """Measure single calls in process and over HTTPS, to the same server in this process.

    Its store is in memory, so that nothing is measured but the way there and back.
    """
    figures: dict[str, Figures] = {}
    async with in_process() as plane:
        direct = DirectTransport(plane.direct(User("bench", ("system:masters",))))
        async with HttpTransport(find_access(str(plane.kubeconfig), "")) as http:
            for name, transport in (("in process", direct), ("HTTPS", http)):
                figures[name] = await _calls(name, transport)
    return figures


async def _calls(name: str, transport: Transport) -> Figures:
    place = name.replace(" ", "-").lower()
    await transport.create(NAMESPACES, {"metadata": {"name": place}})
    keys = [Key(place, f"{number:04}") for number in range(SINGLE_CALLS)]

    async def create(key: Key) -> None:
        metadata = {"namespace": key.namespace, "name": key.name}
        await transport.create(MAPS, {"metadata": metadata, "data": {"key": "x" * 1024}})

    async def get(key: Key) -> None:
        await transport.get(MAPS, key)

    figures: Figures = {}
    for what, call in (("create of 1 KiB, us", create), ("get, us", get)):
        began = time.perf_counter()
        for key in keys:
            await call(key)
        figures[what] = (time.perf_counter() - began) / len(keys) * 1e6
    began = time.perf_counter()
    for _ in range(20):
        await transport.list(MAPS, place)
    figures[f"list of {SINGLE_CALLS}, ms"] = (time.perf_counter() - began) / 20 * 1000
    return figures


def show(title: str, figures: dict[str, Figures]) -> None:
    """Print a table; ratios are to the first column, over 1 where a column is better."""
    first, *others = figures
    print(f"{title:42}" + "".join(f"{store:>18}" for store in figures))
    for name, base in figures[first].items():
        line = f"{name:42}{_number(base):>18}"
        for other in others:
            value = figures[other].get(name)
            if value is None:
                line += f"{'':18}"
                continue
            ratio = value / base if name.endswith("/s") else base / value
            line += f"{_number(value):>10} {ratio:6.2f}x"
        print(line.rstrip())
    print(flush=True)


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}"


def better(name: str, one: float, other: float) -> float:
    """Return the better of two figures."""
    return max(one, other) if name.endswith("/s") else min(one, other)


def measure(parts: list[str], columns: list[str], seconds: float, rounds: int) -> None:
    """Run the chosen parts and print their tables."""
    with ExitStack() as stack:
        made = {name: Column(name, stack) for name in columns}
        for part in parts:
            figures: dict[str, Figures] = {}
            for name, column in list(made.items()) * rounds:
                if (part, name) == ("requests", "beside"):
                    continue  # no controller takes part in it
                print(f"… {part}, {name}", file=sys.stderr, flush=True)
                with column.server() as server:
                    now = uvloop.run(PARTS[part](server, seconds))
                before = figures.get(name, now)
                figures[name] = {each: better(each, now[each], before[each]) for each in now}
            show(part, figures)


def main() -> None:
    """Read the flags and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="of load for each request")
    parser.add_argument("--rounds", type=int, default=1, help="of which the best counts")
    names = (*PARTS, "transports")
    parser.add_argument("--only", action="append", choices=names, metavar="NAME")
    parser.add_argument("--column", action="append", choices=COLUMNS, metavar="NAME")
    options = parser.parse_args()
    chosen = options.only or list(names)
    configure_log("console", level="error")
    began = time.perf_counter()
    parts = [name for name in chosen if name in PARTS]
    if parts:
        measure(parts, options.column or list(COLUMNS), options.seconds, options.rounds)
    if "transports" in chosen:
        show("transports", uvloop.run(transports()))
    print(f"took {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()

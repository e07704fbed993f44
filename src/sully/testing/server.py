"""A control plane in a thread of this process, for tests in any style.

with serve(nodes=2, devices_per_node=4) as server:
    ...server.kubeconfig, server.url
    server.advance(300)     # five minutes later

It has a socket and TLS, so every client works, and keeps its objects in memory.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sully.app import Config, RunningControlPlane, running
from sully.client.direct import DirectTransport
from sully.client.transport import Kind
from sully.controllers.simulatednodes.wiring import SimulatedNodeSettings
from sully.domain.simulated.fleet import Fleet, PodDelays
from sully.machinery.gates import parse_gates
from sully.testing.patience import PATIENCE
from sully.testing.running_clock import RunningClock

T = TypeVar("T")
Obj = dict[str, Any]
_NODES: Kind[Obj] = Kind("", "v1", "nodes", "Node", dict, namespaced=False)
_SLICES: Kind[Obj] = Kind(
    "resource.k8s.io", "v1", "resourceslices", "ResourceSlice", dict, namespaced=False
)


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    url: str
    kubeconfig: Path
    plane: RunningControlPlane
    _clock: RunningClock
    _loop: asyncio.AbstractEventLoop

    def advance(self, seconds: float) -> None:
        """Let this much time pass: taints expire, tolerations end, pods start and stop."""
        self.run(self._clock.advance(seconds))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop of the server, for `plane.direct()`; return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)


@contextmanager
def serve(
    *, nodes: int = 0, devices_per_node: int = 8, feature_gates: str = ""
) -> Iterator[Server]:
    """Run a server until the block ends; its simulated nodes and devices exist when it begins."""
    # pytest shows what was logged beside a failure, and a line per request would hide it.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="sully-") as folder:
        config = Config(
            data_dir=Path(folder),
            port=0,
            store="memory",
            audit_log="",
            gates=parse_gates(feature_gates),
            simulated_nodes=_simulated(nodes, devices_per_node),
        )
        started: Future[tuple[Server, asyncio.Event]] = Future()
        thread = threading.Thread(target=_run, args=(config, started), daemon=True, name="sully")
        thread.start()
        server, end = started.result(PATIENCE)
        try:
            yield server
        finally:
            server._loop.call_soon_threadsafe(end.set)
            thread.join(PATIENCE)


def _simulated(nodes: int, devices: int) -> SimulatedNodeSettings | None:
    if not nodes:
        return None
    return SimulatedNodeSettings(Fleet(nodes, devices), PodDelays(start=0, stop=0))


def _run(config: Config, started: Future[tuple[Server, asyncio.Event]]) -> None:
    try:
        asyncio.run(_main(config, started))
    except BaseException as error:
        if started.done():
            raise
        started.set_exception(error)


async def _main(config: Config, started: Future[tuple[Server, asyncio.Event]]) -> None:
    clock, end = RunningClock(), asyncio.Event()
    async with running(config, clock) as plane:
        if config.simulated_nodes is not None:
            await _published(plane, config.simulated_nodes.fleet, clock)
        loop = asyncio.get_running_loop()
        started.set_result((Server(plane.url, plane.kubeconfig, plane, clock, loop), end))
        await end.wait()


async def _published(plane: RunningControlPlane, fleet: Fleet, clock: RunningClock) -> None:
    """Wait for the nodes and, where they have some, their devices."""
    transport = DirectTransport(plane.direct())
    desired = {_NODES: fleet.nodes, _SLICES: fleet.nodes if fleet.devices else 0}
    for kind, count in desired.items():
        while len((await transport.list(kind)).items) < count:
            await clock.sleep(0.01)

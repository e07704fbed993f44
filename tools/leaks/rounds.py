"""Creates and deletes pods, and samples memory, descriptors and threads of the server meanwhile.

Another client runs one pod after the other on a device and lets a rule evict it, so that claims,
rules and records come and go too.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from crashes.server import Connection, Server

PODS = "/api/v1/namespaces/default/pods"
RESOURCE = "/apis/resource.k8s.io/v1"
TEMPLATES = f"{RESOURCE}/namespaces/default/resourceclaimtemplates"
RULES = f"{RESOURCE}/devicetaintrules"
DRIVER = "gpu.sully.dev"
"""The driver of simulated nodes, and their class."""
FLAGS = (
    *("--simulated-nodes", "2", "--devices-per-node", "1", "--simulated-start-seconds", "0"),
    *("--simulated-stop-seconds", "0", "--event-ttl", "10s", "--history-retention", "10s"),
)
BATCH = 25
"""So many pods exist at the same time."""
SAMPLES = 10
WARM_UP = 12_000
"""Pods before the first sample: until then the history of the store fills, up to 50 000 events."""
GROWTH = 1.1
"""How much more memory the last samples may have than the first ones."""
FEW = 8
"""Descriptors, threads and tasks of connections that open and close."""
MANY = 100
"""Events and records that have not expired yet."""
SETTLE_SECONDS = 20.0
"""Until all of them should have."""
TASKS = "sully_asyncio_tasks"
POLL_SECONDS = 0.05
LEFT = ("/api/v1/events", PODS, f"{RESOURCE}/resourceclaims")
RECORDS = (
    "/apis/sully.dev/v1alpha1/evictionrecords",
    "/apis/sully.dev/v1alpha1/taintrecords",
)


@dataclass(frozen=True, slots=True)
class Sample:
    """What a server holds after a number of pods."""

    pods: int
    memory: float
    """Resident, in MiB."""
    descriptors: int
    threads: int
    tasks: int = 0
    objects: int = 0
    """Objects that pods leave behind: events, claims."""
    records: int = 0
    """Records of evictions, and of rules."""
    evicted: int = 0
    """Pods that were evicted so far."""


@dataclass(slots=True)
class Evictions:
    """A client that lets pods on devices be evicted, one after the other."""

    connection: Connection
    evicted: int = 0
    idle: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Who holds it keeps the client from the next eviction."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    async def run(self) -> None:
        """Work until cancelled."""
        request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}
        template = {"spec": {"devices": {"requests": [request]}}}
        await self._create(TEMPLATES, {"metadata": {"name": "one"}, "spec": template})
        while True:
            async with self.idle:
                await self._evict(next(self._numbers))
            self.evicted += 1

    async def _evict(self, number: int) -> None:
        name = f"evicted-{number}"
        claim = {"name": "gpu", "resourceClaimTemplateName": "one"}
        spec = {"containers": [{"name": "c", "image": "i:1"}], "resourceClaims": [claim]}
        await self._create(PODS, {"metadata": {"name": name}, "spec": spec})
        await self._until(name, lambda code, pod: code == 200 and "nodeName" in pod["spec"])
        taint = {"key": "example.com/broken", "effect": "NoExecute"}
        rule = {"deviceSelector": {"driver": DRIVER}, "taint": taint}
        await self._create(RULES, {"metadata": {"name": name}, "spec": rule})
        await self._until(name, lambda code, _: code == 404)
        await self.connection.call("DELETE", f"{RULES}/{name}")

    async def _until(self, name: str, reached: Callable[[int, Any], bool]) -> None:
        while True:
            if reached(*await self.connection.call("GET", f"{PODS}/{name}")):
                return
            await asyncio.sleep(POLL_SECONDS)

    async def _create(self, path: str, body: dict[str, object]) -> None:
        code, answer = await self.connection.call("POST", path, body)
        if code != 201:
            raise RuntimeError(f"creating {path} answered {code}: {answer}")


async def run(directory: Path, pods: int, progress: Callable[[Sample], None]) -> list[Sample]:
    """Let pods come and go, and return the samples."""
    server = await Server.start(directory, *FLAGS)
    try:
        await server.ready()
        samples = []
        async with server.connect() as connection, asyncio.TaskGroup() as tasks:
            evictions = Evictions(connection)
            evicting = tasks.create_task(evictions.run())
            await _churn(connection, range(WARM_UP))
            for number in range(1, SAMPLES + 1):
                numbers = range(pods * (number - 1) // SAMPLES, pods * number // SAMPLES)
                await _churn(connection, numbers)
                async with evictions.idle:
                    # How many objects wait for their end depends on the speed of the machine.
                    await asyncio.sleep(SETTLE_SECONDS)
                    sample = await _sample(server, connection, numbers.stop)
                samples.append(replace(sample, evicted=evictions.evicted))
                progress(samples[-1])
            evicting.cancel()
        return samples
    finally:
        await server.kill()


async def _churn(connection: Connection, numbers: range) -> None:
    for first in range(0, len(numbers), BATCH):
        names = [f"pod-{number}" for number in numbers[first : first + BATCH]]
        await asyncio.gather(*(_create(connection, name) for name in names))
        await asyncio.gather(*(_delete(connection, name) for name in names))


async def _create(connection: Connection, name: str) -> None:
    spec = {"containers": [{"name": "c", "image": "i:1"}]}
    code, answer = await connection.call("POST", PODS, {"metadata": {"name": name}, "spec": spec})
    if code != 201:
        raise RuntimeError(f"creating {name} answered {code}: {answer}")


async def _delete(connection: Connection, name: str) -> None:
    code, answer = await connection.call("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
    if code != 200:
        raise RuntimeError(f"deleting {name} answered {code}: {answer}")


async def _sample(server: Server, connection: Connection, pods: int) -> Sample:
    process = f"/proc/{server.child.pid}"
    async with connection.session.get(f"{connection.url}/metrics") as answer:
        metrics = await answer.text()
    return Sample(
        pods,
        server.memory(),
        len(os.listdir(f"{process}/fd")),
        len(os.listdir(f"{process}/task")),
        int(float(metrics.split(f"\n{TASKS} ")[1].split()[0])),
        sum([await _count(connection, path) for path in LEFT]),
        sum([await _count(connection, path) for path in RECORDS]),
    )


async def _count(connection: Connection, path: str) -> int:
    return len((await connection.get(path))["items"])


def leaks(samples: Sequence[Sample]) -> Iterator[str]:
    """Yield what grows although nothing is left."""
    before, after = samples[:2], samples[-2:]
    memory = [min(sample.memory for sample in part) for part in (before, after)]
    if memory[1] > memory[0] * GROWTH:
        yield f"memory grew from {memory[0]:.0f} to {memory[1]:.0f} MiB"
    limits = {"descriptors": FEW, "threads": FEW, "tasks": FEW, "objects": MANY, "records": MANY}
    for name, more in limits.items():
        counts = [min(getattr(sample, name) for sample in part) for part in (before, after)]
        if counts[1] > counts[0] + more:
            yield f"{name} grew from {counts[0]} to {counts[1]}"
    if not samples[-1].evicted:
        yield "no pod was evicted, so there were no records"

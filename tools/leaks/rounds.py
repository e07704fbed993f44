"""Creates and deletes pods, and samples memory, descriptors and threads of the server meanwhile."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from crashes.server import Connection, Server

PODS = "/api/v1/namespaces/default/pods"
FLAGS = ("--simulated-nodes", "2", "--devices-per-node", "1", "--event-ttl", "10s")
BATCH = 25
"""So many pods exist at the same time."""
SAMPLES = 10
WARM_UP = 12_000
"""Pods before the first sample: until then the history of the store fills, up to 50 000 events."""
GROWTH = 1.1
"""How much more memory the last samples may have than the first ones."""
FEW = 8
"""Descriptors, threads and tasks of connections that open and close."""
MANY = 3000
"""Events of the last seconds, which expire."""
TASKS = "sully_asyncio_tasks"
LEFT = (
    *("/api/v1/events", PODS, "/apis/resource.k8s.io/v1/resourceclaims"),
    "/apis/sully.dev/v1alpha1/evictionrecords",
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
    """Objects that pods leave behind: events, claims, records."""


async def run(directory: Path, pods: int, progress: Callable[[Sample], None]) -> list[Sample]:
    """Let pods come and go, and return the samples."""
    server = await Server.start(directory, *FLAGS)
    try:
        await server.ready()
        samples = []
        async with server.connect() as connection:
            await _churn(connection, range(WARM_UP))
            for number in range(1, SAMPLES + 1):
                numbers = range(pods * (number - 1) // SAMPLES, pods * number // SAMPLES)
                await _churn(connection, numbers)
                samples.append(await _sample(server, connection, numbers.stop))
                progress(samples[-1])
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
    )


async def _count(connection: Connection, path: str) -> int:
    return len((await connection.get(path))["items"])


def leaks(samples: Sequence[Sample]) -> Iterator[str]:
    """Yield what grows although nothing is left."""
    before, after = samples[:2], samples[-2:]
    memory = [min(sample.memory for sample in part) for part in (before, after)]
    if memory[1] > memory[0] * GROWTH:
        yield f"memory grew from {memory[0]:.0f} to {memory[1]:.0f} MiB"
    limits = {"descriptors": FEW, "threads": FEW, "tasks": FEW, "objects": MANY}
    for name, more in limits.items():
        counts = [min(getattr(sample, name) for sample in part) for part in (before, after)]
        if counts[1] > counts[0] + more:
            yield f"{name} grew from {counts[0]} to {counts[1]}"

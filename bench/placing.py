"""Measures placement end to end: decisions written, a taint, a health flip, an outage.

    python bench/placing.py [--store sqlite|memory] [--only NAME]... [--large]

Each benchmark starts a control plane of its own with all its controllers, loads it over HTTPS with
8 connections, and follows decisions by a watch: the clock runs from the first request sent until
the watch has shown the last decision. The figures of OCM are those of Open Cluster
Management's placement controller on a Kubernetes API server, on the same kind of machine with two
cores; they include no health controllers. placement.py measures the deciding alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import uvloop
from harness import Connection, Server

from sully.api.cluster.types import SET_LABEL, UNREACHABLE

CONNECTIONS = 8
PATIENCE = 120.0
GROUP = "/apis/cluster.open-cluster-management.io"
CLUSTERS = f"{GROUP}/v1/managedclusters"
TEAM = f"{GROUP}/v1beta1/namespaces/bench"
AVAILABLE = "ManagedClusterConditionAvailable"
SHUNNED = {"key": "maintenance", "effect": "NoSelect"}
ALIKE = {"prioritizerPolicy": {"mode": "Exact"}}
"""Without prioritizers all placements choose the same clusters, the first by name."""
PATIENT = {"tolerations": [{"key": UNREACHABLE, "operator": "Exists"}]}


def cluster(number: int) -> dict[str, Any]:
    """Return a cluster of the fleet."""
    labels = {SET_LABEL: "bench", "region": f"region-{number % 10}"}
    return {"metadata": {"name": f"c{number:05}", "labels": labels}, "spec": {}}


def health(status: str) -> dict[str, Any]:
    """Return a cluster's own word on how it is."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    condition = {"type": AVAILABLE, "status": status, "reason": "Bench", "message": ""}
    return {"status": {"conditions": [{**condition, "lastTransitionTime": at}]}}


class Hub:
    """A control plane with a fleet, and a watch on its decisions."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.decisions: dict[str, list[str]] = {}
        self.writes = 0
        self._news = asyncio.Event()

    async def send_all(self, work: Iterable[tuple[str, str, Any]]) -> None:
        """Send (method, path, body), as fast as the connections go."""
        whole = list(work)
        left = iter(whole)

        async def one() -> None:
            async with self._server.connect() as connection:
                for method, path, body in left:
                    await send(connection, method, path, body)

        await asyncio.gather(*(one() for _ in range(min(CONNECTIONS, len(whole)))))

    async def prepare(self, clusters: int, *, healthy: bool) -> None:
        """Make the fleet."""
        spec = {"clusterSet": "bench"}
        await self.send_all([("POST", "/api/v1/namespaces", {"metadata": {"name": "bench"}})])
        sets = f"{GROUP}/v1beta2/managedclustersets"
        await self.send_all([("POST", sets, {"metadata": {"name": "bench"}})])
        bindings = f"{GROUP}/v1beta2/namespaces/bench/managedclustersetbindings"
        await self.send_all([("POST", bindings, {"metadata": {"name": "bench"}, "spec": spec})])
        await self.send_all(("POST", CLUSTERS, cluster(number)) for number in range(clusters))
        if healthy:
            await self.flip(range(clusters), "True")
        await self._calm()

    async def flip(self, numbers: Iterable[int], status: str) -> None:
        """Set the health of clusters."""
        body = health(status)
        await self.send_all(
            ("PATCH", f"{CLUSTERS}/c{number:05}/status", body) for number in numbers
        )

    async def place(self, number: int, **spec: Any) -> None:
        """Create placements that request ten clusters each."""
        requested = {"numberOfClusters": 10, **spec}
        await self.send_all(
            (
                "POST",
                f"{TEAM}/placements",
                {"metadata": {"name": f"p{index:03}"}, "spec": requested},
            )
            for index in range(number)
        )

    async def follow(self) -> None:
        """Keep the decisions as a watch shows them."""
        async with self._server.connect() as connection:
            connection.send("GET", f"{TEAM}/placementdecisions?watch=1")
            await connection.head()
            text = b""
            while True:
                size = int((await connection.reader.readline()).strip() or b"0", 16)
                text += (await connection.reader.readexactly(size + 2))[:-2]
                *lines, text = text.split(b"\n")
                for line in lines:
                    self._take(json.loads(line))

    def _take(self, event: dict[str, Any]) -> None:
        if event["type"] == "BOOKMARK":
            return
        decided = (event["object"].get("status") or {}).get("decisions") or []
        self.decisions[event["object"]["metadata"]["name"]] = [
            decision["clusterName"] for decision in decided
        ]
        self.writes += 1
        self._news.set()

    async def until(self, holds: Callable[[], bool]) -> float:
        """Wait until the decisions are as they should be; return when that was seen."""
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self._news.clear()
                await self._news.wait()
        return time.perf_counter()

    async def _calm(self) -> None:
        """Wait until the controllers have nothing left to do."""
        used = self._server.cpu()
        while True:
            await asyncio.sleep(1.0)
            last, used = used, self._server.cpu()
            if used - last < 0.1:
                return


async def send(connection: Connection, method: str, path: str, body: Any) -> None:
    """Make one request, or end the benchmark."""
    if method == "PATCH":
        raw = json.dumps(body).encode()
        head = (
            f"PATCH {path} HTTP/1.1\r\nhost: x\r\nuser-agent: bench\r\n"
            f"content-type: application/merge-patch+json\r\ncontent-length: {len(raw)}\r\n\r\n"
        )
        connection.writer.write(head.encode() + raw)
        code, answer = await connection.head()
        length = int(answer.split(b"content-length:")[1].split(b"\r\n")[0])
        answer = await connection.reader.readexactly(length)
    else:
        code, answer = await connection.call(method, path, json.dumps(body).encode())
    if code not in (200, 201):
        raise RuntimeError(f"{method} {path}: {code} {answer.decode()[:500]}")


async def written(hub: Hub, clusters: int, **spec: Any) -> dict[str, float]:
    """Create 100 placements; until each has ten clusters."""
    await hub.prepare(clusters, healthy=clusters <= 1000)
    began = time.perf_counter()
    await hub.place(100, **spec)
    full = await hub.until(lambda: sum(len(names) == 10 for names in hub.decisions.values()) == 100)
    used = Counter(name for names in hub.decisions.values() for name in names)
    return {"all decisions written": full - began, "most on one cluster": max(used.values())}


async def tainted(hub: Hub, clusters: int) -> dict[str, float]:
    """Taint a cluster that all placements have; until none has it."""
    await written(hub, clusters, **ALIKE, **({} if clusters <= 1000 else PATIENT))
    began = time.perf_counter()
    body = {"spec": {"taints": [SHUNNED]}}
    await hub.send_all([("PATCH", f"{CLUSTERS}/c00003", body)])
    first = await hub.until(lambda: any("c00003" not in names for names in hub.decisions.values()))
    last = await hub.until(lambda: not any("c00003" in names for names in hub.decisions.values()))
    return {"first decision updated": first - began, "last decision updated": last - began}


async def flipped(hub: Hub, clusters: int) -> dict[str, float]:
    """Let a cluster that all placements have report that it is down; until none has it."""
    await written(hub, clusters, **ALIKE)
    began = time.perf_counter()
    await hub.flip([3], "False")
    last = await hub.until(lambda: not any("c00003" in names for names in hub.decisions.values()))
    return {"last decision updated": last - began}


async def outage(hub: Hub, clusters: int) -> dict[str, float]:
    """Lose a tenth of the clusters together; until no placement has one of them."""
    await written(hub, clusters)
    lost = range(0, clusters, 10)
    names = {f"c{number:05}" for number in lost}
    hub.writes = 0
    began = time.perf_counter()
    await hub.flip(lost, "Unknown")
    sent = time.perf_counter()
    decided = hub.decisions.values
    last = await hub.until(lambda: not any(names.intersection(each) for each in decided()))
    return {
        "reports sent": sent - began,
        "last decision updated": last - began,
        "decisions written": hub.writes,
    }


CASES: dict[str, tuple[Callable[[Hub], Any], dict[str, float]]] = {
    "written": (lambda hub: written(hub, 1000), {"all decisions written": 3.9}),
    "alike": (lambda hub: written(hub, 1000, **ALIKE), {"all decisions written": 3.1}),
    "taint": (
        lambda hub: tainted(hub, 1000),
        {"first decision updated": 0.02, "last decision updated": 2.0},
    ),
    "flip": (lambda hub: flipped(hub, 1000), {}),
    "outage": (lambda hub: outage(hub, 1000), {}),
    "taint-10000": (lambda hub: tainted(hub, 10000), {}),
}
LARGE = ("taint-10000",)


COUNTS = ("most on one cluster", "decisions written")


def line(name: str, what: str, value: float, reference: float | None) -> str:
    """Write a figure for people; a ratio over 1 is better than OCM."""
    shown = f"{value:8.0f}  " if what in COUNTS else f"{value:8.3f} s"
    ratio = f"{reference:8.2f} {reference / value:6.1f}x" if reference else ""
    return f"{name:12} {what:24}{shown} {ratio}".rstrip()


async def measure(name: str, store: str) -> None:
    """Run one benchmark and print its figures."""
    run, references = CASES[name]
    server = Server(store)
    try:
        hub = Hub(server)
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(hub.follow())
            found = await run(hub)
            watching.cancel()
        for what, value in found.items():
            print(line(name, what, value, references.get(what)), flush=True)
    finally:
        server.stop()


def main() -> None:
    """Run the chosen benchmarks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--store", default="sqlite", choices=("sqlite", "memory"))
    parser.add_argument("--only", action="append", choices=sorted(CASES))
    parser.add_argument("--large", action="store_true", help="also with 10 000 clusters")
    options = parser.parse_args()
    chosen = options.only or [name for name in CASES if options.large or name not in LARGE]
    print(f"{'case':12} {'figure':24}{'Sully':>10} {'OCM':>8} {'ratio':>7}")
    for name in chosen:
        uvloop.run(measure(name, options.store))


if __name__ == "__main__":
    main()

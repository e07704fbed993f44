"""Measures what commands take on a cluster: `sully devices`, `sully evictions`, `sully plan`.

    python bench/seeing.py [--nodes 1000] [--devices 10] [--pods 5000x2 2500x2 5000x1]
                           [--only 'plan device'] [--beside OTHER]

A control plane without controllers is loaded over HTTPS with nodes' slices, pods with a claim for
two devices each (`x1`: one), and some rules; then the commands run as users run them, each in a
process of its own. With two pods for every four devices the fleet is full, and evicted pods stay
Pending; with half of them all are rescheduled; with one device for each pod, those on one
half of the devices find a place on the other. The time is that of the whole process, from start to
end. With OTHER, the folder of another checkout, its commands run in turn with those of this one,
and the ratio of the processor time is printed: other load affects both.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import shapes
import uvloop
from harness import Server, environment

HERE = Path(__file__).resolve().parent.parent
CONNECTIONS = 16
SPREAD = 300
"""Pods tolerate one taint for a time, each from none to so many seconds."""
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("--help",),
    ("completion", "complete", "--", "devices", "--"),
    ("devices",),
    ("devices", "--tainted"),
    ("devices", "-o", "json"),
    ("evictions",),
    ("plan", "device", "*/node-3/*", "example.com/hot:NoExecute"),
    ("plan", "device", "*/*/gpu-2", "example.com/hot:NoExecute"),
    ("plan", "device", "*/*/gpu-2", "example.com/hot:NoExecute", "--rate", "10"),
    ("plan", "device", "*/*/gpu-2", "example.com/late:NoExecute"),
    ("plan", "device", "*/*/gpu-[0-4]", "example.com/hot:NoExecute"),
    ("plan", "device", "*/*/*", "example.com/hot:NoExecute"),
)
"""The plans: a node; one device of each node, immediately, at a rate, and over minutes; half of
all; everything."""
NO_PLACE = 3
"""The exit code of a plan in which pods stay Pending."""


@dataclass(frozen=True, slots=True)
class Load:
    """Pods, and how many devices each of them has."""

    pods: int
    each: int = 2

    @classmethod
    def read(cls, text: str) -> Self:
        """Read `5000x1`, or `5000` for two devices each."""
        pods, _, each = text.partition("x")
        return cls(int(pods), int(each or 2))

    def __str__(self) -> str:
        return f"{self.pods} pods with {self.each} of them each"

    def held(self, nodes: int, devices: int) -> Iterator[tuple[int, int, int]]:
        """Yield pods by number, each with a node and the first of its devices there."""
        firsts = range(0, devices + 1 - self.each, self.each)
        places = ((node, first) for first in firsts for node in range(nodes))
        for number, (node, first) in zip(range(self.pods), places, strict=False):
            yield number, node, first


LOADS = (Load(5000), Load(2500), Load(5000, 1))


def _asked(seconds: int, count: int) -> dict[str, Any]:
    tolerations = [
        {"key": "example.com/late", "operator": "Exists", "effect": "NoExecute"}
        | {"tolerationSeconds": seconds}
    ]
    exactly = {"deviceClassName": "gpu", "count": count, "tolerations": tolerations}
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


def templates(count: int) -> Iterator[dict[str, Any]]:
    """Yield what the claims are made from."""
    for seconds in range(SPREAD):
        metadata = {"name": f"work-{seconds}", "namespace": "default"}
        yield {"metadata": metadata, "spec": {"spec": _asked(seconds, count)}}


def claim(number: int, uid: str, count: int) -> dict[str, Any]:
    """Return the claim of a pod."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": f"pod-{number}", "uid": uid}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": f"claim-{number}",
            "namespace": "default",
            "finalizers": ["resource.kubernetes.io/delete-protection"],
            "ownerReferences": [owner | {"controller": True}],
        },
        "spec": _asked(number % SPREAD, count),
    }


def allocation(number: int, node: int, held: range, uid: str) -> dict[str, Any]:
    """Return the status of a claim that has its devices."""
    shared = {"request": "gpu", "driver": shapes.DRIVER, "pool": f"node-{node}"}
    tolerations = _asked(number % SPREAD, 1)["devices"]["requests"][0]["exactly"]["tolerations"]
    results = [shared | {"device": f"gpu-{each}", "tolerations": tolerations} for each in held]
    user = {"resource": "pods", "name": f"pod-{number}", "uid": uid}
    return {"allocation": {"devices": {"results": results}}, "reservedFor": [user]}


def pod(number: int, node: int) -> dict[str, Any]:
    """Return a pod with an owner, so that a plan reschedules it."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "work", "controller": True}
    template = f"work-{number % SPREAD}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number}",
            "namespace": "default",
            "ownerReferences": [owner | {"uid": "6f0d4a58-0000-4000-8000-000000000000"}],
        },
        "spec": {
            "nodeName": f"node-{node}",
            "containers": [{"name": "c", "image": "example.com/x:1"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
        },
    }


def rules() -> Iterator[dict[str, Any]]:
    """Yield rules for a node, for one device of all nodes, and for no device."""
    yield shapes.rule("node", {"pool": "node-7"}, "NoExecute")
    yield shapes.rule("first", {"driver": shapes.DRIVER, "device": "gpu-0"}, "NoSchedule")
    yield shapes.rule("none", {"driver": "other.example.com"}, "NoExecute")


async def fill(server: Server, nodes: int, devices: int, load: Load) -> None:
    """Create everything."""
    slices = iter(range(nodes))
    places = load.held(nodes, devices)
    resource_ = shapes.RESOURCE

    async def one() -> None:
        async with server.connect() as connection:
            for number in slices:
                await connection.create("/api/v1/nodes", shapes.node(f"node-{number}"))
                made = shapes.slice_of(f"node-{number}", devices)
                await connection.create(f"{resource_}/resourceslices", made)
            for number, node, first in places:
                held = range(first, first + load.each)
                await _hold(connection, number, node, held)

    async with server.connect() as connection:
        # What a controller would have made; pods need it.
        account = {"metadata": {"name": "default"}}
        await connection.create("/api/v1/namespaces/default/serviceaccounts", account)
        await connection.create(f"{resource_}/deviceclasses", shapes.device_class())
        for template in templates(load.each):
            await connection.create(shapes.TEMPLATES, template)
    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
    async with server.connect() as connection:
        for rule in rules():
            await connection.create(shapes.RULES, rule)


async def _hold(connection: Any, number: int, node: int, held: range) -> None:
    """Create a pod, and a claim that is allocated and reserved for it."""
    made = await _write(connection, "POST", shapes.PODS, pod(number, node))
    uid = made["metadata"]["uid"]
    claims = f"{shapes.RESOURCE}/namespaces/default/resourceclaims"
    created = await _write(connection, "POST", claims, claim(number, uid, len(held)))
    status = {"status": allocation(number, node, held, uid)}
    await _write(connection, "PUT", f"{claims}/claim-{number}/status", created | status)
    names = [{"name": "gpu", "resourceClaimName": f"claim-{number}"}]
    known = {"status": {"phase": "Running", "resourceClaimStatuses": names}}
    await _write(connection, "PUT", f"{shapes.PODS}/pod-{number}/status", made | known)


async def _write(connection: Any, verb: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    code, answer = await connection.call(verb, path, json.dumps(body).encode())
    if code not in (200, 201):
        raise RuntimeError(f"{verb} {path}: {code} {answer.decode()[:500]}")
    body: dict[str, Any] = json.loads(answer)
    return body


@dataclass(frozen=True, slots=True)
class Taken:
    """What a command took."""

    seconds: float
    cpu: float
    memory: float
    """The maximum, in MiB."""
    lines: int


def measure(words: tuple[str, ...], kubeconfig: str, checkout: Path | None = None) -> Taken:
    """Run a command, of this checkout or another one, and see what it takes."""
    source = {} if checkout is None else {"PYTHONPATH": str(checkout / "src")}
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "sully.cli.main", *words],
        env=environment() | source | {"KUBECONFIG": kubeconfig},
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        lines = process.stdout.read().count(b"\n")
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, NO_PLACE):
        raise RuntimeError(f"sully {' '.join(words)}: exit code {process.returncode}")
    took = time.perf_counter() - began
    return Taken(took, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, lines)


def compare(server: Server, words: tuple[str, ...], runs: int) -> None:
    """Run a command some times, and print what it took."""
    times, most, lines = [], 0.0, 0
    for _ in range(runs):
        before = server.cpu()
        measured = measure(words, f"{server.folder.name}/kubeconfig")
        times.append(f"{measured.seconds:.2f} ({measured.cpu:.2f} + {server.cpu() - before:.2f})")
        most, lines = max(most, measured.memory), measured.lines
    print(
        f"sully {' '.join(words):64} {'   '.join(times)}   {most:.0f} MiB, {lines} lines",
        flush=True,
    )


def compare_beside(server: Server, words: tuple[str, ...], runs: int, other: Path) -> None:
    """Run a command of both checkouts in turn, and print the ratio of their processor time."""
    kubeconfig = f"{server.folder.name}/kubeconfig"
    ratios, theirs, ours = [], [], []
    for checkout in (other, HERE):
        measure(words, kubeconfig, checkout)  # the first run compiles modules
    for number in range(runs):
        order = (other, HERE) if number % 2 else (HERE, other)
        cpu = {checkout: measure(words, kubeconfig, checkout).cpu for checkout in order}
        theirs.append(cpu[other])
        ours.append(cpu[HERE])
        ratios.append(cpu[HERE] / cpu[other])
    print(
        f"sully {' '.join(words):64} {statistics.median(theirs):.2f} -> "
        f"{statistics.median(ours):.2f} s, ratio {statistics.median(ratios):.3f}"
        f" ({min(ratios):.2f} to {max(ratios):.2f})",
        flush=True,
    )


async def main() -> int:
    """Load control planes, and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--devices", type=int, default=10, help="per node")
    parser.add_argument("--pods", type=Load.read, nargs="+", default=LOADS, metavar="PODS[xEACH]")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="commands that begin so")
    parser.add_argument("--beside", type=Path, metavar="OTHER", help="another checkout")
    options = parser.parse_args()
    chosen = [words for words in COMMANDS if " ".join(words).startswith(options.only)]
    for load in options.pods:
        server = Server("memory", "--disable-controllers")
        try:
            began = time.perf_counter()
            await fill(server, options.nodes, options.devices, load)
            took = time.perf_counter() - began
            what = f"{options.nodes} nodes of {options.devices} devices, {load}"
            print(f"{what}: loaded in {took:.1f} s, {server.memory():.0f} MiB")
            print("seconds, and in brackets those of processors: command + server")
            for words in chosen:
                if options.beside is None:
                    compare(server, words, options.runs)
                else:
                    compare_beside(server, words, options.runs, options.beside.resolve())
        finally:
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(uvloop.run(main()))

"""Measures what commands take on a cluster: `sully devices`, `sully evictions`, `sully plan`.

    python bench/seeing.py [--nodes 1000] [--devices 10] [--pods 5000]

A control plane without controllers is loaded over HTTPS with nodes' slices, claims that hold two
devices each, a pod for every claim and some rules; then the commands run as users run them, each in
a process of its own, three times. The time is that of the whole process, from start to end.
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import shapes
import uvloop
from harness import Server

CONNECTIONS = 16
RUNS = 3
COMMANDS = (
    ("--help",),
    ("completion", "complete", "--", "devices", "--"),
    ("devices",),
    ("devices", "--tainted"),
    ("devices", "-o", "json"),
    ("evictions",),
    ("plan", "device", "*/node-3/*", "example.com/hot:NoExecute"),
    ("plan", "device", "*/*/gpu-2", "example.com/hot:NoExecute"),
)
NO_PLACE = 3
"""What a plan ends with when somebody would find no place; it has been made all the same."""


def claims(nodes: int, devices: int, pods: int) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield claims that hold two devices each, and their pods, spread over the nodes."""
    places = ((node, first) for first in range(0, devices - 1, 2) for node in range(nodes))
    for number, (node, first) in zip(range(pods), places, strict=False):
        yield _claim(number, node, first), _pod(number, node)


def _claim(number: int, node: int, first: int) -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 2}}
    results = [
        {"request": "gpu", "driver": shapes.DRIVER, "pool": f"node-{node}", "device": f"gpu-{each}"}
        for each in (first, first + 1)
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": f"claim-{number}", "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
        "status": {"allocation": {"devices": {"results": results}}},
    }


def _pod(number: int, node: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number}",
            "namespace": "default",
            # Somebody who replaces them, so that a plan has to find places.
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "work",
                    "uid": "6f0d4a58-0000-4000-8000-000000000000",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "nodeName": f"node-{node}",
            "containers": [{"name": "c", "image": "example.com/x:1"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": f"claim-{number}"}],
        },
    }


def rules() -> Iterator[dict[str, Any]]:
    """Yield rules for a node, for one device of all nodes, and for nobody."""
    yield shapes.rule("node", {"pool": "node-7"}, "NoExecute")
    yield shapes.rule("first", {"driver": shapes.DRIVER, "device": "gpu-0"}, "NoSchedule")
    yield shapes.rule("none", {"driver": "other.example.com"}, "NoExecute")


async def load(server: Server, nodes: int, devices: int, pods: int) -> None:
    """Create everything."""
    slices = iter(range(nodes))
    held = claims(nodes, devices, pods)
    resource_ = shapes.RESOURCE

    async def one() -> None:
        async with server.connect() as connection:
            for number in slices:
                await connection.create("/api/v1/nodes", shapes.node(f"node-{number}"))
                made = shapes.slice_of(f"node-{number}", devices)
                await connection.create(f"{resource_}/resourceslices", made)
            for claim, pod in held:
                await connection.create(shapes.PODS, pod)
                await _hold(connection, claim)

    async with server.connect() as connection:
        # What a controller would have made; pods need it.
        account = {"metadata": {"name": "default"}}
        await connection.create("/api/v1/namespaces/default/serviceaccounts", account)
        await connection.create(f"{resource_}/deviceclasses", shapes.device_class())
    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
    async with server.connect() as connection:
        for rule in rules():
            await connection.create(shapes.RULES, rule)


async def _hold(connection: Any, claim: dict[str, Any]) -> None:
    """Create a claim that is allocated and reserved for its pod."""
    name = claim["metadata"]["name"]
    path = f"{shapes.RESOURCE}/namespaces/default/resourceclaims"
    await connection.create(path, claim)
    _, answer = await connection.call("GET", f"{shapes.PODS}/{name.replace('claim', 'pod')}")
    pod = json.loads(answer)["metadata"]
    user = {"resource": "pods", "name": pod["name"], "uid": pod["uid"]}
    status = claim | {"status": claim["status"] | {"reservedFor": [user]}}
    code, answer = await connection.call(
        "PUT", f"{path}/{name}/status", json.dumps(status).encode()
    )
    if code != 200:
        raise RuntimeError(f"PUT {path}/{name}/status: {code} {answer.decode()[:500]}")


def measure(words: tuple[str, ...], kubeconfig: str) -> tuple[float, float, int]:
    """Run a command; return the seconds it took, those of its processor, and its lines."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "sully.cli.main", *words],
        env=os.environ | {"KUBECONFIG": kubeconfig},
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode not in (0, NO_PLACE):
        raise RuntimeError(f"sully {' '.join(words)}: exit code {done.returncode}")
    took = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return took, cpu, done.stdout.count(b"\n")


async def main() -> int:
    """Load a control plane, and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--devices", type=int, default=10, help="per node")
    parser.add_argument("--pods", type=int, default=5000)
    options = parser.parse_args()
    server = Server("memory", "--disable-controllers")
    try:
        began = time.perf_counter()
        await load(server, options.nodes, options.devices, options.pods)
        print(f"loaded in {time.perf_counter() - began:.1f} s, {server.memory():.0f} MiB")
        print("seconds, and in brackets those of processors: command + server")
        for words in COMMANDS:
            runs = []
            for _ in range(RUNS):
                before = server.cpu()
                took, cpu, lines = measure(words, f"{server.folder.name}/kubeconfig")
                runs.append(f"{took:.2f} ({cpu:.2f} + {server.cpu() - before:.2f})")
            print(f"sully {' '.join(words):40} {'   '.join(runs)}   {lines} lines", flush=True)
    finally:
        server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(uvloop.run(main()))

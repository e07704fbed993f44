"""Measures what a write costs: those of a pod that is scheduled and evicted, without controllers.

    python bench/writes.py [--pods 100] [--turns 20] [--store sqlite|memory]

The server is in this process, with its audit log, and is called like by its controllers: 16 callers
as fast as they can. The least processor time of all turns is printed, because other jobs only add.
"""

import argparse
import asyncio
import itertools
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import shapes
import uvloop

from sully.app import CONTROLLER_GROUPS, Config, RunningControlPlane, running
from sully.client.direct import DirectTransport
from sully.client.options import PatchType, WriteOptions
from sully.client.transport import Key, Kind
from sully.server.requests import User

Obj = dict[str, Any]
CALLERS = 16
CLAIMER = "system:serviceaccount:kube-system:resource-claim-controller"
EVICTOR = "system:serviceaccount:kube-system:device-taint-eviction-controller"
SCHEDULER = "system:kube-scheduler"
NAMESPACE = "default"


def kind(plural: str, name: str, group: str = "") -> Kind[Obj]:
    """Return a kind that is read as dicts."""
    return Kind(group, "v1", plural, name, dict)


PODS, EVENTS, MAPS = kind("pods", "Pod"), kind("events", "Event"), kind("configmaps", "ConfigMap")
CLAIMS = kind("resourceclaims", "ResourceClaim", "resource.k8s.io")
ACCOUNTS = kind("serviceaccounts", "ServiceAccount")


class Writes:
    """The writes, each for the pod of a name."""

    def __init__(self, plane: RunningControlPlane) -> None:
        def client(name: str) -> DirectTransport:
            return DirectTransport(plane.direct(User(name, CONTROLLER_GROUPS)))

        self.admin = DirectTransport(plane.direct())
        self.claimer, self.scheduler = client(CLAIMER), client(SCHEDULER)
        self.evictor = client(EVICTOR)
        self.uids: dict[str, str] = {}
        self.claims: dict[str, Obj] = {}

    async def create_pod(self, name: str) -> None:
        """Create the pod."""
        pod = shapes.pod(name)
        pod["metadata"]["namespace"] = NAMESPACE
        self.uids[name] = (await self.admin.create(PODS, pod))["metadata"]["uid"]

    async def create_claim(self, name: str) -> None:
        """Create its claim."""
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": self.uids[name]}
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 1}}
        claim = {
            "metadata": {
                "name": f"{name}-gpu",
                "namespace": NAMESPACE,
                "ownerReferences": [{**owner, "controller": True}],
            },
            "spec": {"devices": {"requests": [request]}},
        }
        options = WriteOptions(field_manager="kube-controller-manager")
        self.claims[name] = await self.claimer.create(CLAIMS, claim, options=options)

    async def name_claim(self, name: str) -> None:
        """Write the name of the claim into the status of the pod."""
        status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]}
        pod = {"metadata": {"name": name, "namespace": NAMESPACE}, "status": status}
        options = WriteOptions(field_manager="ResourceClaimController", force=True)
        await self.claimer.apply(PODS, pod, options, "status")

    async def allocate(self, name: str) -> None:
        """Allocate a device to the claim, and reserve it for the pod."""
        result = {"request": "gpu", "driver": shapes.DRIVER, "pool": name, "device": "gpu-0"}
        user = {"resource": "pods", "name": name, "uid": self.uids[name]}
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}
        await self.scheduler.update(CLAIMS, {**self.claims[name], "status": status}, "status")

    async def bind(self, name: str) -> None:
        """Bind the pod to a node."""
        metadata = {"name": name, "namespace": NAMESPACE}
        target = {"kind": "Node", "name": "node-0"}
        binding = {"kind": "Binding", "metadata": metadata, "target": target}
        await self.scheduler.create(PODS, binding, "binding")

    async def create_event(self, name: str) -> None:
        """Report it."""
        about = {"kind": "Pod", "namespace": NAMESPACE, "name": name, "uid": self.uids[name]}
        event = {
            "metadata": {"name": f"{name}.1", "namespace": NAMESPACE},
            "involvedObject": about,
            "reason": "Scheduled",
            "message": f"Successfully assigned {NAMESPACE}/{name} to node-0",
            "source": {"component": "default-scheduler"},
            "type": "Normal",
            "count": 1,
        }
        await self.scheduler.create(EVENTS, event)

    async def patch_condition(self, name: str) -> None:
        """Set a condition of the pod."""
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "Bench"}
        patch = {"status": {"conditions": [condition]}}
        await self.evictor.patch(PODS, Key(NAMESPACE, name), patch, PatchType.STRATEGIC, "status")

    async def delete_pod(self, name: str) -> None:
        """Begin to delete the pod."""
        await self.evictor.delete(PODS, Key(NAMESPACE, name))

    async def create_map(self, name: str) -> None:
        """Create a ConfigMap of about one KiB."""
        metadata = {"name": name, "namespace": NAMESPACE}
        await self.admin.create(MAPS, {"metadata": metadata, "data": {"key": "x" * 1024}})

    async def label_map(self, name: str) -> None:
        """Change a label of it."""
        await self.admin.patch(MAPS, Key(NAMESPACE, name), {"metadata": {"labels": {"a": name}}})

    def steps(self) -> Iterable[Callable[[str], Awaitable[None]]]:
        """Return the writes in their order."""
        yield from (self.create_pod, self.create_claim, self.name_claim, self.allocate)
        yield from (self.bind, self.create_event, self.patch_condition, self.delete_pod)
        yield from (self.create_map, self.label_map)


async def call_all(write: Callable[[str], Awaitable[None]], names: Iterable[str]) -> None:
    """Write for all names, several at the same time."""
    left = iter(names)

    async def one() -> None:
        for name in left:
            await write(name)

    await asyncio.gather(*(one() for _ in range(CALLERS)))


async def measure(store: str, pods: int, turns: int) -> None:
    """Print the least processor time of each write."""
    with tempfile.TemporaryDirectory(prefix="sully-bench-") as folder:
        config = Config(data_dir=Path(folder), port=0, store=store, controllers=frozenset())
        async with running(config) as plane:
            writes = Writes(plane)
            account = {"metadata": {"name": "default", "namespace": NAMESPACE}}
            await writes.admin.create(ACCOUNTS, account)
            least: dict[str, float] = {}
            for turn, write in itertools.product(range(turns + 1), writes.steps()):
                began = time.process_time()
                await call_all(write, (f"pod-{turn}-{number}" for number in range(pods)))
                used = (time.process_time() - began) / pods * 1e6
                if turn:
                    name = write.__name__  # type: ignore[attr-defined]  # a method has one
                    least[name] = min(used, least.get(name, used))
            for name, used in least.items():
                print(f"{name:20}{used:8.1f} us")
            print(f"{'all':20}{sum(least.values()):8.1f} us")


def main() -> None:
    """Read the flags and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", default="sqlite", choices=("sqlite", "memory"))
    parser.add_argument("--pods", type=int, default=100)
    parser.add_argument("--turns", type=int, default=20)
    options = parser.parse_args()
    uvloop.run(measure(options.store, options.pods, options.turns))


if __name__ == "__main__":
    main()

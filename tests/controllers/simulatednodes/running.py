"""A world with simulated nodes in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from controllers.recording_transport import RecordingTransport, broken
from controllers.world import ACCOUNTS, NAMESPACES, PODS, Obj, World, running
from sully.client.events import EVENTS
from sully.client.transport import Key, Kind
from sully.controllers.framework.manager import Manager
from sully.controllers.simulatednodes.nodes import LEASES, USER_AGENT
from sully.controllers.simulatednodes.wiring import SimulatedNodeSettings, add_simulated_nodes
from sully.domain.simulated.fleet import Fleet, PodDelays
from sully.machinery.errors import NotFound
from sully.views import kinds

NODES: Kind[Obj] = Kind("", "v1", "nodes", "Node", dict, namespaced=False)
SLICES: Kind[Obj] = kinds.SLICES.read_as(dict)
CLAIMS: Kind[Obj] = kinds.CLAIMS.read_as(dict)
QUICK = PodDelays(start=2, stop=3)


@asynccontextmanager
async def simulated_nodes(
    world: World,
    nodes: int = 1,
    devices: int = 1,
    *,
    delays: PodDelays = QUICK,
    failing: tuple[str, ...] = (),
    **more: Any,
) -> AsyncIterator[RecordingTransport]:
    """Run simulated nodes as long as the block lasts; what is `failing` does so once."""
    manager = Manager(world.transport("informers"), clock=world.clock)
    transport = RecordingTransport(world, USER_AGENT)
    transport.failures = {what: broken() for what in failing}
    add_simulated_nodes(
        manager,
        env=manager.env(transport, USER_AGENT),
        settings=SimulatedNodeSettings(Fleet(nodes, devices, **more), delays),
    )
    async with running(manager):
        await world.settle()
        yield transport


async def prepare(world: World) -> None:
    await world.admin.create(NAMESPACES, {"metadata": {"name": "kube-node-lease"}})
    await world.admin.create(NAMESPACES, {"metadata": {"name": "a"}})
    await world.create(ACCOUNTS, "a", "default")


async def bound(
    world: World, name: str, node: str = "worker-0000", *, metadata: Obj | None = None, **spec: Any
) -> Obj:
    """Make a pod that has a node from the beginning."""
    expected: Obj = {"containers": [{"name": "c", "image": "example.com/x:1"}], "nodeName": node}
    return await world.create(PODS, "a", name, metadata=metadata or {}, spec=expected | spec)


async def pod(world: World, name: str) -> Obj:
    return await world.admin.get(PODS, Key("a", name))


async def phase(world: World, name: str) -> str:
    """Describe a pod: its phase, what its container waits for, whether it terminates."""
    try:
        result = await pod(world, name)
    except NotFound:
        return "gone"
    words = [result["status"]["phase"]]
    states = [status["state"] for status in result["status"].get("containerStatuses") or ()]
    words += [state["waiting"]["reason"] for state in states if "waiting" in state]
    if "deletionTimestamp" in result["metadata"]:
        words.append("terminating")
    return " ".join(words)


def conditions(result: Obj) -> dict[str, str]:
    return {condition["type"]: condition["status"] for condition in result["status"]["conditions"]}


async def leases(world: World) -> dict[str, Obj]:
    page = await world.admin.list(LEASES, "kube-node-lease")
    return {item["metadata"]["name"]: item["spec"] for item in page.items}


async def event_messages(world: World) -> list[str]:
    page = await world.admin.list(EVENTS, "a")
    return [f"{item['reason']}: {item['message']}" for item in page.items]

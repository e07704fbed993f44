"""Deletes the simulated nodes of a fleet, the pods on them, and what belongs to the nodes.

Garbage collection would delete slices and leases with their node, and Kubernetes the pods of a node
that is gone. Neither runs on every API server, and pods would take a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from sully.client.objects import key_of
from sully.client.options import DeleteOptions, ListOptions
from sully.client.transport import Key, Transport
from sully.controllers.simulatednodes.nodes import (
    LEASES,
    ONLY_SIMULATED,
    SIMULATED_NODES,
    SimulatedNode,
)
from sully.domain.simulated import machines
from sully.domain.simulated.fleet import Fleet, is_simulated
from sully.machinery.errors import Conflict, NotFound
from sully.views.kinds import CLASSES, SLICES
from sully.views.snapshot.kinds import PODS

WORKERS = 16
_OURS = ListOptions(label_selector=ONLY_SIMULATED.label_selector)


async def remove_fleet(transport: Transport, fleet: Fleet) -> int:
    """Delete the nodes with the prefix of a fleet; return how many there were."""
    page = await transport.list(SIMULATED_NODES, options=_OURS)
    nodes = [node for node in page.items if fleet.number(node.metadata.name) is not None]
    turns = asyncio.Semaphore(WORKERS)

    async def remove(node: SimulatedNode) -> None:
        async with turns:
            await _remove_node(transport, node)

    async with asyncio.TaskGroup() as tasks:
        for node in nodes:
            tasks.create_task(remove(node))
    await _remove_devices(transport, fleet, nodes)
    return len(nodes)


async def _remove_node(transport: Transport, node: SimulatedNode) -> None:
    name = node.metadata.name
    # First the node, so that no other pod is scheduled on it.
    with suppress(NotFound, Conflict):
        await transport.delete(SIMULATED_NODES, Key("", name), DeleteOptions(uid=node.metadata.uid))
    bound = ListOptions(field_selector=f"spec.nodeName={name}")
    for pod in (await transport.list(PODS, options=bound)).items:
        gone = DeleteOptions(grace_period_seconds=0, uid=pod.metadata.uid)
        with suppress(NotFound, Conflict):
            await transport.delete(PODS, key_of(pod), gone)
    with suppress(NotFound):
        await transport.delete(LEASES, Key(machines.LEASES, name))


async def _remove_devices(
    transport: Transport, fleet: Fleet, nodes: Sequence[SimulatedNode]
) -> None:
    """Delete the slices of nodes, and the class of the driver if no slice is left."""
    gone = {node.metadata.name for node in nodes}
    left = 0
    for slice_ in (await transport.list(SLICES)).items:
        if is_simulated(slice_.metadata.labels) and slice_.spec.node_name in gone:
            with suppress(NotFound):
                await transport.delete(SLICES, key_of(slice_))
        elif slice_.spec.driver == fleet.driver:
            left += 1
    key = Key("", fleet.driver)
    with suppress(NotFound):
        device_class = await transport.get(CLASSES, key)
        if not left and is_simulated(device_class.metadata.labels):
            await transport.delete(CLASSES, key)

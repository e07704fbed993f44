"""Checks, before anything is written, whether a server accepts simulated nodes."""

from __future__ import annotations

from contextlib import suppress

from sully.client.options import WriteOptions
from sully.client.transport import Transport
from sully.controllers.simulatednodes.nodes import (
    SIMULATED_NODES,
    USER_AGENT,
    WHOLE_SLICES,
)
from sully.domain.simulated.fleet import Fleet
from sully.domain.simulated.machines import device_class, node_of, slices_of
from sully.domain.simulated.neighbors import Neighbors, neighbors
from sully.machinery.errors import AlreadyExists
from sully.runtime.clock import Clock
from sully.views import kinds
from sully.views.snapshot.kinds import NODES

_DRY = WriteOptions(field_manager=USER_AGENT, dry_run=True)


async def find_neighbors(transport: Transport, fleet: Fleet) -> Neighbors:
    """Return the nodes of the cluster that are not simulated."""
    page = await transport.list(NODES)
    return neighbors(fleet, ((node.metadata.name, node.metadata.labels) for node in page.items))


async def try_fleet(transport: Transport, fleet: Fleet, clock: Clock) -> None:
    """Write a node, its devices and their class as a dry run; raise as the server does."""
    with suppress(AlreadyExists):
        await transport.create(kinds.CLASSES, device_class(fleet.driver), options=_DRY)
    with suppress(AlreadyExists):
        await transport.create(SIMULATED_NODES, node_of(fleet, 0, clock.now()), options=_DRY)
    for slice_ in slices_of(fleet, 0)[:1]:
        slice_["spec"]["pool"]["generation"] = 1
        with suppress(AlreadyExists):
            await transport.create(WHOLE_SLICES, slice_, options=_DRY)

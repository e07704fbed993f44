"""The controllers that devices concern, together, on a world that outlives them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from controllers.world import SCHEME, World, running
from sully.client.discovery.resources import of_scheme
from sully.controller_context import ControllerConfig
from sully.controller_setup import build_manager
from sully.machinery.gates import Gates
from sully.runtime.ids import Ids
from sully.runtime.metrics import Metrics

CONTROLLERS = frozenset(("claims", "eviction", "expiry", "patchstatus", "scheduling"))


@asynccontextmanager
async def life(world: World, gates: Gates | None = None) -> AsyncIterator[None]:
    """Run server and controllers with these gates, on what is stored."""
    gates = gates or Gates()
    world.serve(gates=gates)
    config = ControllerConfig(
        transport=world.transport,
        served=of_scheme(SCHEME),
        gates=gates,
        ids=Ids(random.Random(2)),
        chosen=CONTROLLERS,
    )
    manager = build_manager(config, world.clock, Metrics())
    async with running(manager):
        await world.settle()
        yield

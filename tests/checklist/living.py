"""The controllers that devices concern, together, on a world that outlives them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from controllers.world import SCHEME, World
from sully.client.discovery import of_scheme
from sully.controlling import build_manager
from sully.machinery.gates import Gates
from sully.parts import Given
from sully.runtime.ids import Ids
from sully.runtime.metrics import Metrics
from sully.server.api import Api, Chance

CONTROLLERS = frozenset(("claims", "eviction", "expiry", "patchstatus", "scheduling"))


@asynccontextmanager
async def life(world: World, gates: Gates | None = None) -> AsyncIterator[None]:
    """Run server and controllers with these gates, on what is stored."""
    chance, gates = random.Random(1), gates or Gates()
    world.api = Api(
        scheme=SCHEME,
        store=world.store,
        chance=Chance(world.clock, Ids(chance), chance),
        gates=gates,
    )
    world.admin = world.transport("admin")
    given = Given(
        transport=world.transport,
        served=of_scheme(SCHEME),
        gates=gates,
        ids=Ids(chance),
        chosen=CONTROLLERS,
    )
    manager = build_manager(given, world.clock, Metrics())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(manager.run())
        try:
            await world.settle()
            yield
        finally:
            manager.stop()

"""The API server of a simulation: what `sully.app` builds, without a socket."""

from __future__ import annotations

import asyncio
import random
from functools import lru_cache

from simulator.clock import SimulatedClock
from simulator.disk import SimulatedDisk
from simulator.loop import Process
from simulator.storage import ObservedStore, Observer, open_store
from sully.api import build_scheme
from sully.app import ADMIN, APISERVER
from sully.machinery.gates import Gates, parse_gates
from sully.machinery.scheme import Scheme
from sully.runtime.ids import Ids
from sully.server.api import Api, Env
from sully.server.bootstrap import ensure_namespaces, ensure_policy, ensure_priority_classes
from sully.server.inprocess import InProcess
from sully.server.storage.event_expiry import EventExpiry
from sully.store.compaction import Compactor, Retention

GATES: Gates = parse_gates("SullyNoExecuteWithPodDisruptionBudget=true,SullyPreferNoSchedule=true")


@lru_cache(maxsize=1)
def scheme() -> Scheme:
    """Return the kinds; they are the same in every simulation."""
    return build_scheme()


class Server:
    """One start of the API server."""

    def __init__(self, process: Process, clock: SimulatedClock, store: ObservedStore) -> None:
        self.process = process
        self.clock = clock
        self.store = store
        rng = random.Random(store.revision)
        self.api = Api(scheme=scheme(), store=store, env=Env(clock, Ids(rng), rng), gates=GATES)

    async def prepare(self) -> None:
        """Do what precedes the first request."""
        api = self.api
        parts = (api.definitions, api.authorizer, api.devices, api.quotas)
        for part in (*parts, api.policies, api.priorities, api.limit_ranges):
            await part.start()
        await ensure_namespaces(InProcess(api, ADMIN))
        await ensure_policy(InProcess(api, ADMIN), GATES)
        await ensure_priority_classes(InProcess(api, APISERVER))

    async def run(self, *, history: float) -> None:
        """Run what the server does apart from requests."""
        api, clock = self.api, self.clock
        retention = Retention(seconds=history, interval=30.0)
        async with asyncio.TaskGroup() as tasks:
            for loop in (
                Compactor(api.store, clock, retention).run(),
                EventExpiry(api.store, clock).run(),
                api.authorizer.run(clock),
                api.devices.run(clock),
                api.quotas.run(clock),
                api.policies.run(clock),
                api.priorities.run(clock),
                api.limit_ranges.run(clock),
            ):
                tasks.create_task(loop)


async def start_server(
    process: Process,
    clock: SimulatedClock,
    disk: SimulatedDisk,
    observer: Observer,
    rng: random.Random,
) -> Server:
    """Open the store and return a server that is ready for requests."""
    server = Server(process, clock, await open_store(disk, observer, rng))
    await server.prepare()
    return server

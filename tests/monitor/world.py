"""A server in this process, and the agent of a node with GPUs."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

from embedded import embedded
from monitor.gpus import fresh_pynvml
from sully.api.sully.types import DeviceHealthSpec
from sully.client.direct import DirectTransport
from sully.client.transport import Key
from sully.domain.health.gpus import GpuMonitor, Settings
from sully.monitor.agent import Agent, Timing
from sully.monitor.nvml import Nvml
from sully.monitor.slices import SlicePublisher
from sully.runtime.clock import SystemClock
from sully.server.inprocess import InProcess
from sully.server.requests import User
from sully.store.memory import MemoryStore
from sully.testing.nvml import FakeNvml
from sully.testing.patience import PATIENCE
from sully.views.kinds import DEVICE_HEALTH

FAST = Timing(interval=0.02, renew=0.05, pause=0.01, timeout=PATIENCE, wait=0.05)
NODE = Key("", "n1")
Done = Callable[[DeviceHealthSpec], bool]


class World:
    """A server and the GPUs of a node."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        api = embedded(MemoryStore(), self.clock)
        self.admin = DirectTransport(InProcess(api, User("admin", ("system:masters",)), agent="t"))

    @asynccontextmanager
    async def agent(
        self,
        library: FakeNvml,
        *,
        timing: Timing = FAST,
        publisher: SlicePublisher | None = None,
        **settings: Any,
    ) -> AsyncIterator[Agent]:
        """Run an agent as long as the block lasts."""
        monitor = GpuMonitor(Settings(node="n1", boot_id="b1", **settings))
        with fresh_pynvml():
            agent = Agent(
                self.admin,
                monitor,
                lambda: Nvml.open(library),
                clock=self.clock,
                timing=timing,
                publisher=publisher,
            )
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(agent.run())
                try:
                    yield agent
                finally:
                    agent.stop()

    async def until(self, done: Done) -> DeviceHealthSpec:
        """Wait until the report is as it should be."""
        async with asyncio.timeout(PATIENCE), aclosing(self.admin.watch(DEVICE_HEALTH)) as events:
            async for event in events:
                if event.object is not None and event.type != "DELETED" and done(event.object.spec):
                    return event.object.spec
        raise AssertionError("the watch has ended")

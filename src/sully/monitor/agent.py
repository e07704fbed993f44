"""The agent of a node: measures its GPUs, listens to events, and writes the report.

The decisions are `domain/health/gpus.py`; this file only feeds it and writes what it returns. A
report is written when it changes, and otherwise renewed: its readers see that the agent is alive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from sully.api.sully.types import DeviceHealth, DeviceHealthSpec
from sully.client.options import WriteOptions
from sully.client.transport import TRANSIENT, Key, Transport
from sully.domain.health.gpus import REPORTER, GpuMonitor, same_content
from sully.domain.health.samples import Event, Gpu
from sully.machinery.errors import AlreadyExists, ApiError, Conflict, NotFound
from sully.machinery.meta import ObjectMeta
from sully.monitor.nvml import Nvml, NvmlError
from sully.monitor.slices import SlicePublisher
from sully.monitor.source import NvmlSource, UnresponsiveError
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger
from sully.runtime.tasks import wait_first
from sully.views.kinds import DEVICE_HEALTH

MANAGER = "sully-monitor"
_WRITE = WriteOptions(field_manager=MANAGER)
_log = get_logger("monitor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds between what the agent does."""

    interval: float = 5.0
    """Between two measurements."""
    renew: float = 10.0
    """Between two writes of an unchanged report."""
    pause: float = 0.5
    """Between two writes of any kind: a storm of events is one write."""
    timeout: float = 30.0
    """After which a driver that does not answer is a fault."""
    wait: float = 1.0
    """Of one wait for an event, and so until a library can be closed."""


class Agent:
    """Reports on the GPUs of one node."""

    def __init__(
        self,
        transport: Transport,
        monitor: GpuMonitor,
        opens: Callable[[], Nvml],
        *,
        clock: Clock,
        timing: Timing | None = None,
        publisher: SlicePublisher | None = None,
    ) -> None:
        self._transport = transport
        self._publisher = publisher
        self._monitor = monitor
        self._clock = clock
        self._timing = timing or Timing()
        self._changed = asyncio.Event()
        self._measured = asyncio.Event()
        self._stopped = asyncio.Event()
        self._stored: DeviceHealth | None = None
        self._restored = False
        self.source = NvmlSource(
            opens, self._event, clock=clock, timeout=self._timing.timeout, wait=self._timing.wait
        )

    async def run(self) -> None:
        """Work until stopped."""
        async with asyncio.TaskGroup() as tasks:
            loops = [tasks.create_task(self._measure()), tasks.create_task(self._report())]
            await self._stopped.wait()
            for loop in loops:
                loop.cancel()
        if self._publisher is not None:
            await self._publisher.withdraw()
        await self.source.close()

    def stop(self) -> None:
        """Stop; the report stays and becomes stale."""
        self._stopped.set()

    # -- measuring --------------------------------------------------------------------------------

    async def _measure(self) -> None:
        while True:
            await self.measure_once()
            await self._clock.sleep(self._timing.interval)

    async def measure_once(self) -> None:
        """Measure, and note what cannot be measured."""
        before = self._monitor.problem
        try:
            samples = await self.source.read()
        except UnresponsiveError:
            self._monitor.unresponsive(now=self._clock.now())
        except NvmlError as error:
            self._monitor.unavailable(f"NVML: {error}", now=self._clock.now())
        else:
            self._monitor.sampled(samples, now=self._clock.now())
            await self._publish(tuple(sample.gpu for sample in samples))
            if self._monitor.misses_gpus:
                # Opened again, the library finds GPUs that were reset.
                await self.source.close()
        if self._monitor.problem != before:
            _log.warning("measurement state changed", problem=self._monitor.problem or "none")
        self._measured.set()
        self._changed.set()

    async def _publish(self, gpus: tuple[Gpu, ...]) -> None:
        nvml = self.source.nvml
        if self._publisher is None or nvml is None:
            return
        try:
            await self._publisher.publish(gpus, nvml.driver_version)
        except (ApiError, *TRANSIENT) as error:
            _log.warning("slice not published", error=str(error))

    def _event(self, event: Event) -> None:
        _log.info("event received", uuid=event.uuid, kind=event.kind, data=event.data)
        self._monitor.event(event, now=self._clock.now())
        self._changed.set()

    # -- reporting --------------------------------------------------------------------------------

    async def _report(self) -> None:
        backoff, failures = Backoff(base=1.0, cap=15.0), 0
        await self._measured.wait()
        while True:
            self._changed.clear()
            try:
                await self._write()
                failures = 0
            except (ApiError, *TRANSIENT) as error:
                failures += 1
                _log.warning("report not written", error=str(error), failures=failures)
            await self._clock.sleep(max(self._timing.pause, backoff.delay(failures)))
            await self._until_due()

    async def _until_due(self) -> None:
        """Wait until the report has changed, or has to be renewed."""
        renewal = asyncio.ensure_future(self._clock.sleep(self._timing.renew))
        try:
            while not renewal.done():
                await wait_first(self._changed.wait(), asyncio.wait((renewal,)))
                self._changed.clear()
                if self._stored is None or not same_content(self._current(), self._stored.spec):
                    return
        finally:
            renewal.cancel()

    def _current(self) -> DeviceHealthSpec:
        return self._monitor.report(now=self._clock.now())

    async def _write(self) -> None:
        if not self._restored:
            await self._restore()
        try:
            if self._stored is None:
                metadata = ObjectMeta(name=self._monitor.settings.node)
                report = DeviceHealth(metadata=metadata, spec=self._current())
                self._stored = await self._transport.create(DEVICE_HEALTH, report, options=_WRITE)
            else:
                report = replace(self._stored, spec=self._current())
                self._stored = await self._transport.update(DEVICE_HEALTH, report, options=_WRITE)
        except NotFound:
            if self._stored is None:
                raise
            _log.info("report was deleted, its events are acknowledged")
            self._stored = None
            self._monitor.acknowledge()
            self._changed.set()
        except (AlreadyExists, Conflict):
            self._restored = False
            self._changed.set()

    async def _restore(self) -> None:
        """Read the report of an earlier process, and continue it."""
        key = Key("", self._monitor.settings.node)
        try:
            self._stored = await self._transport.get(DEVICE_HEALTH, key)
        except NotFound:
            self._stored = None
        if self._stored is not None and self._stored.spec.reporter == REPORTER:
            self._monitor.restore(self._stored)
        self._restored = True

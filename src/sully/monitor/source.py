"""NVML as the agent uses it: opened when needed, closed when it fails, never waited for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from sully.domain.health.samples import Event, Sample
from sully.monitor.nvml import Nvml, NvmlError
from sully.monitor.threads import Listener, in_thread
from sully.runtime.clock import Clock
from sully.runtime.tasks import wait_first


class UnresponsiveError(Exception):
    """A call to the driver did not return in time."""


class NvmlSource:
    """Reads samples and passes on events."""

    def __init__(
        self,
        opens: Callable[[], Nvml],
        on_event: Callable[[Event], None],
        *,
        clock: Clock,
        timeout: float,
        wait: float,
    ) -> None:
        self._opens = opens
        self._on_event = on_event
        self._clock = clock
        self._timeout = timeout
        self._milliseconds = int(wait * 1000)
        self._nvml: Nvml | None = None
        self._listener: Listener[Event] | None = None
        self._call: asyncio.Future[tuple[Sample, ...]] | None = None
        """One that has not returned is waited for again: there is never more than one."""

    @property
    def nvml(self) -> Nvml | None:
        """Return the library, if it is open."""
        return self._nvml

    async def read(self) -> tuple[Sample, ...]:
        """Return a sample of each GPU; raise NvmlError or UnresponsiveError."""
        if self._call is None:
            self._call = in_thread(self._read, "nvml")
        await self._wait_for(self._call)
        if not self._call.done():
            raise UnresponsiveError
        call, self._call = self._call, None
        try:
            samples = call.result()
        except NvmlError:
            await self.close()
            raise
        self._listen()
        return samples

    def _read(self) -> tuple[Sample, ...]:
        if self._nvml is None:
            self._nvml = self._opens()
        return self._nvml.read()

    def _listen(self) -> None:
        nvml = self._nvml
        if nvml is None or (self._listener is not None and not self._listener.ended.done()):
            return
        if self._listener is not None:
            # An error of the last wait; reading finds the cause.
            self._listener.ended.exception()
        self._listener = Listener(lambda: nvml.wait(self._milliseconds), self._on_event)

    async def close(self) -> None:
        """Close the library, so that it is opened again: also GPUs that were reset are found.

        A library in which a thread hangs is left as it is; to close it would hang, too, or crash.
        """
        listener, self._listener = self._listener, None
        nvml, self._nvml = self._nvml, None
        if listener is not None:
            listener.stop()
            await self._wait_for(listener.ended)
            if not listener.ended.done():
                return
            listener.ended.exception()
        if self._call is not None:
            # When it returns after all, the result is dropped.
            self._call.add_done_callback(asyncio.Future.exception)
        elif nvml is not None:
            await self._wait_for(in_thread(nvml.close, "nvml"))

    async def _wait_for(self, call: asyncio.Future[Any]) -> None:
        await wait_first(asyncio.wait((call,)), self._clock.sleep(self._timeout))

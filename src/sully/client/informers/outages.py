"""Reports an outage once when it begins and once when it ends, for all reporters together.

An unreachable server interrupts twenty watches and every write, and each of them retries. Only the
first failure is reported; repetitions are logged at debug level.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

import msgspec

from sully.client.transport import UnreachableError
from sully.machinery.errors import ServiceUnavailable, TooManyRequests
from sully.runtime.clock import Clock, Moment
from sully.runtime.log import get_logger

log = get_logger("client")

SERVER = "server"
"""The cause that all reporters share; any other cause belongs to one reporter."""
_UNAVAILABLE = (UnreachableError, ServiceUnavailable, TooManyRequests)


def is_outage(error: Exception) -> bool:
    """Report whether an error means that the server is unreachable or overloaded."""
    return isinstance(error, _UNAVAILABLE)


class _Outage(msgspec.Struct):
    since: Moment
    reporters: set[Hashable] = msgspec.field(default_factory=set)


class Outages:
    """Which reporters currently fail, and why."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._outages: dict[Hashable, _Outage] = {}
        self._causes: dict[Hashable, Hashable] = {}
        self._answered = asyncio.Event()

    @property
    def server_unavailable(self) -> bool:
        """Report whether the server is unavailable, at least to some."""
        return SERVER in self._outages

    def failed(self, reporter: Hashable, error: Exception) -> bool:
        """Record a failure; return whether it begins an outage."""
        cause: Hashable = SERVER if is_outage(error) else (reporter, type(error).__name__)
        if self._causes.get(reporter) == cause:
            return False
        self._remove(reporter)
        begins = cause not in self._outages
        outage = self._outages.setdefault(cause, _Outage(Moment.of(self._clock)))
        outage.reporters.add(reporter)
        self._causes[reporter] = cause
        return begins

    def recovered(self, reporter: Hashable, name: str) -> None:
        """Record a success, and report it if no other reporter still fails."""
        if self._causes.get(reporter) == SERVER:
            self._answered.set()
            self._answered = asyncio.Event()
        ended = self._remove(reporter)
        if ended is None:
            return
        cause, outage = ended
        seconds = outage.since.since(self._clock)
        if cause == SERVER:
            self._report_server_reachable(seconds)
        else:
            self._report_recovered(name, seconds)

    def cleared(self, reporter: Hashable) -> None:
        """Record that a reporter no longer fails, perhaps because it sent no request.

        An outage of the server lasts until the server answers: else it would be reported twice.
        """
        cause = self._causes.pop(reporter, None)
        if cause is not None:
            self._outages[cause].reporters.discard(reporter)
            if cause != SERVER:
                del self._outages[cause]

    def server_answered(self) -> None:
        """Record that the server answered a reporter that does not fail."""
        outage = self._outages.get(SERVER)
        if outage is not None and not outage.reporters:
            del self._outages[SERVER]
            self._report_server_reachable(outage.since.since(self._clock))

    async def wait_answered(self) -> None:
        """Wait until the server answers one of those that fail: the others need wait no longer."""
        await self._answered.wait()

    def forget(self, reporter: Hashable) -> None:
        """Remove a reporter that stops."""
        self._remove(reporter)

    def _report_server_reachable(self, seconds: float) -> None:
        log.info("server is reachable again", after=round(seconds, 3))

    def _report_recovered(self, name: str, seconds: float) -> None:
        log.info("recovered", what=name, after=round(seconds, 3))

    def _remove(self, reporter: Hashable) -> tuple[Hashable, _Outage] | None:
        """Return the outage that ends because this reporter was its last one, if so."""
        cause = self._causes.pop(reporter, None)
        if cause is None:
            return None
        outage = self._outages[cause]
        outage.reporters.discard(reporter)
        if outage.reporters:
            return None
        return cause, self._outages.pop(cause)

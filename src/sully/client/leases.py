"""Leader election over a Lease, by the rules of client-go.

Candidates never compare clocks: each measures on its own how long the Lease has not changed. A
leader that cannot renew gives up after the renew deadline, and others wait for the lease duration,
which is longer. `time_left` is checked before each write, so that not even a process that was
suspended for an hour writes when it resumes.
controllers/framework/leaderelection.py runs controllers by it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from sully.client.informers.outages import Outages
from sully.client.informers.reflector import ObjectSelector, Reflector
from sully.client.transport import (
    Key,
    Kind,
    Transport,
    UnreachableError,
    UnreadableError,
    WatchEvent,
)
from sully.domain.coordination import Lease, LeaseSpec
from sully.machinery.errors import AlreadyExists, ApiError, Conflict, NotFound
from sully.machinery.meta import ObjectMeta
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock, Moment
from sully.runtime.log import get_logger
from sully.runtime.tasks import wait_first

log = get_logger("client")

LEASES: Kind[Lease] = Kind("coordination.k8s.io", "v1", "leases", "Lease", Lease)
RELEASE_TRIES = 3
JITTER = 0.2
"""The largest random part of the retry period."""


class NotLeadingError(UnreachableError):
    """The lease is not held, or not certainly, so nothing may be written."""


class LeaseTiming(msgspec.Struct, frozen=True):
    """Seconds, as client-go's LeaseDuration > RenewDeadline > RetryPeriod with its jitter."""

    duration: float = 15.0
    """How long others wait after the last renewal that they observed."""
    renew: float = 10.0
    """After how long without a renewal a leader gives up."""
    retry: float = 2.0
    """How long to wait between two attempts."""

    def __post_init__(self) -> None:
        """Reject values with which two could lead, or none."""
        if self.duration < 1 or self.duration != int(self.duration):
            raise ValueError("the lease duration must be a whole number of seconds, at least 1")
        if self.renew >= self.duration:
            raise ValueError("the renew deadline must be shorter than the lease duration")
        if self.retry <= 0 or self.retry * (1 + JITTER) >= self.renew:
            raise ValueError(
                f"the renew deadline must be longer than {1 + JITTER} times the retry period"
            )


class LeaderElector:
    """One candidate for one lease."""

    def __init__(
        self,
        transport: Transport,
        key: Key,
        identity: str,
        *,
        clock: Clock,
        timing: LeaseTiming | None = None,
    ) -> None:
        self.key = key
        self.identity = identity
        self.timing = timing or LeaseTiming()
        self._transport = transport
        self._clock = clock
        # Only for its jitter: the delay itself never grows.
        self._retry = Backoff(base=self.timing.retry, cap=self.timing.retry, jitter=JITTER)
        self._observed: Lease | None = None
        self._observed_at = Moment.of(self._clock)
        self._watched: tuple[LeaseSpec, Moment] = (LeaseSpec(), self._observed_at)
        """The spec that the watch last delivered, and when."""
        self._renewed: Moment | None = None
        self._released_event = asyncio.Event()
        self._outages = Outages(clock)
        self.problem = ""
        """Why the last attempt failed, if the server did not answer it."""

    @property
    def holder(self) -> str:
        """Return the last observed holder; empty if there was none."""
        return self._observed.holder if self._observed is not None else ""

    @property
    def transitions(self) -> int:
        """Return how often the holder has changed."""
        return self._spec.lease_transitions or 0

    @property
    def _spec(self) -> LeaseSpec:
        return self._observed.spec if self._observed is not None else LeaseSpec()

    def time_left(self) -> float:
        """Return the seconds in which a write that starts now must end, before others may lead.

        Raises if no write may start. It implements `calls.WriteGuard`.
        """
        since = self._renewed.since(self._clock) if self._renewed is not None else 0.0
        if self._renewed is None or since >= self.timing.renew:
            raise NotLeadingError(f"the lease {self.key} is not held by {self.identity}")
        return self.timing.duration - since

    async def try_acquire_or_renew(self) -> bool:
        """Acquire or renew the lease if possible; return whether it is held."""
        try:
            held = await self._with_deadline()
        except (Conflict, AlreadyExists) as error:
            log.debug("lease acquired by another candidate", lease=str(self.key), error=str(error))
            held = False
        except (ApiError, UnreachableError, UnreadableError) as error:
            self.problem = str(error)
            report = log.warning if self._outages.failed(self, error) else log.debug
            report("failed to acquire or renew the lease", lease=str(self.key), error=str(error))
            return False
        self.problem = ""
        self._outages.recovered(self, f"lease {self.key}")
        return held

    async def _with_deadline(self) -> bool:
        """Acquire or renew the lease; an unanswered attempt must not delay the next one."""
        results: list[bool] = []

        async def work() -> None:
            results.append(await self._acquire_or_renew())

        await wait_first(work(), self._clock.sleep(self.timing.renew))
        if not results:
            raise UnreachableError("timed out")
        return results[0]

    async def acquire(self) -> None:
        """Retry until the lease is held; a release or an expiry is noticed immediately."""
        reflector = Reflector(
            self._transport,
            LEASES,
            _LeaseHandler(self._on_lease),
            clock=self._clock,
            selector=ObjectSelector(
                namespace=self.key.namespace, field_selector=f"metadata.name={self.key.name}"
            ),
        )
        reflector.report_to(self._outages)
        await wait_first(self._retry_until_acquired(), reflector.run())

    async def renew(self) -> None:
        """Renew the lease until that fails for longer than the renew deadline, then return."""
        while self._renewed is not None:
            remaining = self.timing.renew - self._renewed.since(self._clock)
            if remaining <= 0:
                break
            await wait_first(self._renew_soon(), self._clock.sleep(remaining))
        self._renewed = None
        log.warning("lease lost", lease=str(self.key), identity=self.identity)

    async def release(self) -> None:
        """Release the lease, so that others need not wait; only when all work has ended."""
        if self._renewed is None:
            return
        self._renewed = None
        try:
            for _ in range(RELEASE_TRIES):
                if await self._released():
                    return
        except (ApiError, UnreachableError, UnreadableError) as error:
            log.warning("failed to release the lease", lease=str(self.key), error=str(error))

    async def _released(self) -> bool:
        # Read again: a cancelled renewal may have been written.
        lease = await self._transport.get(LEASES, self.key)
        self._observe(lease)
        if self.holder != self.identity:
            return True
        now = self._clock.now()
        # No holder and a short duration: no candidate waits for it.
        spec = replace(
            lease.spec,
            holder_identity="",
            lease_duration_seconds=1,
            renew_time=now,
            acquire_time=now,
        )
        try:
            await self._transport.update(LEASES, replace(lease, spec=spec))
        except Conflict:
            return False
        return True

    async def _retry_until_acquired(self) -> None:
        while not await self.try_acquire_or_renew():
            self._released_event.clear()
            await wait_first(self._clock.sleep(self._until_next()), self._released_event.wait())

    def _until_next(self) -> float:
        """Return the seconds to the next attempt: a retry period, or until the lease expires."""
        period, remaining = self._retry.delay(1), self._until_expiry()
        return remaining if 0 < remaining < period else period

    def _on_lease(self, lease: Lease) -> None:
        """Record when the watch delivered the lease, which is before the next read of it."""
        self._watched = (lease.spec, Moment.of(self._clock))
        if not lease.holder:
            self._released_event.set()

    async def _renew_soon(self) -> None:
        await self._clock.sleep(self._retry.delay(1))
        await self.try_acquire_or_renew()

    async def _acquire_or_renew(self) -> bool:
        try:
            lease = await self._transport.get(LEASES, self.key)
            self._observe(lease)
        except NotFound:
            self._observe(None)
        if self.holder not in ("", self.identity) and not self._expired():
            self._renewed = None
            return False
        if self._renewed is not None:
            # Too late to renew silently: others may have led meanwhile.
            self.time_left()
        # Counted from before the request: others count from when they observe its effect.
        started = Moment.of(self._clock)
        self._observe(await self._write(self._acquired()))
        self._renewed = started
        return True

    async def _write(self, lease: Lease) -> Lease:
        if self._observed is not None:
            return await self._transport.update(LEASES, lease)
        return await self._transport.create(LEASES, lease)

    def _acquired(self) -> Lease:
        """Return the lease with this candidate as its holder."""
        now, observed = self._clock.now(), self._observed
        spec = replace(
            self._spec,
            holder_identity=self.identity,
            lease_duration_seconds=int(self.timing.duration),
            renew_time=now,
        )
        if self.holder != self.identity:
            # Otherwise it is a renewal, also after an expiry or a lost response.
            transitions = self.transitions + 1 if observed is not None else 0
            spec = replace(spec, acquire_time=now, lease_transitions=transitions)
        if observed is not None:
            return replace(observed, spec=spec)
        new = ObjectMeta(namespace=self.key.namespace, name=self.key.name)
        return Lease(metadata=new, spec=spec)

    def _observe(self, lease: Lease | None) -> None:
        before, self._observed = self._spec, lease
        if self._spec != before:
            delivered, at = self._watched
            self._observed_at = at if delivered == self._spec else Moment.of(self._clock)

    def _expired(self) -> bool:
        return self._until_expiry() <= 0

    def _until_expiry(self) -> float:
        """Return the seconds until the observed lease expires."""
        duration = self._spec.lease_duration_seconds
        # Only the monotonic clock: this one errs on the side of waiting.
        waited = self._clock.monotonic() - self._observed_at.monotonic
        return float(duration or self.timing.duration) - waited


class _LeaseHandler:
    """The sink of the watch; the lease itself is read from the server before each attempt."""

    def __init__(self, handler: Callable[[Lease], None]) -> None:
        self._handler = handler

    def replace(self, items: Sequence[Lease]) -> None:
        """Pass on the lease, or an empty one."""
        self._handler(items[0] if items else Lease())

    def change(self, event: WatchEvent[Lease]) -> None:
        """Pass on the changed lease, or an empty one if it was deleted."""
        self._handler(event.object if event.object and event.type != "DELETED" else Lease())

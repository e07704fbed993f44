"""Leader election over a Lease: of several processes that offer to work, one does.

The rules are those of client-go, so any client that follows them can take part. Candidates never
compare clocks: each measures, on its own, how long the record has not changed. A leader that
cannot renew gives up after `renew`, and others wait for `duration`, which is longer. `left` is the
leader's own account of that, asked before each write, so that not even a process that was stopped
for an hour writes a second time when it wakes. controllers/leading.py runs controllers by it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sully.client.informers.outages import Troubles
from sully.client.informers.reflector import Reflector, Selection
from sully.client.transport import (
    Key,
    Kind,
    Transport,
    UnreachableError,
    UnreadableError,
    WatchEvent,
)
from sully.machinery.errors import AlreadyExists, ApiError, Conflict, NotFound
from sully.machinery.timestamps import format_micro_time
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock, Moment
from sully.runtime.log import get_logger
from sully.runtime.tasks import wait_first

log = get_logger("client")

Obj = dict[str, Any]
LEASES: Kind[Obj] = Kind("coordination.k8s.io", "v1", "leases", "Lease", dict)
RELEASE_TRIES = 3
JITTER = 0.2
"""The largest part of the pause between two tries that is added at random."""


class NotLeadingError(UnreachableError):
    """The lease is not ours, or no longer surely ours, so nothing may be written."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How a lease is kept, in seconds: `duration` > `renew` > `retry` with its jitter."""

    duration: float = 15.0
    """How long others wait after the last renewal that they saw."""
    renew: float = 10.0
    """After how long without a renewal a leader stops."""
    retry: float = 2.0
    """How long to pause between two tries."""

    def __post_init__(self) -> None:
        """Refuse times under which two could lead, or none."""
        if self.duration < 1 or self.duration != int(self.duration):
            raise ValueError("the lease duration must be a whole number of seconds, at least 1")
        if self.renew >= self.duration:
            raise ValueError("the renew deadline must be shorter than the lease duration")
        if self.retry <= 0 or self.retry * (1 + JITTER) >= self.renew:
            raise ValueError(
                f"the renew deadline must be longer than {1 + JITTER} times the retry period"
            )


class Elector:
    """One candidate for one lease."""

    def __init__(
        self,
        transport: Transport,
        key: Key,
        identity: str,
        *,
        clock: Clock,
        timing: Timing | None = None,
    ) -> None:
        self.key = key
        self.identity = identity
        self.timing = timing or Timing()
        self._transport = transport
        self._clock = clock
        # Only for its jitter: the delay itself never grows.
        self._pause = Backoff(base=self.timing.retry, cap=self.timing.retry, jitter=JITTER)
        self._seen: Obj = {}
        self._seen_at = Moment.of(self._clock)
        self._heard: tuple[Obj, Moment] = ({}, self._seen_at)
        """What the lease said when a watch last told of it, and when that was."""
        self._renewed: Moment | None = None
        self._news = asyncio.Event()
        self._troubles = Troubles(clock)
        self.problem = ""
        """Why the last try came to nothing, if the server did not answer it."""

    @property
    def holder(self) -> str:
        """Return who led when we last looked; empty if nobody did."""
        return (self._seen.get("spec") or {}).get("holderIdentity") or ""

    @property
    def transitions(self) -> int:
        """Return how often the lease has passed on."""
        return (self._seen.get("spec") or {}).get("leaseTransitions") or 0

    def left(self) -> float:
        """Return the seconds in which what begins now must be over, before others may lead.

        Raises if nothing may begin any more. It fulfils `calls.Guard`.
        """
        since = self._renewed.since(self._clock) if self._renewed is not None else 0.0
        if self._renewed is None or since >= self.timing.renew:
            raise NotLeadingError(f"the lease {self.key} is not held by {self.identity}")
        return self.timing.duration - since

    async def attempt(self) -> bool:
        """Take or renew the lease, if that is possible now; say whether it is ours."""
        try:
            won = await self._in_time()
        except (Conflict, AlreadyExists) as error:
            log.debug("another was faster", lease=str(self.key), error=str(error))
            won = False
        except (ApiError, UnreachableError, UnreadableError) as error:
            self.problem = str(error)
            tell = log.warning if self._troubles.began(self, error) else log.debug
            tell("cannot use the lease", lease=str(self.key), error=str(error))
            return False
        self.problem = ""
        self._troubles.over(self, f"lease {self.key}")
        return won

    async def _in_time(self) -> bool:
        """Take or renew the lease; a try that is not answered must not keep us from the next."""
        won: list[bool] = []

        async def work() -> None:
            won.append(await self._take_or_renew())

        await wait_first(work(), self._clock.sleep(self.timing.renew))
        if not won:
            raise UnreachableError("no answer in time")
        return won[0]

    async def win(self) -> None:
        """Try until the lease is ours; a release is noticed at once, and so is an expiry."""
        watching = Reflector(
            self._transport,
            LEASES,
            _Bell(self._told),
            clock=self._clock,
            selection=Selection(
                namespace=self.key.namespace, field_selector=f"metadata.name={self.key.name}"
            ),
        )
        watching.report_to(self._troubles)
        await wait_first(self._try_until_won(), watching.run())

    async def keep(self) -> None:
        """Renew the lease until that fails for too long; then it is lost, and this returns."""
        while self._renewed is not None:
            left = self.timing.renew - self._renewed.since(self._clock)
            if left <= 0:
                break
            await wait_first(self._renew_soon(), self._clock.sleep(left))
        self._renewed = None
        log.warning("lost the lease", lease=str(self.key), identity=self.identity)

    async def release(self) -> None:
        """Give the lease up, so that the next need not wait; only when all work has ended."""
        if self._renewed is None:
            return
        self._renewed = None
        try:
            for _ in range(RELEASE_TRIES):
                if await self._released():
                    return
        except (ApiError, UnreachableError, UnreadableError) as error:
            log.warning("could not release the lease", lease=str(self.key), error=str(error))

    async def _released(self) -> bool:
        # Read anew: a renewal that was cut off may have happened all the same.
        self._see(await self._transport.get(LEASES, self.key))
        if self.holder != self.identity:
            return True
        now = format_micro_time(self._clock.now())
        # Nobody holds it: whoever reads this waits for nothing.
        free = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now}
        spec = self._seen["spec"] | free | {"acquireTime": now}
        try:
            await self._transport.update(LEASES, self._seen | {"spec": spec})
        except Conflict:
            return False
        return True

    async def _try_until_won(self) -> None:
        while not await self.attempt():
            self._news.clear()
            await wait_first(self._clock.sleep(self._until_next()), self._news.wait())

    def _until_next(self) -> float:
        """Return the seconds to the next try: a pause, or less if the lease ends before."""
        pause, left = self._pause.delay(1), self._believed()
        return left if 0 < left < pause else pause

    def _told(self, lease: Obj) -> None:
        """Note when a watch told of the lease, so that it does not count from when we next ask."""
        spec = lease.get("spec") or {}
        self._heard = (spec, Moment.of(self._clock))
        if not spec.get("holderIdentity"):
            self._news.set()

    async def _renew_soon(self) -> None:
        await self._clock.sleep(self._pause.delay(1))
        await self.attempt()

    async def _take_or_renew(self) -> bool:
        try:
            self._see(await self._transport.get(LEASES, self.key))
        except NotFound:
            self._see({})
        if self.holder not in ("", self.identity) and not self._expired():
            self._renewed = None
            return False
        if self._renewed is not None:
            # Too late to go on as if nothing had been: others may have led meanwhile.
            self.left()
        # Counted from before the request: others count from when they see its effect.
        begun = Moment.of(self._clock)
        self._see(await self._write(self._claimed()))
        self._renewed = begun
        return True

    async def _write(self, lease: Obj) -> Obj:
        if self._seen:
            return await self._transport.update(LEASES, lease)
        return await self._transport.create(LEASES, lease)

    def _claimed(self) -> Obj:
        """Return the lease as it is once we have it."""
        now = format_micro_time(self._clock.now())
        old = self._seen.get("spec") or {}
        spec = old | {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self.timing.duration),
            "renewTime": now,
        }
        if self.holder != self.identity:
            # Else it is our own, also if it had lapsed, or if the answer to taking it was lost.
            spec["acquireTime"] = now
            spec["leaseTransitions"] = self.transitions + 1 if self._seen else 0
        place = {"metadata": {"namespace": self.key.namespace, "name": self.key.name}}
        return (self._seen or place) | {"spec": spec}

    def _see(self, lease: Obj) -> None:
        if lease.get("spec") != self._seen.get("spec"):
            told, at = self._heard
            self._seen_at = at if told == lease.get("spec") else Moment.of(self._clock)
        self._seen = lease

    def _expired(self) -> bool:
        return self._believed() <= 0

    def _believed(self) -> float:
        """Return the seconds for which a holder is still believed to be there."""
        promised = (self._seen.get("spec") or {}).get("leaseDurationSeconds")
        # Only the steady clock: this one errs on the side of waiting.
        waited = self._clock.monotonic() - self._seen_at.monotonic
        return float(promised or self.timing.duration) - waited


class _Bell:
    """Tells of every change of the lease; what it says now is read from the server anyway."""

    def __init__(self, tell: Callable[[Obj], None]) -> None:
        self._tell = tell

    def replace(self, items: Sequence[Obj]) -> None:
        """Tell of the lease as it is, or that there is none."""
        self._tell(items[0] if items else {})

    def change(self, event: WatchEvent[Obj]) -> None:
        """Tell of the lease as it is now, or that it is gone."""
        self._tell({} if event.type == "DELETED" else event.object or {})

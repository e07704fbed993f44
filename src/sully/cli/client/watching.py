"""Watches of commands (`views/watching.py`), with reports of outages and of missing kinds."""

import asyncio
from collections.abc import AsyncIterator, Hashable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from sully.cli.client.errors import expired_text
from sully.cli.client.session import Session
from sully.cli.client.snapshots import missing_kind, warn_of_hidden
from sully.cli.output.formatting import duration
from sully.client.informers.outages import Outages, is_outage
from sully.client.kubeconfig.credentials import AccessError
from sully.client.transport import UnreachableError
from sully.machinery.errors import Unauthorized
from sully.runtime.log import configure
from sully.views.devices.exposures import Exposures
from sully.views.devices.usage import Usage
from sully.views.kinds import CLAIMS, CONSUMER_PODS
from sully.views.watching import Caches, inventory_of, watching

if TYPE_CHECKING:
    from sully.client.transport import Kind
    from sully.domain.capabilities.control_plane import ControlPlane
    from sully.views.snapshot.snapshot import Snapshot

REST_SECONDS = 0.1
"""How long changes are collected before they are printed: one write often causes several."""
_MAX_REST_SECONDS = 5.0
_REST_RATIO = 4
"""A watch pauses for this many times as long as its last output took."""


def rest_after(spent: float) -> float:
    """Return how long to collect changes when printing the last ones took this many seconds.

    In a large cluster something changes all the time, and a watch must not keep a core busy.
    """
    return min(max(REST_SECONDS, _REST_RATIO * spent), _MAX_REST_SECONDS)


class ReportedOutages(Outages):
    """Reports once that the server is unreachable, and once that it answers again.

    Controllers log the same (`client/informers/outages.py`), for each kind.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session.clock)
        self._session = session
        self._unreachable: asyncio.Queue[UnreachableError] = asyncio.Queue(maxsize=1)

    def failed(self, reporter: Hashable, error: Exception) -> bool:
        """Report an outage that is new; nothing is logged.

        Rejected credentials end the watch: the transport has asked for new ones already.
        """
        if isinstance(error, Unauthorized):
            raise error
        if isinstance(error, UnreachableError) and self._unreachable.empty():
            self._unreachable.put_nowait(error)
        if super().failed(reporter, error):
            why = error.why if isinstance(error, UnreachableError) else error
            unreachable = f"{self._session.server} is unreachable: {why}"
            text = unreachable if is_outage(error) else f"cannot watch: {error}"
            self._session.warn(f"{text}\n  the watch resumes when the server answers again")
        return False

    async def fail_when_expired(self) -> None:
        """Raise the failure of a server that is unreachable with an expired certificate."""
        while True:
            error = await self._unreachable.get()
            try:
                credential = await self._session.transport.credential()
            except AccessError:
                # A plugin may need the same network.
                continue
            if expired_text(credential.certificate, self._session.clock.now()):
                raise error

    def _report_server_reachable(self, seconds: float) -> None:
        self._session.warn(f"{self._session.server} answers again, after {duration(seconds)}")

    def _report_recovered(self, name: str, seconds: float) -> None:
        self._session.warn(f"watching {name} again, after {duration(seconds)}")


@asynccontextmanager
async def watch_kinds(
    session: Session,
    kinds: Sequence["Kind[Any]"],
    *,
    needed: Sequence["Kind[Any]"] = (),
    optional: Sequence["Kind[Any]"] = (),
) -> AsyncIterator[Caches]:
    """Watch kinds until the block ends; it begins when all were listed once.

    The `needed` kinds are required; no warning is printed about `optional` ones.
    """

    if session.stream is None:
        configure("console", level="error")  # outages are reported as text
    outages = ReportedOutages(session)
    try:
        async with (
            asyncio.TaskGroup() as tasks,
            watching(
                session.transport,
                kinds,
                clock=session.clock,
                outages=outages,
                namespace=session.namespace,
            ) as caches,
        ):
            expiry = tasks.create_task(outages.fail_when_expired())
            for gap in filter(None, map(caches.gap, needed)):
                raise missing_kind(gap)
            warn_of_hidden(session, (gap for gap in caches.gaps if gap.kind not in optional))
            await caches.wait_synced()
            yield caches
            expiry.cancel()
    except BaseExceptionGroup as group:
        # What the block or the watches raised.
        raise group.exceptions[0] from None


async def acting_here(session: Session) -> "ControlPlane":
    """Return which components schedule and evict on the server."""
    return await session.transport.control_plane()


def snapshot_of(
    session: Session, caches: Caches, kinds: Sequence["Kind[Any]"], plane: "ControlPlane"
) -> "Snapshot":
    """Return the current objects as a snapshot, for what is computed from one each time."""
    return caches.snapshot(kinds, session.clock.now(), plane)


def exposures_of(session: Session, caches: Caches, plane: "ControlPlane") -> "Exposures":
    """Return which pods use which tainted devices, always up to date."""

    policy = plane.eviction
    extended = policy.compat.evicts_extended_resources
    usage = Usage(
        pods=caches.of(CONSUMER_PODS), claims=caches.of(CLAIMS), extended_resources=extended
    )
    inventory = inventory_of(caches, plane)
    return Exposures(
        inventory,
        usage,
        clock=session.clock,
        policy=policy,
        pauses=plane.honors_pauses,
        rates=plane.honors_rates,
    )


class PendingChanges:
    """What changed since the last output; filled by event handlers."""

    def __init__(self) -> None:
        self._changed: dict[Any, None] = {}
        self._any = asyncio.Event()

    def add(self, *changed: Any) -> None:
        self._changed.update(dict.fromkeys(changed))
        if self._changed:
            self._any.set()

    async def wait(self, session: Session, caches: Caches, rest: float = REST_SECONDS) -> list[Any]:
        """Wait for changes and return them in order.

        After an outage, wait until all kinds are watched again: with only some of them up to date,
        the output would show a state that never existed.
        """
        await self._any.wait()
        await session.clock.sleep(rest)
        while caches.server_unavailable:
            await session.clock.sleep(REST_SECONDS)
        changed = list(self._changed)
        self._changed.clear()
        self._any.clear()
        return changed

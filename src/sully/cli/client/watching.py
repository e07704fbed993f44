"""Watches kinds of a server: caches that stay up to date, and reports of outages.

A kind that the server does not serve, or that may not be listed, is an empty cache, as it is
missing from a snapshot (`views/snapshot/loading.py`).
"""

import asyncio
from collections.abc import AsyncIterator, Hashable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from sully.cli.client.formatting import duration
from sully.cli.client.session import Session
from sully.cli.client.snapshots import missing_kind, warn_of_hidden
from sully.client.informers.outages import Outages, is_outage
from sully.client.transport import UnreachableError

if TYPE_CHECKING:
    from sully.client.informers.cache import Cache
    from sully.client.informers.reflector import ObjectSelector
    from sully.client.transport import Kind
    from sully.domain.capabilities.control_plane import ControlPlane
    from sully.views.devices.exposures import Exposures
    from sully.views.devices.inventory import Inventory
    from sully.views.snapshot.snapshot import Gap, Snapshot

T = TypeVar("T")
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

    def failed(self, who: Hashable, error: Exception) -> bool:
        """Report an outage that is new; nothing is logged."""
        if super().failed(who, error):
            why = error.why if isinstance(error, UnreachableError) else error
            unreachable = f"{self._session.server} is unreachable: {why}"
            text = unreachable if is_outage(error) else f"cannot watch: {error}"
            self._session.warn(f"{text}\n  the watch resumes when the server answers again")
        return False

    def _report_server_reachable(self, seconds: float) -> None:
        self._session.warn(f"{self._session.server} answers again, after {duration(seconds)}")

    def _report_recovered(self, name: str, seconds: float) -> None:
        self._session.warn(f"watching {name} again, after {duration(seconds)}")


class Caches:
    """The kinds that are watched."""

    def __init__(self, outages: Outages | None = None) -> None:
        self._caches: dict[Any, Cache[Any]] = {}
        self._gaps: dict[Any, Gap] = {}
        self._outages = outages

    @property
    def server_unavailable(self) -> bool:
        """Report whether the server is unreachable for some kinds."""
        return self._outages is not None and self._outages.server_unavailable

    def put(self, cache: "Cache[Any]", gap: "Gap | None" = None) -> None:
        """Add the cache of a kind, and why it is empty."""
        self._caches[cache.kind] = cache
        if gap is not None:
            self._gaps[cache.kind] = gap

    def gap(self, kind: "Kind[Any]") -> "Gap | None":
        """Return why a kind is missing, or None if it is not."""
        return self._gaps.get(kind)

    def of(self, kind: "Kind[T]") -> "Cache[T]":
        return self._caches[kind]


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
    from sully.client.informers.cache import Cache
    from sully.client.informers.informer import Informer
    from sully.client.informers.reflector import ObjectSelector
    from sully.runtime.log import configure

    configure("console", level="error")  # outages are reported as text
    outages = ReportedOutages(session)
    caches = Caches(outages)
    informers: list[Informer[Any]] = []
    gaps: list[Gap] = []
    for kind in kinds:
        where = await _where(session, kind)
        if isinstance(where, ObjectSelector):
            informers.append(Informer(session.transport, kind, clock=session.clock, selector=where))
            informers[-1].report_to(outages)
            caches.put(informers[-1])
            continue
        if kind in needed:
            raise missing_kind(where)
        gaps.append(where)
        caches.put(Cache(kind), where)
    warn_of_hidden(session, (gap for gap in gaps if gap.kind not in optional))
    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(informer.run()) for informer in informers]
            for informer in informers:
                await informer.wait_synced()
            yield caches
            for task in running:
                task.cancel()
    except BaseExceptionGroup as group:
        # What the command raised; informers run until they are cancelled.
        raise group.exceptions[0] from None


async def acting_here(session: Session) -> "ControlPlane":
    """Return who schedules and evicts on the server."""
    return await session.transport.control_plane()


def snapshot_of(
    session: Session, caches: Caches, kinds: Sequence["Kind[Any]"], plane: "ControlPlane"
) -> "Snapshot":
    """Return the current objects as a snapshot, for what is computed from one each time."""
    from sully.views.snapshot.snapshot import Objects, Snapshot

    return Snapshot(
        [Objects(kind, list(caches.of(kind).values())) for kind in kinds],
        taken=session.clock.now(),
        gaps=[gap for gap in map(caches.gap, kinds) if gap is not None],
        control_plane=plane,
    )


def inventory_of(caches: Caches, plane: "ControlPlane") -> "Inventory":
    """Return the devices, always up to date."""
    from sully.views.devices.inventory import Inventory
    from sully.views.kinds import CLASSES, PATCHES, RULES, SLICES
    from sully.views.snapshot.snapshot import features_of

    return Inventory(
        slices=caches.of(SLICES),
        classes=caches.of(CLASSES),
        rules=caches.of(RULES),
        patches=caches.of(PATCHES),
        features=features_of(plane),
    )


def exposures_of(session: Session, caches: Caches, plane: "ControlPlane") -> "Exposures":
    """Return which pods use which tainted devices, always up to date."""
    from sully.views.devices.exposures import Exposures
    from sully.views.devices.usage import Usage
    from sully.views.kinds import CLAIMS, PODS

    policy = plane.eviction
    extended = policy.compat.evicts_extended_resources
    usage = Usage(pods=caches.of(PODS), claims=caches.of(CLAIMS), extended_resources=extended)
    inventory = inventory_of(caches, plane)
    return Exposures(inventory, usage, clock=session.clock, policy=policy)


async def _where(session: Session, kind: "Kind[Any]") -> "ObjectSelector | Gap":
    """Return what of a kind can be watched: all, one namespace, or nothing."""
    from sully.client.informers.reflector import ObjectSelector
    from sully.client.options import ListOptions
    from sully.machinery.errors import Forbidden, NotFound
    from sully.views.snapshot.snapshot import Gap

    namespaces = ("", session.namespace) if kind.namespaced and session.namespace else ("",)
    gap = Gap(kind, "not served")
    for namespace in namespaces:
        try:
            await session.transport.list(kind, namespace, ListOptions(limit=1))
        except NotFound as error:
            return Gap(kind, "not served", error.message)
        except Forbidden as error:
            gap = Gap(kind, "not allowed", error.message)
        else:
            return ObjectSelector(namespace=namespace)
    return gap


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

"""Follows kinds of a server for as long as a command watches: caches that stay up to date.

A kind that the server does not have, or that may not be seen, is an empty cache, as it is missing
from a snapshot (`views/loading.py`).
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from sully.cli.client.calling import Session
from sully.cli.client.taking import no_answer, warn_of_hidden

if TYPE_CHECKING:
    from sully.client.informers.cache import Cache
    from sully.client.informers.outages import Outages
    from sully.client.informers.reflector import ObjectSelector
    from sully.client.transport import Kind
    from sully.views.devices.exposures import Exposures
    from sully.views.snapshot.snapshot import Gap

T = TypeVar("T")
REST_SECONDS = 0.1
"""How long changes are gathered before they are shown: one write often brings several."""
_MOST_REST = 5.0
_SHARE = 4
"""How many times as long as it takes to show something a watch rests before it does so again."""


def rest_after(spent: float) -> float:
    """Return how long to gather changes when the last ones took so many seconds to be shown.

    In a large cluster something happens at every moment, and a watch must not keep a core busy.
    """
    return min(max(REST_SECONDS, _SHARE * spent), _MOST_REST)


class Caches:
    """The kinds that are followed."""

    def __init__(self, outages: "Outages | None" = None) -> None:
        self._copies: dict[Any, Cache[Any]] = {}
        self._gaps: dict[Any, Gap] = {}
        self._outages = outages

    @property
    def away(self) -> bool:
        """Say whether some kinds cannot be followed, because the server is away."""
        return self._outages is not None and self._outages.server_unavailable

    def put(self, copy: "Cache[Any]", gap: "Gap | None" = None) -> None:
        """Add the cache of a kind, an empty one with why it is empty."""
        self._copies[copy.kind] = copy
        if gap is not None:
            self._gaps[copy.kind] = gap

    def gap(self, kind: "Kind[Any]") -> "Gap | None":
        """Return why a kind is missing, or None if it is not."""
        return self._gaps.get(kind)

    def of(self, kind: "Kind[T]") -> "Cache[T]":
        """Return the cache of a kind."""
        return self._copies[kind]


@asynccontextmanager
async def following(
    session: Session, kinds: Sequence["Kind[Any]"], *, needed: Sequence["Kind[Any]"] = ()
) -> AsyncIterator[Caches]:
    """Follow kinds until the block ends; it begins when all were seen once."""
    from sully.cli.client.outages import ReportedOutages
    from sully.client.informers.cache import Cache
    from sully.client.informers.informer import Informer
    from sully.client.informers.reflector import ObjectSelector
    from sully.runtime.log import configure

    configure("console", level="error")  # outages are told in words
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
            raise no_answer(where)
        gaps.append(where)
        caches.put(Cache(kind), where)
    warn_of_hidden(session, gaps)
    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(each.run()) for each in informers]
            for each in informers:
                await each.wait_synced()
            yield caches
            for task in running:
                task.cancel()
    except BaseExceptionGroup as group:
        # What the command raised; informers end only when they are told to.
        raise group.exceptions[0] from None


def exposures_of(session: Session, caches: Caches) -> "Exposures":
    """Return who is on which tainted device, as it is at every moment."""
    from sully.views.devices.exposures import Exposures
    from sully.views.devices.inventory import Inventory
    from sully.views.devices.usage import Usage
    from sully.views.kinds import CLAIMS, CLASSES, PATCHES, PODS, RULES, SLICES
    from sully.views.snapshot.snapshot import ALL_EFFECTS

    inventory = Inventory(
        slices=caches.of(SLICES),
        classes=caches.of(CLASSES),
        rules=caches.of(RULES),
        patches=caches.of(PATCHES),
    )
    usage = Usage(pods=caches.of(PODS), claims=caches.of(CLAIMS))
    return Exposures(inventory, usage, clock=session.clock, terms=ALL_EFFECTS)


async def _where(session: Session, kind: "Kind[Any]") -> "ObjectSelector | Gap":
    """Return what of a kind can be followed: all, that of the namespace asked for, or nothing."""
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


class News:
    """What changed since one last looked; filled by handlers, emptied by whoever shows it."""

    def __init__(self) -> None:
        self._touched: dict[Any, None] = {}
        self._any = asyncio.Event()

    def add(self, *touched: Any) -> None:
        """Note that things may be different."""
        self._touched.update(dict.fromkeys(touched))
        if self._touched:
            self._any.set()

    async def take(self, session: Session, caches: Caches, rest: float = REST_SECONDS) -> list[Any]:
        """Wait until something is different; return what, in the order in which it came.

        After an outage not before all kinds are followed again: what one of them tells without the
        others has never been so.
        """
        await self._any.wait()
        await session.clock.sleep(rest)
        while caches.away:
            await session.clock.sleep(REST_SECONDS)
        found = list(self._touched)
        self._touched.clear()
        self._any.clear()
        return found

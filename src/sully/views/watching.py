"""Watches kinds of a server: caches that stay up to date until the block ends.

A kind that the server does not serve, or that may not be listed, is an empty cache with a gap, as
it is missing from a snapshot (snapshot/loading.py). For commands with --watch and the dashboard.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, TypeVar

from sully.client.informers.cache import Cache
from sully.client.informers.informer import Informer
from sully.client.informers.outages import Outages
from sully.client.informers.reflector import ObjectSelector
from sully.client.options import ListOptions
from sully.client.transport import Kind, Transport
from sully.domain.capabilities.control_plane import ControlPlane
from sully.machinery.errors import Forbidden, NotFound
from sully.runtime.clock import Clock
from sully.views.devices.inventory import Inventory
from sully.views.kinds import CLASSES, PATCHES, RULES, SLICES
from sully.views.snapshot.snapshot import Gap, Objects, Snapshot, features_of

T = TypeVar("T")


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

    @property
    def refused(self) -> list[Kind[Any]]:
        """Return the kinds that may not be listed or watched any more."""
        return [
            kind
            for kind, cache in self._caches.items()
            if isinstance(cache, Informer) and isinstance(cache.freshness.problem, Forbidden)
        ]

    @property
    def gaps(self) -> list[Gap]:
        """Return why kinds are missing."""
        return list(self._gaps.values())

    def put(self, cache: Cache[Any], gap: Gap | None = None) -> None:
        """Add the cache of a kind, and why it is empty."""
        self._caches[cache.kind] = cache
        if gap is not None:
            self._gaps[cache.kind] = gap

    def gap(self, kind: Kind[Any]) -> Gap | None:
        """Return why a kind is missing, or None if it is not."""
        return self._gaps.get(kind)

    def of(self, kind: Kind[T]) -> Cache[T]:
        """Return the objects of a kind."""
        return self._caches[kind]

    async def wait_synced(self) -> None:
        """Wait until all kinds were listed once."""
        for cache in self._caches.values():
            if isinstance(cache, Informer):
                await cache.wait_synced()

    def snapshot(self, kinds: Iterable[Kind[Any]], now: datetime, plane: ControlPlane) -> Snapshot:
        """Return the current objects of kinds as a snapshot."""
        kinds = tuple(kinds)
        return Snapshot(
            [Objects(kind, list(self.of(kind).values())) for kind in kinds],
            taken=now,
            gaps=[gap for gap in map(self.gap, kinds) if gap is not None],
            control_plane=plane,
        )


@asynccontextmanager
async def watching(
    transport: Transport,
    kinds: Sequence[Kind[Any]],
    *,
    clock: Clock,
    outages: Outages,
    namespace: str = "",
    hidden: Collection[Kind[Any]] = (),
) -> AsyncIterator[Caches]:
    """Watch kinds until the block ends; `wait_synced` returns when all were listed once.

    A kind that may be listed only in `namespace` is watched there. Kinds that are `hidden` are not
    asked for: they may not be watched.
    """
    caches, informers = Caches(outages), []
    for kind in hidden:
        caches.put(Cache(kind), Gap(kind, "not allowed"))
    kinds = [kind for kind in kinds if kind not in hidden]
    places = await asyncio.gather(*(_where(transport, kind, namespace) for kind in kinds))
    for kind, where in zip(kinds, places, strict=True):
        if isinstance(where, Gap):
            caches.put(Cache(kind), where)
            continue
        informer: Informer[Any] = Informer(transport, kind, clock=clock, selector=where)
        informer.report_to(outages)
        informers.append(informer)
        caches.put(informer)
    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(informer.run()) for informer in informers]
            yield caches
            for task in running:
                task.cancel()
    except BaseExceptionGroup as group:
        # What the block raised; informers run until they are cancelled.
        raise group.exceptions[0] from None


async def _where(transport: Transport, kind: Kind[Any], namespace: str) -> ObjectSelector | Gap:
    """Return what of a kind can be watched: all, one namespace, or nothing."""
    name = ""
    while True:
        try:
            await transport.list(kind, name, ListOptions(limit=1))
        except NotFound as error:
            return Gap(kind, "not served", error.message)
        except Forbidden as error:
            if name or not (kind.namespaced and namespace):
                return Gap(kind, "not allowed", error.message)
            name = namespace
        else:
            return ObjectSelector(namespace=name)


def inventory_of(caches: Caches, plane: ControlPlane) -> Inventory:
    """Return the devices, always up to date."""
    return Inventory(
        slices=caches.of(SLICES),
        classes=caches.of(CLASSES),
        rules=caches.of(RULES),
        patches=caches.of(PATCHES),
        features=features_of(plane),
    )

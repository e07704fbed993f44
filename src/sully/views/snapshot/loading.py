"""Takes a snapshot of a running cluster: lists what is asked for, all kinds at once.

A server that does not have a kind, or does not let us see it, leaves a gap that the snapshot
names; whoever cannot do without the kind says so. An older server may have a kind in another
version only: then that is read and converted, as the embedded server does it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Any

from sully.client.objects import from_body
from sully.client.options import ListOptions
from sully.client.transport import Kind, Transport
from sully.domain.capabilities.control_plane import ControlPlane
from sully.machinery.errors import Forbidden, Gone, NotFound
from sully.views.snapshot.snapshot import Gap, Objects, Snapshot

PAGE_SIZE = 5000
"""Large, because whoever takes a snapshot wants it soon; still no answer takes minutes."""


async def load(
    transport: Transport,
    kinds: Iterable[Kind[Any]],
    *,
    now: datetime,
    namespace: str = "",
    at_least: str = "",
    control_plane: Callable[[], Awaitable[ControlPlane | None]] | None = None,
) -> Snapshot:
    """List all objects of these kinds; with a namespace only those in it, and all without one.

    Where those of all namespaces may not be listed, those of the one that is wanted `at_least` are,
    and a gap says so.
    A resource that is asked for as several types is listed once. `control_plane` finds out who
    schedules and evicts; it runs meanwhile.
    """
    wanted: dict[tuple[str, str], Kind[Any]] = {}
    for kind in kinds:
        known = wanted.setdefault((kind.group, kind.plural), kind)
        if known.type != kind.type:
            wanted[kind.group, kind.plural] = kind.read_as(dict[str, Any])
    try:
        async with asyncio.TaskGroup() as tasks:
            started = [
                tasks.create_task(
                    _fetch(transport, kind, (namespace, at_least) if kind.namespaced else ("",))
                )
                for kind in wanted.values()
            ]
            plane = await control_plane() if control_plane is not None else None
    except BaseExceptionGroup as group:
        # One is enough to know: they all speak to the same server.
        raise group.exceptions[0] from group
    found = [part for each in started for part in each.result()]
    return Snapshot(
        [each for each in found if isinstance(each, Objects)],
        taken=now,
        gaps=[each for each in found if isinstance(each, Gap)],
        control_plane=plane,
    )


async def _fetch(
    transport: Transport, kind: Kind[Any], namespaces: tuple[str, ...]
) -> list[Objects | Gap]:
    first, *others = namespaces
    try:
        return [Objects(kind, await list_all(transport, kind, first))]
    except Forbidden as error:
        if not any(others):
            return [Gap(kind, "not allowed", error.message)]
        found = await _fetch(transport, kind, (others[0],))
        known = any(isinstance(each, Objects) for each in found)
        return [*found, Gap(kind, "not allowed", error.message, others[0])] if known else found
    except NotFound:
        return [await _fetch_other_version(transport, kind, first)]


async def _fetch_other_version(
    transport: Transport, kind: Kind[Any], namespace: str
) -> Objects | Gap:
    # A late import: most servers have the version that we prefer.
    from sully.api import build_scheme

    resource = build_scheme().find(kind.group, kind.version, kind.plural)
    for version in resource.versions if resource is not None else ():
        if version.name == kind.version:
            continue
        other = Kind(
            kind.group, version.name, kind.plural, kind.kind, dict[str, Any], kind.namespaced
        )
        try:
            items = await list_all(transport, other, namespace)
        except NotFound:
            continue
        hub = [each if version.to_hub is None else version.to_hub(each) for each in items]
        return Objects(kind, [from_body(kind, each) for each in hub])
    return Gap(kind, "not served", f"the server has no {kind.plural}.{kind.group}".rstrip("."))


async def list_all(
    transport: Transport, kind: Kind[Any], namespace: str = "", *, page_size: int = PAGE_SIZE
) -> list[Any]:
    """Return all objects of a kind, page by page."""
    try:
        return await _pages(transport, kind, namespace, page_size)
    except Gone:
        # The pages took longer than the server keeps them: ask for all at once.
        return await _pages(transport, kind, namespace, 0)


async def _pages(transport: Transport, kind: Kind[Any], namespace: str, limit: int) -> list[Any]:
    items: list[Any] = []
    token = ""
    while True:
        options = ListOptions(limit=limit, continue_token=token)
        page = await transport.list(kind, namespace, options)
        items += page.items
        token = page.continue_token
        if not token:
            return items

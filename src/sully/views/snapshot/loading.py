"""Takes a snapshot of a running cluster: lists the requested kinds concurrently.

A kind that a server does not serve, or does not allow to list, is a `Gap` of the snapshot. An older
server may have a kind in another version only: then that is listed and converted, as the embedded
server does it.
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
"""Large, because a snapshot should not take long; still no response takes minutes."""


async def load(
    transport: Transport,
    kinds: Iterable[Kind[Any]],
    *,
    now: datetime,
    namespace: str = "",
    at_least: str = "",
    control_plane: Callable[[], Awaitable[ControlPlane | None]] | None = None,
) -> Snapshot:
    """List all objects of these kinds; with a namespace only those in it.

    Where objects of all namespaces cannot be listed, those of the namespace `at_least` are, and the
    snapshot has a gap. A resource that is requested as several types is listed once. Who schedules
    and evicts is found out at the same time.
    """
    resources: dict[tuple[str, str], Kind[Any]] = {}
    for kind in kinds:
        first = resources.setdefault((kind.group, kind.plural), kind)
        if first.type != kind.type:
            resources[kind.group, kind.plural] = kind.read_as(dict[str, Any])
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(
                    _fetch(transport, kind, (namespace, at_least) if kind.namespaced else ("",))
                )
                for kind in resources.values()
            ]
            plane = await control_plane() if control_plane is not None else None
    except BaseExceptionGroup as errors:
        # One is enough: they are from the same server.
        raise errors.exceptions[0] from errors
    results = [result for task in tasks for result in task.result()]
    return Snapshot(
        [result for result in results if isinstance(result, Objects)],
        taken=now,
        gaps=[result for result in results if isinstance(result, Gap)],
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
        results = await _fetch(transport, kind, (others[0],))
        if any(isinstance(result, Objects) for result in results):
            results.append(Gap(kind, "not allowed", error.message, others[0]))
        return results
    except NotFound:
        return [await _fetch_other_version(transport, kind, first)]


async def _fetch_other_version(
    transport: Transport, kind: Kind[Any], namespace: str
) -> Objects | Gap:
    # A late import: most servers have the hub version.
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
        hub = [item if version.to_hub is None else version.to_hub(item) for item in items]
        return Objects(kind, [from_body(kind, item) for item in hub])
    return Gap(kind, "not served", f"the server has no {kind.plural}.{kind.group}".rstrip("."))


async def list_all(
    transport: Transport, kind: Kind[Any], namespace: str = "", *, page_size: int = PAGE_SIZE
) -> list[Any]:
    """Return all objects of a kind, page by page."""
    try:
        return await _pages(transport, kind, namespace, page_size)
    except Gone:
        # The continue token expired: list everything in one response.
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

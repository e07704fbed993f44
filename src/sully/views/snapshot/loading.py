"""Takes a snapshot of a running cluster: lists the requested kinds concurrently.

A kind that a server does not serve, or does not allow to list, is a `Gap` of the snapshot. An older
server may have a kind in another version only: then that is listed and converted, as the embedded
server does it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from datetime import datetime
from typing import Any, Protocol

import msgspec

from sully.client.objects import from_body
from sully.client.options import ListOptions
from sully.client.transport import Kind, Transport
from sully.domain.capabilities.control_plane import ControlPlane
from sully.domain.eviction.pod_events import EVENT_REASON
from sully.machinery.errors import Forbidden, Gone, NotFound
from sully.views.kinds import PATCHES, RULES, SLICES
from sully.views.snapshot.kinds import EVICTION_EVENTS, NODES
from sully.views.snapshot.on_demand import is_needed, is_on_demand
from sully.views.snapshot.snapshot import Gap, Objects, Snapshot

PAGE_SIZE = 5000
"""Large, because a snapshot should not take long; still no response takes minutes."""
_ONE_VERSION = frozenset(("", "apps", "batch", "policy"))
"""Groups that no supported server has in another version."""


class ControlPlaneDiscovery(Protocol):
    """Finds out which components schedule and evict on a server."""

    async def control_plane(self, *, gates: bool = True) -> ControlPlane:
        """Return it, with the feature gates that can be known."""


class ControlPlaneQuery(msgspec.Struct, frozen=True):
    """Returns which components schedule and evict."""

    discovery: ControlPlaneDiscovery
    gates: bool = False
    """Whether to read the feature gates in any case, not only if something depends on them."""


async def load(
    transport: Transport,
    kinds: Iterable[Kind[Any]],
    *,
    now: datetime,
    namespace: str = "",
    at_least: str = "",
    acting: ControlPlaneQuery | None = None,
) -> Snapshot:
    """List all objects of these kinds; with a namespace only those in it.

    Where objects of all namespaces cannot be listed, those of the namespace `at_least` are, and the
    snapshot has a gap. A resource that is requested as several types is listed once, and one that
    only some pods need after the pods. Which components schedule and evict is found out at the same
    time; feature gates only if asked for, or if something is there that depends on them, because
    reading them is expensive on some servers.
    """
    resources: dict[tuple[str, str], Kind[Any]] = {}
    for kind in kinds:
        first = resources.setdefault((kind.group, kind.plural), kind)
        if first.type != kind.type:
            resources[kind.group, kind.plural] = kind.read_as(dict[str, Any])
    pods = resources.get(("", "pods"))
    later = [kind for kind in resources.values() if is_on_demand(kind, pods)]
    immediately = [kind for kind in resources.values() if kind not in later]
    namespaces = (namespace, at_least)
    try:
        async with asyncio.TaskGroup() as group:
            listing = group.create_task(_fetch_all(transport, immediately, namespaces))
            plane = await acting.discovery.control_plane(gates=acting.gates) if acting else None
        results = listing.result()
        needed = [kind for kind in later if is_needed(kind, _objects(results))]
        results += await _fetch_all(transport, needed, namespaces)
    except BaseExceptionGroup as errors:
        # One is enough: they are from the same server.
        raise _first_of(errors) from errors
    objects = _objects(results)
    if acting is not None and any(map(_depend_on_gates, objects)):
        plane = await acting.discovery.control_plane(gates=True)
    return Snapshot(
        objects,
        taken=now,
        gaps=[result for result in results if isinstance(result, Gap)],
        control_plane=plane,
    )


def _first_of(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    error = errors.exceptions[0]
    return _first_of(error) if isinstance(error, BaseExceptionGroup) else error


def _objects(results: Iterable[Objects | Gap]) -> list[Objects]:
    return [result for result in results if isinstance(result, Objects)]


async def _fetch_all(
    transport: Transport, kinds: Iterable[Kind[Any]], namespaces: tuple[str, str]
) -> list[Objects | Gap]:
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_fetch(transport, kind, namespaces if kind.namespaced else ("",)))
            for kind in kinds
        ]
    return [result for task in tasks for result in task.result()]


def _depend_on_gates(objects: Objects) -> bool:
    """Report whether feature gates decide about the effect of these objects."""
    if objects.kind.group != RULES.group:
        return False
    if objects.kind.plural == SLICES.plural:
        return any(map(_has_taints, objects.items))
    return objects.kind.plural in (RULES.plural, PATCHES.plural) and bool(objects.items)


def _has_taints(slice_: Any) -> bool:
    if isinstance(slice_, dict):
        spec = slice_.get("spec") or {}
        return any(device.get("taints") for device in spec.get("devices") or ())
    return any(device.taints for device in slice_.spec.devices)


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
    if kind.group in _ONE_VERSION:
        return _not_served(kind)
    # A late import: most servers have the storage version.
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
        stored = [item if version.to_stored is None else version.to_stored(item) for item in items]
        return Objects(kind, [from_body(kind, item) for item in stored])
    return _not_served(kind)


def _not_served(kind: Kind[Any]) -> Gap:
    return Gap(kind, "not served", f"the server has no {kind.plural}.{kind.group}".rstrip("."))


async def with_nodes(transport: Transport, snapshot: Awaitable[Snapshot]) -> Snapshot:
    """Return a snapshot with the nodes, if they may be listed, which is done at the same time."""
    try:
        async with asyncio.TaskGroup() as group:
            listing = group.create_task(_fetch(transport, NODES, ("",)))
            taken = await snapshot
    except BaseExceptionGroup as errors:
        raise _first_of(errors) from errors
    nodes = _objects(listing.result())
    return taken.with_objects(NODES, *nodes[0].items) if nodes else taken


async def with_eviction_events(
    transport: Transport, snapshot: Snapshot, namespace: str = ""
) -> Snapshot:
    """Return a snapshot with the Events of eviction controllers, if they may be listed."""
    fields = f"reason={EVENT_REASON}"
    try:
        events = await list_all(transport, EVICTION_EVENTS, namespace, field_selector=fields)
    except (Forbidden, NotFound):
        return snapshot
    return snapshot.with_objects(EVICTION_EVENTS, *events) if events else snapshot


async def list_all(
    transport: Transport,
    kind: Kind[Any],
    namespace: str = "",
    *,
    page_size: int = PAGE_SIZE,
    field_selector: str = "",
) -> list[Any]:
    """Return all objects of a kind, page by page."""
    try:
        return await _pages(transport, kind, namespace, page_size, field_selector)
    except Gone:
        # The continue token expired: list everything in one response.
        return await _pages(transport, kind, namespace, 0, field_selector)


async def _pages(
    transport: Transport, kind: Kind[Any], namespace: str, limit: int, fields: str
) -> list[Any]:
    items: list[Any] = []
    token = ""
    while True:
        options = ListOptions(limit=limit, continue_token=token, field_selector=fields)
        page = await transport.list(kind, namespace, options)
        items += page.items
        token = page.continue_token
        if not token:
            return items

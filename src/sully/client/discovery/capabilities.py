"""Discovers what an API server supports, and sends calls to the groups that have its kinds.

What follows from the answers is decided in `domain.capabilities`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from sully.client.calls import Call, Calls
from sully.client.discovery.conversion import converter_for
from sully.client.discovery.resources import APIResource, discover
from sully.client.transport import Key, Kind, Page, WatchEvent
from sully.domain.capabilities.duties import evictor
from sully.domain.capabilities.offers import (
    DEVICES,
    RULE_VERSIONS,
    Answers,
    Fields,
    is_own,
    offer,
    spoken,
)
from sully.machinery.errors import Forbidden, NotAcceptable, NotFound

if TYPE_CHECKING:
    from sully.client.http.transport import HttpTransport

T = TypeVar("T")
Moves = Mapping[tuple[str, str], tuple[str, str]]

ROLES: Kind[dict[str, Any]] = Kind(
    "rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", dict, namespaced=False
)
EVICTOR_ROLE = Key("", "system:controller:device-taint-eviction-controller")
"""A Kubernetes API server creates it when device taints are enabled."""
OUR_EVICTOR_ROLE = Key("", "sully:eviction")
"""`sully install` creates it only where Sully evicts."""


async def probe(transport: HttpTransport, served: Iterable[APIResource] | None = None) -> Answers:
    """Discover a server; what may not be read counts as not served."""
    discovered = tuple(served) if served is not None else await discover(transport)
    version = await transport.document("/version")
    git_version = str(version.get("gitVersion", "")) if isinstance(version, dict) else ""
    resources = _resources(discovered)
    versions = [version for version in dict.fromkeys(spoken(resources)) if version]
    return Answers(
        git_version=git_version,
        resources=resources,
        schemas={
            version: fields for version in versions if (fields := await _schema(transport, version))
        },
        evictor_role=not is_own(git_version) and await has_role(transport),
    )


def _resources(served: Iterable[APIResource]) -> dict[tuple[str, str], tuple[str, ...]]:
    versions: dict[tuple[str, str], tuple[str, ...]] = {}
    for resource in served:
        versions[resource.group, resource.plural] = resource.versions
        for version, name in resource.parts:
            at = resource.group, f"{resource.plural}/{name}"
            versions[at] = (*versions.get(at, ()), version)
    return versions


async def _schema(transport: HttpTransport, version: str) -> Fields:
    """Return the fields of every type in one version of the device API."""
    try:
        document = await transport.document(f"/openapi/v3/apis/{DEVICES}/{version}")
    except (NotFound, Forbidden, NotAcceptable):
        # Without a schema every added field counts as unknown, which rejects too much.
        return {}
    return fields_of(document)


def fields_of(document: Any) -> Fields:
    """Read the fields of all types from an OpenAPI document; types go by their last name."""
    components = document.get("components") if isinstance(document, dict) else None
    schemas = (components or {}).get("schemas") or {}
    return {
        name.rpartition(".")[2]: frozenset(schema.get("properties") or ())
        for name, schema in schemas.items()
    }


async def sully_evicts(transport: HttpTransport) -> bool:
    """Report whether it is Sully that evicts on a server, as far as that can be discovered."""
    server = offer(await probe(transport))
    return evictor(server).sully or await has_role(transport, OUR_EVICTOR_ROLE)


async def has_role(transport: HttpTransport, name: Key = EVICTOR_ROLE) -> bool:
    """Report whether a ClusterRole exists, as far as the user may know."""
    try:
        await transport.get(ROLES, name)
    except (NotFound, Forbidden):
        return False
    return True


def relocated(served: Iterable[APIResource], moves: Moves) -> tuple[APIResource, ...]:
    """Return the resources of a server as seen through a `RelocatedTransport`."""
    discovered = tuple(served)
    shown = []
    for (group, plural), (actual_group, version) in moves.items():
        served_as = [
            resource
            for resource in discovered
            if (resource.group, resource.plural) == (actual_group, plural)
            and version in resource.versions
        ]
        # Which version a caller uses is not known here.
        shown += [replace(resource, group=group, versions=RULE_VERSIONS) for resource in served_as]
    replaced = {(resource.group, resource.plural) for resource in shown}
    return (
        *(resource for resource in discovered if (resource.group, resource.plural) not in replaced),
        *shown,
    )


class RelocatedTransport(Calls):
    """A transport to a server that has some kinds in another group or version."""

    def __init__(self, inner: Calls, moves: Moves) -> None:
        self._inner = inner
        self._moves = moves

    async def close(self) -> None:
        """Close the inner transport."""
        await cast("Any", self._inner).close()

    async def _object(self, kind: Kind[T], call: Call) -> T:
        return await converted_object(self._inner._object, kind, self._to(call))

    async def _page(self, kind: Kind[T], call: Call) -> Page[T]:
        return await converted_page(self._inner._page, kind, self._to(call))

    async def _done(self, call: Call) -> None:
        await self._inner._done(self._to(call))

    def _events(self, kind: Kind[T], call: Call) -> AsyncGenerator[WatchEvent[T], None]:
        return converted_events(self._inner._events, kind, self._to(call))

    def _to(self, call: Call) -> Call:
        return moved(call, self._moves)


async def converted_object(
    send: Callable[[Kind[Any], Call], Awaitable[Any]], kind: Kind[T], call: Call
) -> T:
    """Send a call whose kind may have another shape, and return the object in ours."""
    converter = converter_for(call.ref)
    if converter is None:
        return cast("T", await send(kind, call))
    return converter.read(kind, await send(kind.read_as(dict), converter.sent(call)))


async def converted_page(
    send: Callable[[Kind[Any], Call], Awaitable[Page[Any]]], kind: Kind[T], call: Call
) -> Page[T]:
    """List a kind that may have another shape."""
    converter = converter_for(call.ref)
    if converter is None:
        return await send(kind, call)
    return converter.page(kind, await send(kind.read_as(dict), call))


async def converted_events(
    send: Callable[[Kind[Any], Call], AsyncGenerator[WatchEvent[Any], None]],
    kind: Kind[T],
    call: Call,
) -> AsyncGenerator[WatchEvent[T], None]:
    """Watch a kind that may have another shape."""
    converter = converter_for(call.ref)
    async with aclosing(send(kind.read_as(dict) if converter else kind, call)) as events:
        async for event in events:
            yield converter.event(kind, event) if converter else event


def moved(call: Call, moves: Moves) -> Call:
    """Return a call to where its resource is."""
    target = moves.get((call.ref.group, call.ref.plural))
    if target is None:
        return call
    group, version = target
    ref = msgspec.structs.replace(call.ref, group=group, version=version)
    return msgspec.structs.replace(call, ref=ref, body=_renamed(call, f"{group}/{version}"))


def _renamed(call: Call, api_version: str) -> Any:
    # What is sent to a subresource may be of another kind, except to the status.
    same = call.ref.subresource in ("", "status")
    options = call.verb in ("delete", "deletecollection")
    if options or not same or not isinstance(call.body, dict) or "apiVersion" not in call.body:
        return call.body
    return {**call.body, "apiVersion": api_version}

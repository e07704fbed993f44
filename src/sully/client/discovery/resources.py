"""The resources of a server: from the scheme of the embedded one, or discovered.

Controllers that treat all kinds alike, such as garbage collection, take a list of these and need
not know where it comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from sully.client.transport import Kind, UnreadableError

if TYPE_CHECKING:
    from sully.client.http.transport import HttpTransport
    from sully.machinery.scheme import Scheme

T = TypeVar("T")

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
CUSTOM_VERBS = frozenset(
    ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
)
ALIASES = frozenset({("events.k8s.io", "events")})
"""Resources that show objects of another one; discovery does not list them."""


class APIResource(msgspec.Struct, frozen=True):
    """One resource of an API server, in every version that it is served in."""

    group: str
    versions: tuple[str, ...]
    """The one to use first."""
    plural: str
    kind: str
    namespaced: bool
    verbs: frozenset[str]
    alias: bool = False
    """Whether it shows objects of another resource in another shape."""
    parts: tuple[tuple[str, str], ...] = ()
    """Its subresources, as pairs of version and name."""

    def as_kind(self, type_: type[T]) -> Kind[T]:
        """Return the resource as a kind that is read as a type."""
        return Kind(
            self.group,
            self.versions[0],
            self.plural,
            self.kind,
            type_,
            namespaced=self.namespaced,
        )


def of_scheme(scheme: Scheme) -> tuple[APIResource, ...]:
    """Return the resources of the embedded server, without those of definitions: they change."""
    return tuple(_served(scheme))


def _served(scheme: Scheme) -> Iterable[APIResource]:
    for resource in scheme.resources():
        versions = tuple(version.name for version in resource.versions if version.enabled)
        if versions and resource.storage_version.custom is None:
            yield APIResource(
                group=resource.group,
                versions=versions,
                plural=resource.plural,
                kind=resource.kind,
                namespaced=resource.namespaced,
                verbs=frozenset(resource.verbs),
                alias=bool(resource.storage),
            )


async def discover(transport: HttpTransport) -> tuple[APIResource, ...]:
    """Discover the resources of a server."""
    resources: list[APIResource] = []
    for path in ("/api", "/apis"):
        document = await transport.document(path, AGGREGATED)
        if not isinstance(document, dict) or document.get("kind") != "APIGroupDiscoveryList":
            raise UnreadableError(f"{path}: the server does not support aggregated discovery")
        for group in document.get("items") or ():
            resources += _of_group(group)
    return tuple(resources)


def _of_group(group: Mapping[str, Any]) -> Iterable[APIResource]:
    """Yield the resources of a group; also those without `list` or `delete`."""
    name = (group.get("metadata") or {}).get("name", "")
    shown: dict[str, dict[str, Any]] = {}
    versions: dict[str, list[str]] = {}
    parts: dict[str, list[tuple[str, str]]] = {}
    for version in group.get("versions") or ():
        for resource in version.get("resources") or ():
            parts.setdefault(resource["resource"], []).extend(
                (version["version"], part["subresource"])
                for part in resource.get("subresources") or ()
            )
            shown.setdefault(resource["resource"], resource)
            versions.setdefault(resource["resource"], []).append(version["version"])
    for plural, resource in shown.items():
        yield APIResource(
            group=name,
            versions=tuple(versions[plural]),
            plural=plural,
            kind=resource["responseKind"]["kind"],
            namespaced=resource.get("scope") == "Namespaced",
            verbs=frozenset(resource.get("verbs") or ()),
            alias=(name, plural) in ALIASES,
            parts=tuple(parts[plural]),
        )

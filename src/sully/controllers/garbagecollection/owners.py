"""Determines whether owners exist, from the graph or from the server.

A cache is not enough to conclude that an owner is absent, because that deletes the dependents.
Absent owners are cached, because uids are not reused.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from sully.client.discovery.resources import APIResource
from sully.client.transport import Key, Kind, Transport
from sully.controllers.garbagecollection.graph import Graph
from sully.domain.workloads.ownership import Owned, Standing
from sully.machinery.errors import NotFound
from sully.machinery.meta import OwnerReference

MAX_ABSENT = 500


class NamespacedOwnerError(Exception):
    """A cluster-scoped object has a namespaced owner, which is invalid."""


class Kinds:
    """The kinds whose objects can own and be owned."""

    def __init__(self, kinds: Iterable[Kind[Owned]], served: Mapping[str, set[str]]) -> None:
        self.all = tuple(kinds)
        self._served = served
        self._by_name = {(kind.group, kind.kind): kind for kind in self.all}

    def add(self, kind: Kind[Owned], versions: Iterable[str]) -> None:
        """Collect another kind, or one in other versions."""
        self.remove(kind)
        self.all = (*self.all, kind)
        self._served = {**self._served, f"{kind.group}/{kind.kind}": {*versions}}
        self._by_name[kind.group, kind.kind] = kind

    def remove(self, kind: Kind[Owned]) -> None:
        """Stop collecting a kind that the server no longer has."""
        self.all = tuple(known for known in self.all if known != kind)
        self._by_name.pop((kind.group, kind.kind), None)

    def find(self, ref: OwnerReference) -> Kind[Owned] | None:
        """Return the kind of an owner, or None if the server does not have it in that version."""
        group, _, version = ref.api_version.rpartition("/")
        kind = self._by_name.get((group, ref.kind))
        served = kind is not None and version in self._served.get(f"{group}/{ref.kind}", ())
        return kind if served else None


def collected_kinds(served: Iterable[APIResource]) -> Kinds:
    """Return all kinds that can be watched and deleted; not events, which expire."""
    kinds: list[Kind[Owned]] = []
    versions: dict[str, set[str]] = {}
    for resource in served:
        usable = resource.verbs >= {"list", "watch", "delete", "patch"}
        if not usable or resource.alias or (resource.group, resource.plural) == ("", "events"):
            continue
        versions[f"{resource.group}/{resource.kind}"] = set(resource.versions)
        kinds.append(resource.as_kind(Owned))
    return Kinds(kinds, versions)


class Owners:
    """Determines the standing of owners."""

    def __init__(self, graph: Graph, kinds: Kinds, transport: Transport) -> None:
        self._graph = graph
        self._kinds = kinds
        self._transport = transport
        self._absent: OrderedDict[tuple[OwnerReference, str], None] = OrderedDict()

    async def standings(self, obj: Owned) -> dict[OwnerReference, Standing]:
        """Return the standing of each owner, from the graph or else from the server."""
        return {ref: await self._standing(obj, ref) for ref in obj.owners}

    def unseen(self, obj: Owned) -> bool:
        """Report whether an owner is not in the graph although it may exist."""
        return any(
            self._graph.get(ref.uid) is None and self._kinds.find(ref) is not None
            for ref in obj.owners
        )

    async def _standing(self, obj: Owned, ref: OwnerReference) -> Standing:
        if self._graph.is_solid(obj, ref):
            return Standing.SOLID
        kind = self._kinds.find(ref)
        if kind is None:
            # Of a kind that the server does not have: the safe side is to keep the object.
            return Standing.SOLID
        namespace = obj.metadata.namespace if kind.namespaced else ""
        if kind.namespaced and not namespace:
            raise NamespacedOwnerError(ref.name)
        return await self._read(kind, ref, namespace)

    async def _read(self, kind: Kind[Owned], ref: OwnerReference, namespace: str) -> Standing:
        if (ref, namespace) in self._absent:
            return Standing.ABSENT
        try:
            owner = await self._transport.get(kind, Key(namespace, ref.name))
        except NotFound:
            return self._cache_absent(ref, namespace)
        if owner.uid != ref.uid:
            return self._cache_absent(ref, namespace)
        return Standing.AWAITING if owner.awaiting else Standing.SOLID

    def _cache_absent(self, ref: OwnerReference, namespace: str) -> Standing:
        self._absent[ref, namespace] = None
        if len(self._absent) > MAX_ABSENT:
            self._absent.popitem(last=False)
        return Standing.ABSENT

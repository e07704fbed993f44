"""How owners stand: what the graph knows, and what only the server can say.

That an owner is gone is never believed from a cache: the dependents are deleted for it. What the
server said once about a missing owner is remembered, because a uid never comes back.
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

REMEMBERED = 500
_Place = tuple[OwnerReference, str]


class OutOfReachError(Exception):
    """An object without a namespace names an owner in one; nobody can say which."""


class Kinds:
    """The kinds whose objects can own and be owned."""

    def __init__(self, kinds: Iterable[Kind[Owned]], served: Mapping[str, set[str]]) -> None:
        self.all = tuple(kinds)
        self._served = served
        self._by_name = {(kind.group, kind.kind): kind for kind in self.all}

    def find(self, ref: OwnerReference) -> Kind[Owned] | None:
        """Return the kind of an owner, or None if there is no such kind in that version."""
        group, _, version = ref.api_version.rpartition("/")
        kind = self._by_name.get((group, ref.kind))
        known = kind is not None and version in self._served.get(f"{group}/{ref.kind}", ())
        return kind if known else None


def collected_kinds(served: Iterable[APIResource]) -> Kinds:
    """Return all kinds that can be watched and deleted; events own nothing and expire anyway."""
    kinds: list[Kind[Owned]] = []
    versions: dict[str, set[str]] = {}
    for each in served:
        usable = each.verbs >= {"list", "watch", "delete", "patch"}
        if not usable or each.alias or (each.group, each.plural) == ("", "events"):
            continue
        versions[f"{each.group}/{each.kind}"] = set(each.versions)
        kinds.append(
            Kind(
                each.group,
                each.versions[0],
                each.plural,
                each.kind,
                Owned,
                namespaced=each.namespaced,
            )
        )
    return Kinds(kinds, versions)


class Owners:
    """Says how the owners of an object stand."""

    def __init__(self, graph: Graph, kinds: Kinds, transport: Transport) -> None:
        self._graph = graph
        self._kinds = kinds
        self._transport = transport
        self._absent: OrderedDict[_Place, None] = OrderedDict()

    async def standings(self, obj: Owned) -> dict[OwnerReference, Standing]:
        """Return how each owner stands, from the graph or else from the server."""
        return {ref: await self._standing(obj, ref) for ref in obj.owners}

    def unseen(self, obj: Owned) -> bool:
        """Report whether an owner is not in the graph although it may exist (event due)."""
        return any(
            self._graph.get(ref.uid) is None and self._kinds.find(ref) is not None
            for ref in obj.owners
        )

    async def _standing(self, obj: Owned, ref: OwnerReference) -> Standing:
        if self._graph.is_solid(obj, ref):
            return Standing.SOLID
        kind = self._kinds.find(ref)
        if kind is None:
            # Of a kind that is not served here: to keep too much is the safe error.
            return Standing.SOLID
        namespace = obj.metadata.namespace if kind.namespaced else ""
        if kind.namespaced and not namespace:
            raise OutOfReachError(ref.name)
        return await self._ask(kind, ref, namespace)

    async def _ask(self, kind: Kind[Owned], ref: OwnerReference, namespace: str) -> Standing:
        if (ref, namespace) in self._absent:
            return Standing.ABSENT
        try:
            owner = await self._transport.get(kind, Key(namespace, ref.name))
        except NotFound:
            return self._remember(ref, namespace)
        if owner.uid != ref.uid:
            return self._remember(ref, namespace)
        return Standing.AWAITING if owner.awaiting else Standing.SOLID

    def _remember(self, ref: OwnerReference, namespace: str) -> Standing:
        self._absent[ref, namespace] = None
        if len(self._absent) > REMEMBERED:
            self._absent.popitem(last=False)
        return Standing.ABSENT

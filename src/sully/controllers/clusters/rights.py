"""Gives the agent of a cluster its namespace and its rights, and takes the rights away.

Reads what is there from caches, so a cluster that has everything costs no call; what somebody
removed or changed comes back, because the caches wake the controller (acceptance.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from sully.api.cluster.namespaces import foreign_namespace, is_namespace_of
from sully.api.cluster.types import CLUSTER_NAME_LABEL
from sully.client.informers.informer import Informer
from sully.client.objects import key_of
from sully.client.options import WriteOptions
from sully.client.transport import Key, Kind, Transport, UnreachableError
from sully.controllers.clusters.kinds import (
    ACCEPTING,
    CLUSTER_ROLE_BINDINGS,
    OF_CLUSTERS,
    ROLE_BINDINGS,
    ROLES,
    WHOLE_NAMESPACES,
)
from sully.controllers.framework import Watch
from sully.controllers.manager import Manager
from sully.domain.clusters import rights as wanted
from sully.machinery.compat import Compat
from sully.machinery.errors import AlreadyExists, ApiError, NotFound
from sully.runtime.log import get_logger

log = get_logger("controllers")

Obj = dict[str, Any]

_OWN = WriteOptions(field_manager=ACCEPTING)
_KEPT = ("rules", "roleRef", "subjects")
"""What is put right when somebody changed it."""


class Rights:
    """The namespaces and roles of all clusters."""

    def __init__(self, manager: Manager, transport: Transport, *, compat: Compat) -> None:
        kinds = (WHOLE_NAMESPACES, ROLES, CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS)
        self._caches: dict[Kind[Obj], Informer[Obj]] = {
            kind: manager.informer(kind, OF_CLUSTERS) for kind in kinds
        }
        self._written: dict[tuple[Kind[Obj], Key], Obj] = {}
        """What was written a moment ago; until a cache shows it, it need not be written again."""
        for kind, cache in self._caches.items():
            cache.on_change(partial(self._seen, kind))
        self._transport = transport
        self._compat = compat

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for what belongs to a cluster."""
        for cache in self._caches.values():
            yield Watch(cache, _cluster_of)

    async def give(self, cluster: str) -> list[str]:
        """Make what the agent of an accepted cluster needs; return what was in the way."""
        if self._compat.protects_foreign_namespaces and await self._is_taken(cluster):
            return [foreign_namespace(cluster)]
        steps = (
            (WHOLE_NAMESPACES, wanted.namespace(cluster)),
            (ROLES, wanted.common_role()),
            (ROLES, wanted.cluster_role(cluster, accepted=True)),
            (CLUSTER_ROLE_BINDINGS, wanted.cluster_role_binding(cluster)),
            (ROLE_BINDINGS, wanted.role_binding(cluster)),
        )
        errors = []
        for kind, obj in steps:
            try:
                await self._ensure(kind, obj)
            except (ApiError, UnreachableError) as error:
                errors.append(str(error))
        return errors

    async def _is_taken(self, cluster: str) -> bool:
        """Report whether the namespace of a cluster's name is somebody else's."""
        at = WHOLE_NAMESPACES, Key("", cluster)
        known = self._written.get(at) or self._caches[WHOLE_NAMESPACES].get(at[1])
        if known is not None and is_namespace_of(cluster, known):
            return False
        try:
            # The cache has only namespaces of clusters.
            found = await self._transport.get(*at)
        except NotFound:
            return False
        return not is_namespace_of(cluster, found) and not await self._has_binding(cluster)

    async def _has_binding(self, cluster: str) -> bool:
        """Report whether the agent has its rights in a namespace whose label was removed."""
        try:
            await self._transport.get(ROLE_BINDINGS, Key(cluster, wanted.binding_name(cluster)))
        except NotFound:
            return False
        return True

    def given(self, cluster: str) -> bool:
        """Report whether the agent of a cluster has more rights than to see that it is denied."""
        role = self._caches[ROLES].get(Key("", wanted.role_name(cluster)))
        denied = wanted.cluster_role(cluster, accepted=False)
        bound = self._caches[ROLE_BINDINGS].get(Key(cluster, wanted.binding_name(cluster)))
        return bound is not None or (role is not None and not _is_right(role, denied))

    async def restrict(self, cluster: str) -> None:
        """Leave the agent of a denied cluster the right to see that it is denied."""
        await self._ensure(ROLES, wanted.cluster_role(cluster, accepted=False))
        await self._delete(ROLE_BINDINGS, Key(cluster, wanted.binding_name(cluster)))

    async def take(self, cluster: str) -> None:
        """Remove all rights; the namespace stays, with what others keep in it."""
        name = wanted.role_name(cluster)
        await self._delete(ROLE_BINDINGS, Key(cluster, wanted.binding_name(cluster)))
        await self._delete(CLUSTER_ROLE_BINDINGS, Key("", name))
        await self._delete(ROLES, Key("", name))

    async def _ensure(self, kind: Kind[Obj], obj: Obj) -> None:
        at = kind, key_of(obj)
        found = self._written.get(at) or self._caches[kind].get(at[1])
        if found is not None and _is_right(found, obj):
            return
        await self._write(kind, obj, new=found is None)
        self._written[at] = obj

    async def _write(self, kind: Kind[Obj], obj: Obj, *, new: bool) -> None:
        if new:
            try:
                await self._transport.create(kind, obj, options=_OWN)
                return
            except AlreadyExists:
                # Somebody else's, who gave it our name; it becomes what it should be.
                log.debug("adopted", kind=kind.kind, name=str(key_of(obj)))
        await self._transport.patch(kind, key_of(obj), _change(obj), options=_OWN)

    def _seen(self, kind: Kind[Obj], old: Obj | None, new: Obj | None) -> None:
        for obj in filter(None, (old, new)):
            self._written.pop((kind, key_of(obj)), None)

    async def _delete(self, kind: Kind[Obj], key: Key) -> None:
        self._written.pop((kind, key), None)
        try:
            await self._transport.delete(kind, key)
        except NotFound:
            return


def _is_right(found: Obj, wanted: Obj) -> bool:
    labels = found["metadata"].get("labels") or {}
    named = wanted["metadata"]["labels"].items() <= labels.items()
    return named and all(found.get(name) == wanted[name] for name in _KEPT if name in wanted)


def _change(obj: Obj) -> Obj:
    parts = {name: obj[name] for name in _KEPT if name in obj}
    return {"metadata": {"labels": obj["metadata"]["labels"]}} | parts


def _cluster_of(obj: Obj) -> Iterable[Key]:
    name = obj["metadata"]["labels"][CLUSTER_NAME_LABEL]
    return (Key("", name),) if name else ()

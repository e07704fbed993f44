"""Grants the agent of a cluster its namespace and its permissions, and revokes the permissions.

Existing objects are read from caches, so a cluster that has everything costs no call. Objects that
were deleted or changed are restored, because the caches enqueue their cluster (acceptance.py).
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
    CLUSTER_ROLE_BINDINGS,
    ROLE_BINDINGS,
    ROLES,
    WHOLE_NAMESPACES,
    WITH_CLUSTER,
)
from sully.controllers.clusters.names import ACCEPTANCE_CONTROLLER
from sully.controllers.framework.controller import Watch
from sully.controllers.framework.manager import Manager
from sully.domain.clusters import rights as expected
from sully.machinery.compat import Compat
from sully.machinery.errors import AlreadyExists, ApiError, NotFound
from sully.runtime.log import get_logger

log = get_logger("controllers")

Obj = dict[str, Any]

_OPTIONS = WriteOptions(field_manager=ACCEPTANCE_CONTROLLER)
_OWNED_FIELDS = ("rules", "roleRef", "subjects")
"""The fields that are restored after a change."""


class AgentPermissions:
    """The namespaces, roles and bindings of all clusters."""

    def __init__(self, manager: Manager, transport: Transport, *, compat: Compat) -> None:
        kinds = (WHOLE_NAMESPACES, ROLES, CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS)
        self._caches: dict[Kind[Obj], Informer[Obj]] = {
            kind: manager.informer(kind, WITH_CLUSTER) for kind in kinds
        }
        self._written: dict[tuple[Kind[Obj], Key], Obj] = {}
        """Objects that were written and that the caches do not show yet."""
        for kind, cache in self._caches.items():
            cache.on_change(partial(self._observe, kind))
        self._transport = transport
        self._compat = compat

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for the objects that belong to a cluster."""
        for cache in self._caches.values():
            yield Watch(cache, _cluster_of)

    async def grant(self, cluster: str) -> list[str]:
        """Create what the agent of an accepted cluster needs; return the errors."""
        if self._compat.protects_foreign_namespaces and await self._is_foreign(cluster):
            return [foreign_namespace(cluster)]
        steps = (
            (WHOLE_NAMESPACES, expected.namespace(cluster)),
            (ROLES, expected.common_role()),
            (ROLES, expected.cluster_role(cluster, accepted=True)),
            (CLUSTER_ROLE_BINDINGS, expected.cluster_role_binding(cluster)),
            (ROLE_BINDINGS, expected.role_binding(cluster)),
        )
        errors = []
        for kind, obj in steps:
            try:
                await self._ensure(kind, obj)
            except (ApiError, UnreachableError) as error:
                errors.append(str(error))
        return errors

    async def _is_foreign(self, cluster: str) -> bool:
        """Report whether the namespace with a cluster's name does not belong to it."""
        cached = self._cached(WHOLE_NAMESPACES, Key("", cluster))
        if cached is not None and is_namespace_of(cluster, cached):
            return False
        try:
            # The cache has only namespaces of clusters.
            namespace = await self._transport.get(WHOLE_NAMESPACES, Key("", cluster))
        except NotFound:
            return False
        return not is_namespace_of(cluster, namespace) and not await self._has_binding(cluster)

    async def _has_binding(self, cluster: str) -> bool:
        """Report whether the agent is bound in a namespace whose label was removed."""
        try:
            await self._transport.get(ROLE_BINDINGS, Key(cluster, expected.binding_name(cluster)))
        except NotFound:
            return False
        return True

    def is_granted(self, cluster: str) -> bool:
        """Report whether an agent may do more than see that its cluster is denied."""
        role = self._caches[ROLES].get(Key("", expected.role_name(cluster)))
        denied = expected.cluster_role(cluster, accepted=False)
        binding = self._caches[ROLE_BINDINGS].get(Key(cluster, expected.binding_name(cluster)))
        return binding is not None or (role is not None and not _matches(role, denied))

    async def restrict(self, cluster: str) -> None:
        """Let the agent of a denied cluster only see that it is denied."""
        await self._ensure(ROLES, expected.cluster_role(cluster, accepted=False))
        await self._delete(ROLE_BINDINGS, Key(cluster, expected.binding_name(cluster)))

    async def revoke(self, cluster: str) -> None:
        """Delete all permissions; the namespace stays, with the objects of others in it."""
        name = expected.role_name(cluster)
        await self._delete(ROLE_BINDINGS, Key(cluster, expected.binding_name(cluster)))
        await self._delete(CLUSTER_ROLE_BINDINGS, Key("", name))
        await self._delete(ROLES, Key("", name))

    async def _ensure(self, kind: Kind[Obj], obj: Obj) -> None:
        key = key_of(obj)
        current = self._cached(kind, key)
        if current is not None and _matches(current, obj):
            return
        await self._write(kind, obj, new=current is None)
        self._written[kind, key] = obj

    def _cached(self, kind: Kind[Obj], key: Key) -> Obj | None:
        return self._written.get((kind, key)) or self._caches[kind].get(key)

    async def _write(self, kind: Kind[Obj], obj: Obj, *, new: bool) -> None:
        if new:
            try:
                await self._transport.create(kind, obj, options=_OPTIONS)
                return
            except AlreadyExists:
                # An object of others with our name: it is changed to what it should be.
                log.debug("existing object adopted", kind=kind.kind, name=str(key_of(obj)))
        await self._transport.patch(kind, key_of(obj), _change(obj), options=_OPTIONS)

    def _observe(self, kind: Kind[Obj], old: Obj | None, new: Obj | None) -> None:
        for obj in filter(None, (old, new)):
            self._written.pop((kind, key_of(obj)), None)

    async def _delete(self, kind: Kind[Obj], key: Key) -> None:
        self._written.pop((kind, key), None)
        try:
            await self._transport.delete(kind, key)
        except NotFound:
            return


def _matches(current: Obj, expected: Obj) -> bool:
    labels = current["metadata"].get("labels") or {}
    if not expected["metadata"]["labels"].items() <= labels.items():
        return False
    return all(current.get(name) == expected[name] for name in _OWNED_FIELDS if name in expected)


def _change(obj: Obj) -> Obj:
    owned = {name: obj[name] for name in _OWNED_FIELDS if name in obj}
    return {"metadata": {"labels": obj["metadata"]["labels"]}} | owned


def _cluster_of(obj: Obj) -> Iterable[Key]:
    name = obj["metadata"]["labels"][CLUSTER_NAME_LABEL]
    return (Key("", name),) if name else ()

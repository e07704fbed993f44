"""Deletes objects without owners, and removes the finalizers of owners that wait for that.

Reads all kinds but events, as metadata only; deletes objects, removes `ownerReferences`, and the
finalizers `orphan` and `foregroundDeletion`. A key is the uid of an object. The decision is
`domain.workloads.ownership.judge`; graph.py has owners and dependents, owners.py determines whether
an owner is really absent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from sully.client.events import EventRecorder, Reference
from sully.client.options import DeleteOptions, ListOptions, PatchType
from sully.client.transport import Key, Kind, Transport
from sully.controllers.framework.controller import DONE, REQUEUE, Result, Watch
from sully.controllers.garbagecollection.graph import Graph, Node
from sully.controllers.garbagecollection.owners import Kinds, NamespacedOwnerError, Owners
from sully.domain.workloads.ownership import (
    FOREGROUND,
    ORPHAN,
    Collect,
    Disown,
    Keep,
    Owned,
    judge,
)
from sully.machinery.errors import Conflict, NotFound, UnsupportedMediaType
from sully.machinery.meta import OwnerReference
from sully.runtime.log import get_logger

log = get_logger("controllers")

COMPONENT = "garbage-collector-controller"
WORKERS = 20
"""A deletion mostly waits for the store, which writes many together."""
_PAGE_SIZE = 500
_MAX_ATTEMPTS = 5


class GarbageCollector:
    """Deletes dependents after their owners."""

    name = "generic-garbage-collector"

    def __init__(
        self, *, graph: Graph, kinds: Kinds, transport: Transport, recorder: EventRecorder
    ) -> None:
        self._graph = graph
        self._kinds = kinds
        self._transport = transport
        self._recorder = recorder
        self._owners = Owners(graph, kinds, transport)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for objects whose owners or dependents changed."""
        yield Watch(self._graph, _uid_key)

    async def reconcile(self, key: Key) -> Result:
        """Finish the deletion of an object, or delete it if it has no owner any more."""
        node = self._graph.get(key.name)
        if node is None:
            return DONE
        if node.obj.orphaning:
            return await self._orphan(node)
        if node.obj.awaiting:
            return await self._finish_foreground(node)
        if node.obj.is_terminating or not node.obj.owners:
            return DONE
        return await self._collect(node)

    # -- terminating owners -----------------------------------------------------------------------

    async def _orphan(self, node: Node) -> Result:
        """Remove an owner from all its dependents, then remove its finalizer.

        The caches of other kinds may be behind that of the owner, and a dependent that they miss
        would be deleted. So all dependents are listed from the server.
        """
        async for dependent in self._live_dependents(node):
            await self._disown(dependent, (node.obj.uid,))
        await self._remove_finalizer(node, ORPHAN)
        return DONE

    async def _live_dependents(self, owner: Node) -> AsyncIterator[Node]:
        for kind in self._kinds.all:
            if owner.namespace and not kind.namespaced:
                continue
            async for obj in self._all(kind, owner.namespace):
                if any(ref.uid == owner.obj.uid for ref in obj.owners):
                    yield Node(kind, obj)

    async def _all(self, kind: Kind[Owned], namespace: str) -> AsyncIterator[Owned]:
        token = ""
        while True:
            options = ListOptions(limit=_PAGE_SIZE, continue_token=token)
            page = await self._transport.list(kind, namespace, options)
            for obj in page.items:
                yield obj
            token = page.continue_token
            if not token:
                return

    async def _finish_foreground(self, node: Node) -> Result:
        """Remove the finalizer once no dependent blocks the owner."""
        uid = node.obj.uid
        others = (other.obj for other in self._graph.dependents(uid) if other.obj.uid != uid)
        if not any(dependent.blocks(uid) for dependent in others):
            await self._remove_finalizer(node, FOREGROUND)
        return DONE

    async def _remove_finalizer(self, node: Node, finalizer: str) -> None:
        for attempt in range(_MAX_ATTEMPTS):
            latest = await self._latest(node)
            if latest is None or finalizer not in latest.metadata.finalizers:
                return
            others = [name for name in latest.metadata.finalizers if name != finalizer]
            version = latest.metadata.resource_version
            change = {"resourceVersion": version, "finalizers": others}
            try:
                await self._transport.patch(node.kind, node.key, {"metadata": change})
                return
            except NotFound:
                return
            except Conflict:
                if attempt == _MAX_ATTEMPTS - 1:
                    raise

    # -- dependents -------------------------------------------------------------------------------

    async def _collect(self, node: Node) -> Result:
        latest = await self._latest(node)
        if latest is None or latest.is_terminating:
            # The event of that is about to arrive and enqueues those it affects.
            return DONE
        self._warn_about_namespaces(node)
        try:
            standings = await self._owners.standings(latest)
        except NamespacedOwnerError:
            log.warning(
                "cluster-scoped object has a namespaced owner",
                kind=node.kind.kind,
                name=str(node.key),
            )
            return DONE
        dependents = [dependent.obj for dependent in self._graph.dependents(latest.uid)]
        match judge(latest, standings, dependents):
            case Keep():
                # An owner that is not cached yet may be deleted before it is.
                return REQUEUE if self._owners.unseen(latest) else DONE
            case Disown(owners):
                await self._disown(Node(node.kind, latest), owners)
            case Collect(policy, unblock):
                if unblock:
                    await self._unblock(node, latest)
                await self._delete(node, latest, policy)
        return DONE

    async def _latest(self, node: Node) -> Owned | None:
        """Return the object from the server, or None if it was deleted or recreated."""
        try:
            latest = await self._transport.get(node.kind, node.key)
        except NotFound:
            return None
        return latest if latest.uid == node.obj.uid else None

    async def _disown(self, node: Node, owners: Iterable[str]) -> None:
        gone = {*owners}
        refs = [{"$patch": "delete", "uid": uid} for uid in gone]
        remaining = [ref for ref in node.obj.owners if ref.uid not in gone]
        await self._patch_owners(node, refs, remaining)

    async def _unblock(self, node: Node, latest: Owned) -> None:
        refs = [
            {"uid": ref.uid, "blockOwnerDeletion": False}
            for ref in latest.owners
            if ref.block_owner_deletion
        ]
        if refs:
            unblocked = [replace(ref, block_owner_deletion=False) for ref in latest.owners]
            await self._patch_owners(Node(node.kind, latest), refs, unblocked)

    async def _patch_owners(
        self, node: Node, owners: list[dict[str, Any]], all_owners: Iterable[OwnerReference]
    ) -> None:
        """Change owners by a patch; custom resources only merge the list as a whole."""
        change = {"metadata": {"uid": node.obj.uid, "ownerReferences": owners}}
        try:
            await self._transport.patch(node.kind, node.key, change, PatchType.STRATEGIC)
        except UnsupportedMediaType:
            whole = {
                "uid": node.obj.uid,
                "resourceVersion": node.obj.metadata.resource_version,
                "ownerReferences": to_builtins(list(all_owners)),
            }
            await self._transport.patch(node.kind, node.key, {"metadata": whole}, PatchType.MERGE)
        except NotFound:
            log.debug("object already deleted", kind=node.kind.kind, name=str(node.key))

    async def _delete(self, node: Node, latest: Owned, policy: str) -> None:
        """Delete an object, unless it got another owner meanwhile."""
        for attempt in range(_MAX_ATTEMPTS):
            options = DeleteOptions(
                propagation_policy=policy,
                uid=latest.uid,
                resource_version=latest.metadata.resource_version,
            )
            try:
                await self._transport.delete(node.kind, node.key, options)
                return
            except NotFound:
                return
            except Conflict:
                newer = await self._latest(node)
                if newer is None or newer.is_terminating:
                    return
                added = {ref.uid for ref in newer.owners} - {ref.uid for ref in latest.owners}
                if added or attempt == _MAX_ATTEMPTS - 1:
                    raise
                latest = newer

    def _warn_about_namespaces(self, node: Node) -> None:
        """Record an event about owners in another namespace, which is invalid."""
        for ref in node.obj.owners:
            owner = self._graph.get(ref.uid)
            if owner is not None and owner.namespace not in ("", node.namespace):
                owner_ref = (
                    f"[{ref.api_version}/{ref.kind}, namespace: {node.namespace},"
                    f" name: {ref.name}, uid: {ref.uid}]"
                )
                text = f'ownerRef {owner_ref} does not exist in namespace "{node.namespace}"'
                about = Reference(node.kind.api_version, node.kind.kind, node.key, uid=node.obj.uid)
                self._recorder.event(about, "Warning", "OwnerRefInvalidNamespace", text)


def _uid_key(uid: str) -> tuple[Key]:
    return (Key("", uid),)

"""Deletes what nobody owns any more, and lets go owners that wait for that.

Reads all kinds but events, as metadata only; deletes objects, takes owners out of their
`ownerReferences`, and removes the finalizers `orphan` and `foregroundDeletion`. A key is the uid of
an object. The decision is `domain.ownership.judge`; who owns whom is graph.py, whether an owner is
really gone owners.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, Literal, Protocol

from sully.client.events import Reference
from sully.client.options import DeleteOptions, ListOptions, PatchType
from sully.client.transport import Key, Kind, Transport
from sully.controllers.framework import AGAIN, DONE, Result, Watch
from sully.controllers.garbagecollection.graph import Graph, Node
from sully.controllers.garbagecollection.owners import Kinds, OutOfReachError, Owners
from sully.domain.workloads.ownership import (
    FOREGROUND,
    ORPHAN,
    Collect,
    Disown,
    Keep,
    Owned,
    judge,
)
from sully.machinery.errors import Conflict, NotFound
from sully.runtime.log import get_logger

log = get_logger("controllers")

COMPONENT = "garbage-collector-controller"
WORKERS = 20
"""Most of a deletion is waiting for the store, and it takes many at once."""
_PAGE = 500
_TRIES = 5


class Recorder(Protocol):
    """Tells people; an `EventRecorder` does."""

    def event(
        self, about: Reference, type_: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        """Say what happened to an object."""
        ...


class GarbageCollector:
    """Sees to it that objects go with their owners."""

    name = "generic-garbage-collector"

    def __init__(
        self, *, graph: Graph, kinds: Kinds, transport: Transport, recorder: Recorder
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
        """Look at the object with a uid: finish its deletion, or see whether it is still owned."""
        node = self._graph.get(key.name)
        if node is None:
            return DONE
        if node.obj.orphaning:
            return await self._orphan(node)
        if node.obj.awaiting:
            return await self._await(node)
        if node.obj.is_terminating or not node.obj.owners:
            return DONE
        return await self._look_after(node)

    # -- owners on their way out ------------------------------------------------------------------

    async def _orphan(self, node: Node) -> Result:
        """Take an owner out of all its dependents, then let it go.

        The caches of other kinds may not have come as far as the one that told of the owner, and
        a dependent that was overlooked would be deleted. So the server is asked for all of them.
        """
        async for dependent in self._live_dependents(node):
            await self._disown(dependent, (node.obj.uid,))
        await self._let_go(node, ORPHAN)
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
            options = ListOptions(limit=_PAGE, continue_token=token)
            page = await self._transport.list(kind, namespace, options)
            for obj in page.items:
                yield obj
            token = page.continue_token
            if not token:
                return

    async def _await(self, node: Node) -> Result:
        """Let an owner go once no dependent blocks it; each that goes wakes us again."""
        uid = node.obj.uid
        others = (each.obj for each in self._graph.dependents(uid) if each.obj.uid != uid)
        if not any(each.blocks(uid) for each in others):
            await self._let_go(node, FOREGROUND)
        return DONE

    async def _let_go(self, node: Node, finalizer: str) -> None:
        for tries in range(_TRIES):
            latest = await self._latest(node)
            if latest is None or finalizer not in latest.metadata.finalizers:
                return
            others = [each for each in latest.metadata.finalizers if each != finalizer]
            version = latest.metadata.resource_version
            change = {"resourceVersion": version, "finalizers": others}
            try:
                await self._transport.patch(node.kind, node.key, {"metadata": change})
                return
            except NotFound:
                return
            except Conflict:
                if tries == _TRIES - 1:
                    raise

    # -- dependents -------------------------------------------------------------------------------

    async def _look_after(self, node: Node) -> Result:
        latest = await self._latest(node)
        if latest is None or latest.is_terminating:
            # The news of that is on its way, and wakes whom it concerns.
            return DONE
        self._complain(node)
        try:
            standings = await self._owners.standings(latest)
        except OutOfReachError:
            log.warning(
                "cluster-scoped object has a namespaced owner",
                kind=node.kind.kind,
                name=str(node.key),
            )
            return DONE
        dependents = [each.obj for each in self._graph.dependents(latest.uid)]
        match judge(latest, standings, dependents):
            case Keep():
                # An owner we have not seen yet may go before we do.
                return AGAIN if self._owners.unseen(latest) else DONE
            case Disown(owners):
                await self._disown(Node(node.kind, latest), owners)
            case Collect(policy, unblock):
                if unblock:
                    await self._unblock(node, latest)
                await self._delete(node, latest, policy)
        return DONE

    async def _latest(self, node: Node) -> Owned | None:
        """Return the object as the server has it, or None if it is gone or another has its name."""
        try:
            latest = await self._transport.get(node.kind, node.key)
        except NotFound:
            return None
        return latest if latest.uid == node.obj.uid else None

    async def _disown(self, node: Node, owners: Iterable[str]) -> None:
        gone = [{"$patch": "delete", "uid": uid} for uid in owners]
        await self._patch_owners(node, gone)

    async def _unblock(self, node: Node, latest: Owned) -> None:
        freed = [
            {"uid": ref.uid, "blockOwnerDeletion": False}
            for ref in latest.owners
            if ref.block_owner_deletion
        ]
        if freed:
            await self._patch_owners(node, freed)

    async def _patch_owners(self, node: Node, owners: list[dict[str, Any]]) -> None:
        change = {"metadata": {"uid": node.obj.uid, "ownerReferences": owners}}
        try:
            await self._transport.patch(node.kind, node.key, change, PatchType.STRATEGIC)
        except NotFound:
            log.debug("object already deleted", kind=node.kind.kind, name=str(node.key))

    async def _delete(self, node: Node, latest: Owned, policy: str) -> None:
        """Delete an object, unless someone gave it another owner meanwhile."""
        for tries in range(_TRIES):
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
                found = await self._latest(node)
                if found is None or found.is_terminating:
                    return
                freed = {ref.uid for ref in found.owners} <= {ref.uid for ref in latest.owners}
                if not freed or tries == _TRIES - 1:
                    raise
                latest = found

    def _complain(self, node: Node) -> None:
        """Tell about owners that are in another namespace, where they can own nothing here."""
        for ref in node.obj.owners:
            owner = self._graph.get(ref.uid)
            if owner is not None and owner.namespace not in ("", node.namespace):
                meant = (
                    f"[{ref.api_version}/{ref.kind}, namespace: {node.namespace},"
                    f" name: {ref.name}, uid: {ref.uid}]"
                )
                text = f'ownerRef {meant} does not exist in namespace "{node.namespace}"'
                about = Reference(node.kind.api_version, node.kind.kind, node.key, uid=node.obj.uid)
                self._recorder.event(about, "Warning", "OwnerRefInvalidNamespace", text)


def _uid_key(uid: str) -> tuple[Key]:
    return (Key("", uid),)

"""Adopts matching orphans and releases objects that no longer match, as ControllerRefManager.

Used for the pods of ReplicaSets and for the ReplicaSets of Deployments. Before an adoption the
owner is read from the server, because the cache may still have one that was deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from sully.client.objects import key_of
from sully.client.options import PatchType
from sully.client.transport import Key, Kind, Transport
from sully.controllers.workloads.kinds import SelectorIndex, controller_ref
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.workloads import ReplicaSet, Workload
from sully.machinery.errors import Invalid, NotFound
from sully.machinery.selectors.labels import Selector

ControlledT = TypeVar("ControlledT", bound=Pod | ReplicaSet)
OwnerT = TypeVar("OwnerT", bound=Workload)


class Owners:
    """Owners of a kind, mapped from the objects they control."""

    def __init__(self, kind: Kind[Any], selectors: SelectorIndex[Any]) -> None:
        self._kind = kind
        self._selectors = selectors

    def of(self, obj: Pod | ReplicaSet) -> Iterable[Key]:
        """Yield the controller of an object, or of an orphan all that match it."""
        controller = obj.metadata.controller()
        if controller is None:
            yield from self._selectors.keys(obj.metadata.namespace, obj.metadata.labels)
        elif controller.kind == self._kind.kind:
            yield Key(obj.metadata.namespace, controller.name)


class ControllerRefManager(Generic[OwnerT, ControlledT]):
    """Keeps the objects of an owner in line with its selector."""

    def __init__(
        self, transport: Transport, owners: Kind[OwnerT], objects: Kind[ControlledT]
    ) -> None:
        self._transport = transport
        self._owners = owners
        self._objects = objects

    async def claim(
        self, owner: OwnerT, selector: Selector, objects: Iterable[ControlledT]
    ) -> list[ControlledT]:
        """Adopt and release by the selector; return the objects that the owner controls now."""
        claimed: list[ControlledT] = []
        can_adopt: bool | None = None
        for obj in objects:
            metadata = obj.metadata
            controller, matches = metadata.controller(), selector.matches(metadata.labels)
            if controller is not None:
                if controller.uid != owner.metadata.uid:
                    continue
                if matches:
                    claimed.append(obj)
                elif owner.metadata.deletion_timestamp is None:
                    await self._release(owner, obj)
            elif matches and metadata.deletion_timestamp is None:
                if can_adopt is None:
                    can_adopt = await self._is_current(owner)
                if can_adopt and await self._adopt(owner, obj):
                    claimed.append(obj)
        return claimed

    async def _is_current(self, owner: OwnerT) -> bool:
        """Report whether the owner still exists with the same uid and is not terminating."""
        if owner.metadata.deletion_timestamp is not None:
            return False
        try:
            latest = await self._transport.get(self._owners, key_of(owner))
        except NotFound:
            return False
        return (
            latest.metadata.uid == owner.metadata.uid and latest.metadata.deletion_timestamp is None
        )

    async def _adopt(self, owner: OwnerT, obj: ControlledT) -> bool:
        ref = controller_ref(self._owners, owner.metadata)
        return await self._patch(obj, [ref])

    async def _release(self, owner: OwnerT, obj: ControlledT) -> None:
        await self._patch(obj, [{"$patch": "delete", "uid": owner.metadata.uid}])

    async def _patch(self, obj: ControlledT, owners: list[dict[str, Any]]) -> bool:
        change = {"metadata": {"uid": obj.metadata.uid, "ownerReferences": owners}}
        try:
            await self._transport.patch(self._objects, key_of(obj), change, PatchType.STRATEGIC)
        except (NotFound, Invalid):
            # Deleted, recreated, or adopted by another owner.
            return False
        return True

"""Writes the ControllerRevisions of StatefulSets and DaemonSets, as client-go's history."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from sully.client.informers.informer import Informer
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.controllers.workloads.kinds import REVISIONS, by_controller, controller_ref
from sully.controllers.workloads.owned_pods import OwnedPods
from sully.domain.workloads.daemonsets import DaemonSet
from sully.domain.workloads.history import (
    ControllerRevision,
    by_number,
    hash_of,
    matching,
    next_number,
    patch_of,
    surplus,
)
from sully.domain.workloads.revisions import sorted_by_name
from sully.domain.workloads.statefulsets import StatefulSet
from sully.domain.workloads.workloads import template_labels
from sully.machinery.errors import AlreadyExists, NotFound

OwnerT = TypeVar("OwnerT", bound=StatefulSet | DaemonSet)


class _CollisionError(Exception):
    """The name of a new revision is taken by another template."""


class History(msgspec.Struct, frozen=True):
    """The revisions of an owner, the oldest first, and that of its template."""

    revisions: tuple[ControllerRevision, ...]
    update: ControllerRevision

    def named(self, name: str) -> ControllerRevision | None:
        """Return a revision by its name."""
        return next((revision for revision in self.revisions if revision.name == name), None)


class HistoryControl(Generic[OwnerT]):
    """Keeps a revision for each template of an owner."""

    def __init__(
        self, owned: OwnedPods[OwnerT], revisions: Informer[ControllerRevision], label: str
    ) -> None:
        self._owned = owned
        self._transport = owned.transport
        self._revisions = revisions
        self._label = label
        """The label of a revision that has its hash."""
        self._index = f"{owned.kind.plural}/controller"
        revisions.add_index(self._index, by_controller)

    async def sync(self, owner: OwnerT) -> History | None:
        """Find or create the revision of the template, as the newest one.

        None: its name is taken. The collision is counted, and the next call uses another name.
        """
        known = by_number(self._revisions.by_index(self._index, owner.metadata.uid))
        update = matching(known, owner.spec.template)
        if update is None:
            try:
                update = await self._create(owner, next_number(known))
            except _CollisionError:
                collisions = (owner.status.collision_count or 0) + 1
                status = replace(owner.status, collision_count=collisions)
                await self._owned.write_status(owner, status)
                return None
        elif known[-1].name != update.name:
            change = {"revision": next_number(known)}
            update = await self._transport.patch(REVISIONS, key_of(update), change)
        others = [revision for revision in known if revision.name != update.name]
        return History((*others, update), update)

    async def _create(self, owner: OwnerT, number: int) -> ControllerRevision:
        template: dict[str, Any] = owner.spec.template
        hash_ = hash_of(template, owner.status.collision_count)
        name, namespace = f"{owner.name}-{hash_}", owner.metadata.namespace
        body = {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": template_labels(template) | {self._label: hash_},
                "ownerReferences": [controller_ref(self._owned.kind, owner.metadata)],
            },
            # kubectl rollout undo compares the bytes with those of Go, which sorts fields.
            "data": sorted_by_name(patch_of(template)),
            "revision": number,
        }
        try:
            return await self._transport.create(REVISIONS, body)
        except AlreadyExists:
            existing = await self._transport.get(REVISIONS, Key(namespace, name))
            ours = existing.metadata.is_controlled_by(owner.metadata.uid)
            if ours and existing.data == patch_of(template):
                # The cache does not show it yet.
                return existing
            raise _CollisionError(name) from None

    async def truncate(self, history: History, used: Collection[str], limit: int | None) -> None:
        """Delete the revisions beyond the limit that no pod was created from."""
        for revision in surplus(history.revisions, {*used, history.update.name}, limit):
            try:
                await self._transport.delete(REVISIONS, key_of(revision))
            except NotFound:
                continue

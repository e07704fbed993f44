"""Writes the ControllerRevisions of StatefulSets and DaemonSets, as client-go's history."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sully.client.informers.informer import Informer
from sully.client.objects import key_of
from sully.client.transport import Key, Kind, Transport
from sully.controllers.workloads import REVISIONS, by_controller, controller_ref
from sully.domain.workloads.history import (
    ControllerRevision,
    by_number,
    hash_of,
    matching,
    next_number,
    patch_of,
    surplus,
)
from sully.domain.workloads.workloads import Workload, template_labels
from sully.machinery.errors import AlreadyExists, NotFound


class RevisionCollisionError(Exception):
    """The name of a new revision is taken by another template."""


@dataclass(frozen=True, slots=True)
class History:
    """The revisions of an owner, the oldest first, and that of its template."""

    revisions: tuple[ControllerRevision, ...]
    update: ControllerRevision

    def named(self, name: str) -> ControllerRevision | None:
        """Return a revision by its name."""
        return next((revision for revision in self.revisions if revision.name == name), None)


class HistoryControl:
    """Keeps a revision for each template of an owner."""

    def __init__(
        self,
        transport: Transport,
        revisions: Informer[ControllerRevision],
        kind: Kind[Any],
        label: str,
    ) -> None:
        self._transport = transport
        self._revisions = revisions
        self._kind = kind
        self._label = label
        """The label of a revision that has its hash."""
        self._index = f"{kind.plural}/controller"
        revisions.add_index(self._index, by_controller)

    async def sync(
        self, owner: Workload, template: dict[str, Any], collisions: int | None
    ) -> History:
        """Find or create the revision of a template, as the newest one."""
        known = by_number(self._revisions.by_index(self._index, owner.metadata.uid))
        update = matching(known, template)
        if update is None:
            update = await self._create(owner, template, collisions, next_number(known))
        elif known[-1].name != update.name:
            change = {"revision": next_number(known)}
            update = await self._transport.patch(REVISIONS, key_of(update), change)
        others = [revision for revision in known if revision.name != update.name]
        return History((*others, update), update)

    async def _create(
        self, owner: Workload, template: dict[str, Any], collisions: int | None, number: int
    ) -> ControllerRevision:
        hash_ = hash_of(template, collisions)
        name, namespace = f"{owner.name}-{hash_}", owner.metadata.namespace
        body = {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": template_labels(template) | {self._label: hash_},
                "ownerReferences": [controller_ref(self._kind, owner.metadata)],
            },
            "data": patch_of(template),
            "revision": number,
        }
        try:
            return await self._transport.create(REVISIONS, body)
        except AlreadyExists:
            existing = await self._transport.get(REVISIONS, Key(namespace, name))
            controller = existing.metadata.controller()
            ours = controller is not None and controller.uid == owner.metadata.uid
            if ours and existing.data == patch_of(template):
                # The cache does not show it yet.
                return existing
            raise RevisionCollisionError(name) from None

    async def truncate(self, history: History, used: Collection[str], limit: int | None) -> None:
        """Delete the revisions beyond the limit that no pod was created from."""
        for revision in surplus(history.revisions, {*used, history.update.name}, limit):
            try:
                await self._transport.delete(REVISIONS, key_of(revision))
            except NotFound:
                continue

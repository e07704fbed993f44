"""What else decides about pods with constraints: volumes, and the labels of namespaces."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.scheduling.cluster_events import ClusterEvent
from sully.domain.scheduling.objects import Namespace
from sully.domain.scheduling.volumes.objects import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from sully.views.snapshot.kinds import (
    CONSTRAINT_KINDS,
    NAMESPACES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
)
from sully.views.snapshot.snapshot import Snapshot

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim, StorageClass)


class ConstraintSources:
    """Volumes, claims for them, storage classes and namespaces; a `VolumeLookup`.

    `moved` is called with the events that may help pods.
    """

    def __init__(self, moved: Callable[[ClusterEvent], None] | None = None) -> None:
        self._moved = moved
        self._claims: dict[Key, PersistentVolumeClaim] = {}
        self._volumes: dict[Key, PersistentVolume] = {}
        self._classes: dict[Key, StorageClass] = {}
        self.namespaces: dict[str, dict[str, str]] = {}
        """The labels of namespaces."""
        self.unreadable: frozenset[str] = frozenset()
        """The plurals of kinds that could not be listed."""
        self.version = 0
        """Increases with every change."""

    def read(self, snapshot: Snapshot) -> None:
        """Take everything from a snapshot."""
        for namespace in snapshot.of(NAMESPACES).values():
            self.namespace_changed(None, namespace)
        for claim in snapshot.of(VOLUME_CLAIMS).values():
            self.volume_claim_changed(None, claim)
        for volume in snapshot.of(VOLUMES).values():
            self.volume_changed(None, volume)
        for class_ in snapshot.of(STORAGE_CLASSES).values():
            self.storage_class_changed(None, class_)
        gaps = map(snapshot.gap, CONSTRAINT_KINDS)
        self.unreadable = frozenset(gap.kind.plural for gap in gaps if gap is not None)

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """Return a claim, or None."""
        return self._claims.get(Key(namespace, name))

    def volume(self, name: str) -> PersistentVolume | None:
        """Return a volume, or None."""
        return self._volumes.get(Key("", name))

    def storage_class(self, name: str) -> StorageClass | None:
        """Return a class, or None."""
        return self._classes.get(Key("", name))

    def default_class(self) -> str:
        """Return the name of the default class; empty if there is none."""
        names = (key.name for key, class_ in self._classes.items() if class_.is_default)
        return min(names, default="")

    def volumes(self) -> Iterable[PersistentVolume]:
        """Return all volumes, by name."""
        return [self._volumes[key] for key in sorted(self._volumes)]

    # -- events -----------------------------------------------------------------------------------

    def volume_claim_changed(
        self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None
    ) -> None:
        """Handle a change of a claim for a volume."""
        self._change(self._claims, old, new)

    def volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        """Handle a change of a volume."""
        self._change(self._volumes, old, new)

    def storage_class_changed(self, old: StorageClass | None, new: StorageClass | None) -> None:
        """Handle a change of a storage class."""
        self._change(self._classes, old, new)

    def namespace_changed(self, old: Namespace | None, new: Namespace | None) -> None:
        """Handle a change of a namespace."""
        if old is not None and new is not None and old.metadata.labels == new.metadata.labels:
            return
        if new is not None:
            self.namespaces[new.metadata.name] = new.metadata.labels
        elif old is not None:
            self.namespaces.pop(old.metadata.name, None)
        self._move(ClusterEvent.NAMESPACE_UPDATE)

    def _change(self, known: dict[Key, T], old: T | None, new: T | None) -> None:
        if new is not None:
            known[key_of(new)] = new
        elif old is not None:
            known.pop(key_of(old), None)
        self._move(ClusterEvent.VOLUME_UPDATE)

    def _move(self, event: ClusterEvent) -> None:
        self.version += 1
        if self._moved is not None:
            self._moved(event)

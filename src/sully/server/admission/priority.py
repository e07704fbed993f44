"""Finds the PriorityClass that pods without one get."""

from typing import Any

from sully.server.storage.newest import NewestObjects
from sully.server.storage.objects import Objects
from sully.store.base import Store

Obj = dict[str, Any]

_CLASSES = "scheduling.k8s.io/priorityclasses"
_DEFAULT = "default"


class DefaultPriorityClass(NewestObjects):
    """The class with `globalDefault`."""

    def __init__(self, store: Store, objects: Objects) -> None:
        super().__init__(
            store, objects, _CLASSES, lambda obj: _DEFAULT if obj.get("globalDefault") else None
        )

    def get(self) -> Obj | None:
        """Return the class; of several the one with the lowest value."""
        return min(self.of(_DEFAULT), key=lambda obj: int(obj["value"]), default=None)

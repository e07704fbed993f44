"""The fleet as the store has it, for questions about placements.

Nothing is cached before the first request; from then on a request costs what changed since the
last one. It does not depend on the controllers, which may
run elsewhere or not at all. The pages are `http/placements/pages.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from sully.api.cluster.types import (
    GROUP,
    AddOnPlacementScore,
    ManagedCluster,
    ManagedClusterSet,
    ManagedClusterSetBinding,
    Placement,
    PlacementDecision,
)
from sully.domain.placement.incremental.fleet import Fleet
from sully.domain.placement.options import PlacementOptions
from sully.server.storage.informer import ObjectHandler, StoreInformer
from sully.server.storage.objects import Objects
from sully.store.base import Store

Obj = dict[str, Any]
T = TypeVar("T")
R = TypeVar("R")


class _Typed(Generic[T]):
    """Passes stored objects to a fleet as typed values."""

    def __init__(
        self, type_: type[T], put: Callable[[T], object], remove: Callable[[str, str], object]
    ) -> None:
        self._type = type_
        self._put = put
        self._remove = remove

    def put(self, obj: Obj) -> None:
        self._put(msgspec.convert(obj, self._type))

    def drop(self, namespace: str, name: str) -> None:
        self._remove(namespace, name)


class StoredFleet:
    """Evaluates requests on the fleet of a store, one at a time."""

    def __init__(self, store: Store, objects: Objects, options: PlacementOptions) -> None:
        self.options = options
        self._fleet = Fleet(options)
        self._informer = StoreInformer(store, objects, _sinks(self._fleet))
        self._lock = asyncio.Lock()

    async def evaluate(self, evaluation: Callable[[Fleet], R]) -> R:
        """Evaluate a function on the current fleet, in a thread."""
        async with self._lock:
            await self._informer.catch_up()
            return await asyncio.to_thread(evaluation, self._fleet)


def _sinks(fleet: Fleet) -> dict[str, ObjectHandler]:
    """Return the handlers by resource; sets come first, since others refer to them."""
    handlers: dict[str, ObjectHandler] = {
        "managedclustersets": _Typed(
            ManagedClusterSet, fleet.put_set, lambda _, name: fleet.remove_set(name)
        ),
        "managedclustersetbindings": _Typed(
            ManagedClusterSetBinding, fleet.put_binding, fleet.remove_binding
        ),
        "addonplacementscores": _Typed(AddOnPlacementScore, fleet.put_score, fleet.remove_score),
        "managedclusters": _Typed(
            ManagedCluster, fleet.put_cluster, lambda _, name: fleet.remove_cluster(name)
        ),
        "placementdecisions": _Typed(
            PlacementDecision, fleet.put_decision, lambda *at: fleet.remove_decision(at)
        ),
        "placements": _Typed(
            Placement, fleet.put_placement, lambda *key: fleet.remove_placement(key)
        ),
    }
    return {f"{GROUP}/{plural}": sink for plural, sink in handlers.items()}

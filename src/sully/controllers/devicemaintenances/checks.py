"""Whether a maintenance may evict pods now: it is unchanged, and the caches are fresh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sully.api.sully.types import DeviceMaintenance
from sully.client.informers.informer import Informer
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.evictor.freshness import CacheFreshness


class MaintenanceChecks:
    """Checks what every eviction of a maintenance depends on."""

    def __init__(
        self,
        maintenances: Informer[DeviceMaintenance],
        caches: Sequence[Informer[Any]],
        max_staleness: float | None,
        requeue: Callable[[Key], None],
    ) -> None:
        self._maintenances = maintenances
        self._freshness = CacheFreshness(
            [cache.freshness for cache in caches],
            max_staleness,
            requeue=requeue,
            refresh=lambda number: caches[number].refresh(),
        )
        for number, cache in enumerate(caches):
            cache.freshness.on_confirmed(partial(self._freshness.confirmed, number))

    def is_fresh(self, key: Key) -> bool:
        """Report whether the caches of pods and devices are fresh; if not, requeue it later."""
        return self._freshness.is_fresh(key)

    def forget(self, key: Key) -> None:
        """Note that a maintenance does not wait for caches any more."""
        self._freshness.forget(key)

    def allows(self, maintenance: DeviceMaintenance) -> bool:
        """Report whether pods may be evicted for a maintenance that was decided about."""
        key = key_of(maintenance)
        return self._is_unchanged(key, maintenance) and self.is_fresh(key)

    def _is_unchanged(self, key: Key, maintenance: DeviceMaintenance) -> bool:
        """Report whether it was not paused, cancelled, changed or deleted, as far as is known."""
        newest = self._maintenances.get(key)
        return (
            newest is not None
            and newest.metadata.uid == maintenance.metadata.uid
            and newest.metadata.deletion_timestamp is None
            # The cache may be behind.
            and newest.metadata.generation <= maintenance.metadata.generation
        )

"""Keeps the taints that say how a cluster is: unavailable, unreachable, or neither.

Reads clusters and writes their taints; the table is `domain/clusters/health.py`. Whoever removes or
adds one of these by hand sees it come back or go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sully.api.cluster.types import ManagedCluster
from sully.client.informers.informer import Informer, own_key
from sully.client.options import WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.clusters.kinds import TAINTING
from sully.controllers.clusters.writing import written_taints
from sully.controllers.conditions import same
from sully.controllers.framework import DONE, Result, Watch
from sully.domain.clusters.health import wanted_taints
from sully.views.fleet_kinds import CLUSTERS


class HealthTaintController:
    """Taints clusters after their health."""

    name = TAINTING

    def __init__(self, *, clusters: Informer[ManagedCluster], transport: Transport) -> None:
        self._clusters = clusters
        self._transport = transport
        self._options = WriteOptions(field_manager=TAINTING)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for clusters."""
        yield Watch(self._clusters, own_key)

    async def reconcile(self, key: Key) -> Result:
        """Write the taints of a cluster if they do not fit its health."""
        cluster = self._clusters.get(key)
        taints = wanted_taints(cluster) if cluster is not None else None
        if cluster is not None and taints is not None:
            patch = same(cluster.metadata) | {"spec": {"taints": written_taints(taints)}}
            await self._transport.patch(CLUSTERS, key, patch, options=self._options)
        return DONE

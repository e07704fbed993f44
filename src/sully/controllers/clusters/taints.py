"""Keeps the taints for the health of a cluster: unavailable, unreachable, or neither.

Reads clusters and writes their taints; the table is `domain/clusters/health.py`. Such a taint that
is removed or added manually is restored or removed. Other taints get their time if the server does
not set it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sully.api.cluster.types import ManagedCluster
from sully.client.informers.informer import Informer, own_key
from sully.client.options import WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.clusters.names import TAINT_CONTROLLER
from sully.controllers.clusters.taint_times import ClusterTaintWriter
from sully.controllers.framework.controller import DONE, Result, Watch
from sully.domain.clusters.health import desired_taints


class HealthTaintController:
    """Taints clusters by their health."""

    name = TAINT_CONTROLLER

    def __init__(
        self, *, clusters: Informer[ManagedCluster], times: ClusterTaintWriter, transport: Transport
    ) -> None:
        self._clusters = clusters
        self._times = times
        self._transport = transport
        self._options = WriteOptions(field_manager=TAINT_CONTROLLER)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for clusters."""
        yield Watch(self._clusters, own_key)

    async def reconcile(self, key: Key) -> Result:
        """Write the taints of a cluster if they do not match its health."""
        cluster = self._clusters.get(key)
        if cluster is None or cluster.metadata.deletion_timestamp is not None:
            self._times.observe(key, None)
            return DONE
        taints = desired_taints(cluster)
        if taints is None and not self._times.lacks(cluster):
            self._times.observe(key, cluster)
            return DONE
        desired = taints if taints is not None else cluster.spec.taints
        await self._times.write(self._transport, cluster, desired, self._options)
        return DONE

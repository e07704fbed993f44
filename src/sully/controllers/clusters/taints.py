"""Keeps the taints for the health of a cluster: unavailable, unreachable, or neither.

Reads clusters and writes their taints; the table is `domain/clusters/health.py`. Such a taint that
is removed or added manually is restored or removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sully.api.cluster.types import ManagedCluster, Taint
from sully.client.informers.informer import Informer, own_key
from sully.client.options import WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.clusters.kinds import TAINT_CONTROLLER
from sully.controllers.conditions import preconditions
from sully.controllers.framework import DONE, Result, Watch
from sully.domain.clusters.health import wanted_taints
from sully.machinery.timestamps import format_time
from sully.views.fleet_kinds import CLUSTERS


class HealthTaintController:
    """Taints clusters by their health."""

    name = TAINT_CONTROLLER

    def __init__(self, *, clusters: Informer[ManagedCluster], transport: Transport) -> None:
        self._clusters = clusters
        self._transport = transport
        self._options = WriteOptions(field_manager=TAINT_CONTROLLER)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for clusters."""
        yield Watch(self._clusters, own_key)

    async def reconcile(self, key: Key) -> Result:
        """Write the taints of a cluster if they do not match its health."""
        cluster = self._clusters.get(key)
        taints = wanted_taints(cluster) if cluster is not None else None
        if cluster is not None and taints is not None:
            patch = preconditions(cluster.metadata) | {"spec": {"taints": encode_taints(taints)}}
            await self._transport.patch(CLUSTERS, key, patch, options=self._options)
        return DONE


def encode_taints(taints: Sequence[Taint]) -> list[dict[str, Any]] | None:
    """Return a list of taints for a patch; None, if it is empty, removes the field.

    An existing `timeAdded` is included: OCM refuses to remove it.
    """
    return [_encode(taint) for taint in taints] or None


def _encode(taint: Taint) -> dict[str, Any]:
    body: dict[str, Any] = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        body["value"] = taint.value
    if taint.time_added is not None:
        body["timeAdded"] = format_time(taint.time_added)
    return body

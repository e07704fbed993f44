"""Removes expired taints of clusters, by the annotation `sully.dev/taint-history`.

Also records that a taint is gone where the server does not: a taint that is set again must not
expire at the time of the former one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sully.api.cluster.taints.history import (
    TAINT_HISTORY,
    expiry_of,
    is_expired,
    read_history,
    with_removed,
    write_history,
)
from sully.api.cluster.types import ManagedCluster
from sully.client.events import reference
from sully.client.informers.informer import Informer, own_key
from sully.client.options import WriteOptions
from sully.client.transport import Key
from sully.controllers.clusters.taint_times import encode_taints
from sully.controllers.framework.conditions import preconditions
from sully.controllers.framework.controller import DONE, ControllerEnv, Result, Watch
from sully.controllers.framework.event_reasons import EXPIRED
from sully.domain.clusters.policies import taint_id
from sully.views.fleet_kinds import CLUSTERS

Obj = dict[str, Any]


class ClusterTaintExpiryController:
    """Removes expired taints of clusters."""

    name = "taint-expiry-controller-managedclusters"

    def __init__(
        self,
        clusters: Informer[ManagedCluster],
        *,
        env: ControllerEnv,
    ) -> None:
        self._clusters = clusters
        self._transport, self._recorder, self._clock = env
        self._options = WriteOptions(field_manager=self.name)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for clusters; most have no taint that expires."""
        yield Watch(self._clusters, own_key)

    async def reconcile(self, key: Key) -> Result:
        """Remove the expired taints of a cluster, and requeue it for the next one."""
        cluster = self._clusters.get(key)
        if cluster is None or cluster.metadata.deletion_timestamp is not None:
            return DONE
        entries = read_history(cluster.metadata.annotations)
        if not entries:
            return DONE
        now, taints = self._clock.now(), cluster.spec.taints
        staying = [taint for taint in taints if not is_expired(entries, taint_id(taint), now)]
        ids = [taint_id(taint) for taint in staying]
        recorded = with_removed(entries, ids, now=now, by="")
        if recorded != entries:
            patch: Obj = preconditions(cluster.metadata)
            patch["metadata"]["annotations"] = {TAINT_HISTORY: write_history(recorded)}
            if len(staying) < len(taints):
                patch["spec"] = {"taints": encode_taints(staying)}
            await self._transport.patch(CLUSTERS, key, patch, options=self._options)
        for taint in taints:
            if taint not in staying:
                text = f"Removed the taint {taint.key}:{taint.effect} because it expired"
                self._recorder.event(reference(CLUSTERS, cluster), "Normal", EXPIRED, text)
        ends = [time for taint in ids if (time := expiry_of(entries, taint)) is not None]
        return Result(requeue_after=min(ends) - now) if ends else DONE

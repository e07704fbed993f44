"""Sets `timeAdded` of cluster taints where the server does not: `tolerationSeconds` count from it.

Sully's server and the webhook of OCM set it themselves, and OCM refuses a new taint that has a
time. A server with only the CustomResourceDefinitions stores what is sent. Which kind of server it
is shows in the response to a dry run, before the first write that adds a taint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from sully.api.cluster.taints.policy_taints import TaintId
from sully.api.cluster.taints.times import shared_clock
from sully.api.cluster.types import ManagedCluster, Taint
from sully.client.objects import key_of
from sully.client.options import PatchType, WriteOptions
from sully.client.transport import TRANSIENT, Key, Transport
from sully.controllers.framework.conditions import preconditions
from sully.domain.clusters.policies import taint_id
from sully.machinery.errors import ApiError, Conflict, NotFound
from sully.machinery.formats.timestamps import format_time
from sully.runtime.clock import Clock
from sully.views.fleet_kinds import CLUSTERS

Obj = dict[str, Any]


class ClusterTaintWriter:
    """Writes taints of clusters, with the times that the server does not set."""

    def __init__(self, clock: Clock, *, set_by_server: bool | None = None) -> None:
        self._clock = clock
        self._set_by_server = set_by_server
        """None: not known yet."""
        self._known: dict[Key, dict[TaintId, datetime]] = {}
        """The times that taints had last: a client that writes taints without them resets none."""

    def lacks(self, cluster: ManagedCluster) -> bool:
        """Report whether a taint of a cluster needs a time."""
        return self._set_by_server is not True and any(
            taint.time_added is None for taint in cluster.spec.taints
        )

    def observe(self, key: Key, cluster: ManagedCluster | None) -> None:
        """Cache the times of a cluster's taints; None: the cluster is gone."""
        if cluster is None:
            self._known.pop(key, None)
        elif self._set_by_server is not True:
            self._cache_result(key, cluster.spec.taints)

    async def write(
        self,
        transport: Transport,
        cluster: ManagedCluster,
        taints: Sequence[Taint],
        options: WriteOptions,
        *,
        annotations: Obj | None = None,
    ) -> None:
        """Replace the taints of a cluster, unless it changed since it was read."""
        key, patch = key_of(cluster), preconditions(cluster.metadata)
        if annotations is not None:
            patch["metadata"]["annotations"] = annotations
        patch["spec"] = {"taints": encode_taints(taints)}
        new = {taint_id(taint) for taint in taints if taint.time_added is None}
        added = new - {taint_id(taint) for taint in cluster.spec.taints}
        if added and self._set_by_server is None:
            self._set_by_server = await _is_set_by_server(transport, key, patch, options, added)
        if not new or self._set_by_server:
            await transport.patch(CLUSTERS, key, patch, options=options)
            return
        timed = self._with_times(key, taints)
        patch["spec"] = {"taints": encode_taints(timed)}
        try:
            await transport.patch(CLUSTERS, key, patch, options=options)
        except (*TRANSIENT, Conflict, NotFound):
            raise
        except ApiError:
            # A server that refuses times sets them itself: perhaps its webhook was just installed.
            self._set_by_server = True if not added else None
            if added:
                raise
            return
        self._cache_result(key, timed)

    def _with_times(self, key: Key, taints: Iterable[Taint]) -> tuple[Taint, ...]:
        known, now = self._known.get(key, {}), self._clock.now().replace(microsecond=0)
        shared = {shared_clock(taint): added for taint, added in known.items()}

        def added(taint: Taint) -> datetime:
            own = taint_id(taint)
            return taint.time_added or known.get(own) or shared.get(shared_clock(own), now)

        return tuple(replace(taint, time_added=added(taint)) for taint in taints)

    def _cache_result(self, key: Key, taints: Iterable[Taint]) -> None:
        self._known[key] = {
            taint_id(taint): taint.time_added for taint in taints if taint.time_added is not None
        }


async def _is_set_by_server(
    transport: Transport, key: Key, patch: Obj, options: WriteOptions, added: set[TaintId]
) -> bool:
    """Report whether the server gives new taints their time."""
    trial = WriteOptions(field_manager=options.field_manager, dry_run=True)
    cluster = await transport.patch(CLUSTERS, key, patch, PatchType.MERGE, options=trial)
    return any(taint_id(taint) in added and taint.time_added for taint in cluster.spec.taints)


def encode_taints(taints: Sequence[Taint]) -> list[Obj] | None:
    """Return a list of taints for a patch; None, if it is empty, removes the field.

    An existing `timeAdded` is included: OCM refuses to remove it.
    """
    return [_encode(taint) for taint in taints] or None


def _encode(taint: Taint) -> Obj:
    body: Obj = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        body["value"] = taint.value
    if taint.time_added is not None:
        body["timeAdded"] = format_time(taint.time_added)
    return body

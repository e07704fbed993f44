"""What the pages ask about clusters and placements, and the samples for charts."""

from collections import Counter
from contextlib import suppress
from operator import itemgetter
from typing import Any

from sully.api.cluster.types import ManagedCluster, Placement
from sully.cli.client.snapshots import take_snapshot
from sully.cli.command import CommandError
from sully.cli.dashboard.command_sessions import session_of
from sully.cli.dashboard.queries import Query
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.dashboard.viewers import Viewer
from sully.machinery.meta import find_condition
from sully.views.fleet_kinds import CLUSTERS, DECISIONS, PLACEMENTS
from sully.views.kinds import EVICTION_RECORDS, TAINT_RECORDS
from sully.views.snapshot.snapshot import Snapshot

MAX_MINUTES = 24 * 60
MAX_REPAIRS = 1000
_AVAILABLE = "ManagedClusterConditionAvailable"
_PLACEMENT = "cluster.open-cluster-management.io/placement"


async def clusters(viewer: Viewer, _: Query) -> Any:
    """Return clusters with their health and taints, and placements with their decisions."""
    caches = viewer.live.caches
    decided: dict[Key, list[str]] = {}
    for decision in caches.of(DECISIONS).values():
        name = decision.metadata.labels.get(_PLACEMENT, "")
        names = [str(one.cluster_name) for one in decision.status.decisions]
        decided.setdefault(Key(decision.metadata.namespace, name), []).extend(names)
    gap = caches.gap(CLUSTERS)
    return {
        "served": gap is None or gap.reason != "not served",
        "clusters": [
            _cluster(x, decided) for x in sorted(caches.of(CLUSTERS).values(), key=key_of)
        ],
        "placements": [
            _placement(x, decided) for x in sorted(caches.of(PLACEMENTS).values(), key=key_of)
        ],
    }


def _cluster(cluster: ManagedCluster, decided: dict[Key, list[str]]) -> dict[str, Any]:
    name = cluster.metadata.name
    condition = find_condition(cluster.status.conditions, _AVAILABLE)
    return {
        "name": name,
        "available": condition.status if condition is not None else "Unknown",
        "message": condition.message if condition is not None else "",
        "labels": cluster.metadata.labels,
        "taints": [
            {
                "key": taint.key,
                "value": taint.value,
                "effect": taint.effect,
                "timeAdded": taint.time_added,
            }
            for taint in cluster.spec.taints
        ],
        "placements": [str(key) for key, names in sorted(decided.items()) if name in names],
    }


def _placement(placement: Placement, decided: dict[Key, list[str]]) -> dict[str, Any]:
    key = key_of(placement)
    return {
        "namespace": key.namespace,
        "name": key.name,
        "clusters": sorted(decided.get(key, ())),
        "wanted": placement.spec.number_of_clusters,
        "conditions": [
            {"type": x.type, "status": x.status, "reason": x.reason, "message": x.message}
            for x in placement.status.conditions
        ],
    }


async def charts(viewer: Viewer, _: Query) -> Any:
    """Return curves: samples of this dashboard, and what records contain about the past."""
    session = session_of(viewer, "history", {}, ())
    past: dict[str, Any] = {"recorded": False, "evictions": [], "repairs": []}
    with suppress(CommandError):
        snapshot = await take_snapshot(session, (EVICTION_RECORDS, TAINT_RECORDS))
        past = await viewer.work.run(_past, snapshot)
    return {"samples": list(viewer.live.samples), **past}


def _past(snapshot: Snapshot) -> dict[str, Any]:
    """Return the newest evictions by minute, and the newest repairs."""
    evicted = (x.spec.evicted_time for x in snapshot.of(EVICTION_RECORDS).values())
    minutes = Counter(int(time.timestamp()) // 60 * 60 for time in evicted)
    ended = (
        (record.status.deleted_time, record.spec)
        for record in snapshot.of(TAINT_RECORDS).values()
        if record.status.deleted_time is not None
    )
    repairs = [
        {"time": end, "seconds": (end - spec.added_time).total_seconds(), "rule": spec.rule.name}
        for end, spec in sorted(ended, key=itemgetter(0))[-MAX_REPAIRS:]
    ]
    return {
        "recorded": snapshot.gap(EVICTION_RECORDS) is None,
        "evictions": sorted(minutes.items())[-MAX_MINUTES:],
        "repairs": repairs,
    }

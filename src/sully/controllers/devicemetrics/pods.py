"""Counts what happens to pods with claims: which taints block pending ones, and evictions.

Reads pods and claims; writes nothing but metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from sully.api.resource.types import ResourceClaim
from sully.client.informers.informer import Informer
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.controllers.devicemetrics.metrics import BLOCKED, DeviceMetrics
from sully.domain.claims.pods import claim_references
from sully.domain.observability.evictions import (
    Begun,
    Ended,
    EvictionEvent,
    EvictionTracker,
    Replaced,
)
from sully.domain.observability.pending import Demand, count_blocked, demand_of
from sully.domain.observability.pool_counts import BlockingTaint
from sully.domain.scheduling.objects import Pod
from sully.runtime.clock import Clock
from sully.runtime.metrics import Values


class PendingPods:
    """What pending pods request.

    A pod that is scheduled between two scrapes is never read: each scrape reads the pods that
    changed since the last one and are still pending.
    """

    def __init__(
        self,
        *,
        pods: Informer[Pod],
        claims: Informer[ResourceClaim],
        blocked: Mapping[str, Counter[BlockingTaint]],
        metrics: DeviceMetrics,
    ) -> None:
        self._pods = pods
        self._claims = claims
        self._blocked = blocked
        self._unread: set[Key] = set()
        """Pending pods that changed, or whose claims did not all exist."""
        self._demands: dict[Key, Demand] = {}
        self._counts: Counter[Demand] = Counter()
        pods.on_change(self._changed)
        metrics.follow(BLOCKED, self._values)

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and _is_pending(new) and claim_references(new):
            self._unread.add(key_of(new))
        elif old is not None:
            key = key_of(old)
            self._unread.discard(key)
            self._set(key, None)

    def _values(self) -> Values:
        for key in list(self._unread):
            self._read(key)
        counts = count_blocked(self._counts, self._blocked)
        return {tuple(blocker): count for blocker, count in counts.items()}

    def _read(self, key: Key) -> None:
        pod = self._pods.get(key)
        references = claim_references(pod) if pod is not None else []
        keys = (Key(key.namespace, reference.name) for reference in references if reference.name)
        claims = [claim for name in keys if (claim := self._claims.get(name)) is not None]
        self._set(key, demand_of(claim.spec for claim in claims))
        if len(claims) == len(references):
            self._unread.discard(key)

    def _set(self, key: Key, demand: Demand | None) -> None:
        before = self._demands.pop(key, None)
        if before is not None:
            self._counts[before] -= 1
            if not self._counts[before]:
                del self._counts[before]
        if demand:
            self._demands[key] = demand
            self._counts[demand] += 1


class EvictionMetricsHandler:
    """Counts evictions, from the changes of pods."""

    def __init__(self, pods: Informer[Pod], metrics: DeviceMetrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._tracker = EvictionTracker()
        pods.on_change(self._changed)

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        now = self._clock.now()
        for event in self._tracker.change(old, new, now):
            self._count(event, now)

    def _count(self, event: EvictionEvent, now: datetime) -> None:
        seconds = (now - event.eviction.began).total_seconds()
        match event:
            case Begun(eviction):
                self._metrics.began(eviction.reason)
            case Ended(eviction):
                self._metrics.ended(eviction.reason, seconds)
            case Replaced():
                self._metrics.replaced(seconds)
            case _:
                self._metrics.unschedulable()


def _is_pending(pod: Pod) -> bool:
    return pod.is_active and not pod.spec.node_name

"""Counts what happens to pods with claims: which taints block pending ones, and evictions.

Reads pods and claims; writes nothing but metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from sully.api.resource.types import ResourceClaim
from sully.client.informers.informer import Informer, own_key
from sully.client.transport import Key
from sully.controllers.devicemetrics.metrics import BLOCKED, DeviceMetrics
from sully.controllers.framework import DONE, Result, Watch
from sully.controllers.sources import Filtered
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

NAME: Final = "pending-pod-metrics-controller"
CLAIM_MISSING: Final = timedelta(seconds=30)
"""After this a pod is looked at again whose claim did not exist."""


class PendingPodsController:
    """Keeps what pending pods request."""

    name = NAME

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
        self._demands: dict[Key, Demand] = {}
        self._counts: Counter[Demand] = Counter()
        metrics.follow(BLOCKED, self._values)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for pods that have no node, or have one now."""
        yield Watch(Filtered(self._pods, _may_matter), own_key)

    async def reconcile(self, key: Key) -> Result:
        """Note what a pod requests while it is pending."""
        pod, demand, missing = self._pods.get(key), None, False
        if pod is not None and _is_pending(pod):
            references = claim_references(pod)
            keys = (Key(key.namespace, one.name) for one in references if one.name)
            claims = [self._claims.get(claim) for claim in keys]
            missing = len(references) > len([claim for claim in claims if claim is not None])
            demand = demand_of(claim.spec for claim in claims if claim is not None)
        self._set(key, demand)
        return Result(requeue_after=CLAIM_MISSING) if missing else DONE

    def _set(self, key: Key, demand: Demand | None) -> None:
        before = self._demands.pop(key, None)
        if before is not None:
            self._counts[before] -= 1
            if not self._counts[before]:
                del self._counts[before]
        if demand:
            self._demands[key] = demand
            self._counts[demand] += 1

    def _values(self) -> Values:
        counts = count_blocked(self._counts, self._blocked)
        return {tuple(blocker): count for blocker, count in counts.items()}


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
    return not (pod.spec.node_name or pod.is_terminating or pod.finished)


def _may_matter(old: Pod | None, new: Pod | None) -> bool:
    """Report whether a pod with claims is pending, or was."""
    states = [pod for pod in (old, new) if pod is not None]
    return any(_is_pending(pod) and claim_references(pod) for pod in states)

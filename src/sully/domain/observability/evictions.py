"""The life of an eviction, seen from the pods: begun, ended, replaced.

It works with every evictor, because all of them set the condition DisruptionTarget: Kubernetes'
own, Sully's, and the Eviction API that a drain uses. Only pods with claims count.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from datetime import datetime
from typing import Final

import msgspec

from sully.api.core.pods.conditions import DEVICE_TAINT, DISRUPTION_TARGET, POD_SCHEDULED
from sully.domain.claims.pods import claim_references
from sully.domain.scheduling.objects import Pod, PodCondition
from sully.machinery.meta import find_condition

REASONS: Final = frozenset((DEVICE_TAINT, "EvictionByEvictionAPI"))
"""The reasons of DisruptionTarget that are evictions from devices."""
AWAITED_MAX: Final = 10_000
"""How many evicted pods may lack a replacement; beyond this the oldest are forgotten."""


class Eviction(msgspec.Struct, frozen=True):
    """The eviction of one pod."""

    namespace: str
    name: str
    uid: str
    node: str
    reason: str
    message: str
    owner: str
    """The uid of its controller; empty if nothing replaces it."""
    began: datetime


class Begun(msgspec.Struct, frozen=True):
    """A pod is being evicted."""

    eviction: Eviction


class Ended(msgspec.Struct, frozen=True):
    """An evicted pod is gone."""

    eviction: Eviction


class Replaced(msgspec.Struct, frozen=True):
    """A pod that replaces an evicted one has a node."""

    eviction: Eviction
    replacement: Pod


class ReplacementUnschedulable(msgspec.Struct, frozen=True):
    """A pod that replaces an evicted one cannot be scheduled."""

    eviction: Eviction
    replacement: Pod
    message: str


EvictionEvent = Begun | Ended | Replaced | ReplacementUnschedulable


class EvictionTracker:
    """Turns changes of pods into events of evictions."""

    def __init__(self, *, awaited_max: int = AWAITED_MAX) -> None:
        self._awaited_max = awaited_max
        self._running: dict[str, Eviction] = {}
        """Evicted pods that still exist, by uid."""
        self._awaited: OrderedDict[str, list[Eviction]] = OrderedDict()
        """Evictions without a replacement, by controller; the oldest first."""
        self._count = 0
        self._replacing: dict[str, Eviction] = {}
        """Replacements without a node, by uid."""
        self._reported: set[str] = set()
        """Replacements that are known to be unschedulable."""

    def change(self, old: Pod | None, new: Pod | None, now: datetime) -> Iterator[EvictionEvent]:
        """Yield what the change of a pod means."""
        if new is None:
            yield from self._gone(old)
            return
        if old is not None and old.metadata.uid != new.metadata.uid:
            yield from self._gone(old)
            old = None
        if new.metadata.uid not in self._running:
            yield from self._begun(new, now)
        if old is None:
            self._match(new)
        yield from self._scheduled(new)

    def _begun(self, pod: Pod, now: datetime) -> Iterator[EvictionEvent]:
        condition = _disruption(pod)
        if condition is None or not claim_references(pod):
            return
        metadata, controller = pod.metadata, pod.metadata.controller()
        eviction = Eviction(
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            node=pod.spec.node_name,
            reason=condition.reason,
            message=condition.message,
            owner=controller.uid if controller is not None else "",
            began=condition.last_transition_time or now,
        )
        self._running[metadata.uid] = eviction
        # A replacement may be evicted in turn, before it had a node.
        self._forget(metadata.uid)
        if eviction.owner:
            self._await(eviction)
        yield Begun(eviction)

    def _await(self, eviction: Eviction) -> None:
        self._awaited.setdefault(eviction.owner, []).append(eviction)
        self._count += 1
        while self._count > self._awaited_max:
            owner, evictions = next(iter(self._awaited.items()))
            del evictions[0]
            self._count -= 1
            if not evictions:
                del self._awaited[owner]

    def _match(self, pod: Pod) -> None:
        """Record the eviction that a new pod replaces: the oldest of its controller."""
        controller, created = pod.metadata.controller(), pod.metadata.creation_timestamp
        evictions = self._awaited.get(controller.uid) if controller is not None else None
        if not evictions or pod.metadata.uid in self._running or created is None:
            return
        # The wire has whole seconds.
        if created < evictions[0].began.replace(microsecond=0):
            return
        eviction = evictions.pop(0)
        self._count -= 1
        if not evictions:
            del self._awaited[eviction.owner]
        self._replacing[pod.metadata.uid] = eviction

    def _scheduled(self, pod: Pod) -> Iterator[EvictionEvent]:
        uid = pod.metadata.uid
        eviction = self._replacing.get(uid)
        if eviction is None:
            return
        if pod.spec.node_name:
            self._forget(uid)
            yield Replaced(eviction, pod)
            return
        condition = find_condition(pod.status.conditions, POD_SCHEDULED)
        failed = condition is not None and condition.reason == "Unschedulable"
        if failed and condition is not None and uid not in self._reported:
            self._reported.add(uid)
            yield ReplacementUnschedulable(eviction, pod, condition.message)

    def _gone(self, pod: Pod | None) -> Iterator[EvictionEvent]:
        if pod is None:
            return
        self._forget(pod.metadata.uid)
        eviction = self._running.pop(pod.metadata.uid, None)
        if eviction is not None:
            yield Ended(eviction)

    def _forget(self, uid: str) -> None:
        self._replacing.pop(uid, None)
        self._reported.discard(uid)


def _disruption(pod: Pod) -> PodCondition | None:
    condition = find_condition(pod.status.conditions, DISRUPTION_TARGET)
    if condition is None or condition.status != "True" or condition.reason not in REASONS:
        return None
    return condition

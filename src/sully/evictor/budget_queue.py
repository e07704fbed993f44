"""Pods whose eviction a PodDisruptionBudget refused: requeued in order when it allows more.

Only as many pods are requeued as the budget allows disruptions. The controller retries after a
back-off as well, because its caches may be stale.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from itertools import islice
from sys import maxsize
from typing import NamedTuple

from sully.api.policy.protection import allows_unready_eviction
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.workloads.workloads import Budget, selector_of
from sully.evictor.events import EvictionRefused
from sully.machinery.selectors.labels import Selector


class _Queue(NamedTuple):
    """The key of a queue: pods that wait for one budget and are equal to it."""

    budget: Key
    ready: bool | None
    """None for pods under several budgets: what one of them allows does not help."""


class BudgetWaitQueue:
    """Pods whose eviction was refused, by the budgets that select them."""

    def __init__(self, requeue: Callable[[Key], None]) -> None:
        self._requeue = requeue
        self._selectors: dict[str, dict[Key, Selector]] = {}
        """Of all budgets, by namespace."""
        self._queues: dict[_Queue, OrderedDict[Key, None]] = {}
        self._waiting: dict[Key, tuple[_Queue, ...]] = {}
        self._requeued: dict[Key, _Queue] = {}
        """Pods that were requeued, and have neither been evicted nor refused since."""

    def budget_changed(self, old: Budget | None, new: Budget | None) -> None:
        """Requeue the pods whose eviction a change of their budget may allow."""
        key = key_of(new or old)
        if new is None:
            self._selectors.get(key.namespace, {}).pop(key, None)
        elif old is None or old.spec.selector != new.spec.selector:
            self._selectors.setdefault(key.namespace, {})[key] = selector_of(new)
        for ready in (False, True, None):
            self._requeue_first(_Queue(key, ready), _allowed(old, new, ready=ready))

    def add(self, refused: EvictionRefused) -> tuple[Key, ...]:
        """Add a pod whose eviction was refused; return the budgets it waits for.

        A pod that waits already keeps its position.
        """
        key = refused.key
        self._requeued.pop(key, None)
        queues = self._waiting.get(key)
        # If no budget in the cache selects it, it may be added the next time.
        if not queues:
            budgets = refused.budgets
            if budgets is None:
                budgets = self._selecting(key.namespace, refused.labels)
            queues = self._waiting[key] = tuple(_Queue(budget, refused.ready) for budget in budgets)
            for queue in queues:
                self._queues.setdefault(queue, OrderedDict())[key] = None
        return tuple(queue.budget for queue in queues)

    def _selecting(self, namespace: str, labels: Mapping[str, str]) -> tuple[Key, ...]:
        budgets = self._selectors.get(namespace, {})
        return tuple(sorted(key for key, selector in budgets.items() if selector.matches(labels)))

    def evicted(self, key: Key) -> None:
        """Note that a pod was evicted, and used the disruption that it was requeued for."""
        self._requeued.pop(key, None)
        self._remove(key)

    def release(self, key: Key) -> None:
        """Note that a pod is not evicted, at least not now: the next may be."""
        queue = self._requeued.pop(key, None)
        self._remove(key)
        if queue is not None:
            self._requeue_first(queue, 1)

    def _requeue_first(self, queue: _Queue, number: int) -> None:
        """Requeue the first pods of a queue."""
        for key in list(islice(self._queues.get(queue, ()), number)):
            self._remove(key)
            self._requeued[key] = queue
            self._requeue(key)

    def _remove(self, key: Key) -> None:
        for queue in self._waiting.pop(key, ()):
            pods = self._queues[queue]
            del pods[key]
            if not pods:
                del self._queues[queue]


def _allowed(old: Budget | None, new: Budget | None, *, ready: bool | None) -> int:
    """Return how many evictions a change of a budget may allow."""
    if old is None or new is None:
        return maxsize
    before, now = old.status, new.status
    if before.observed_generation != now.observed_generation:
        # Its spec has changed, and the pods have been counted again.
        return maxsize
    if ready is None:
        return 0
    if not ready and _allows_unready_eviction(new) and not _allows_unready_eviction(old):
        return maxsize
    # Each evicted pod makes it less, and those that were requeued for it are being evicted.
    return now.disruptions_allowed if now.disruptions_allowed > before.disruptions_allowed else 0


def _allows_unready_eviction(budget: Budget) -> bool:
    status = budget.status
    return allows_unready_eviction(
        budget.spec.unhealthy_pod_eviction_policy,
        healthy=status.current_healthy,
        desired=status.desired_healthy,
    )

"""Pods that a PodDisruptionBudget does not let go: requeued in order as soon as it allows more.

While a budget allows no disruption it would answer all of them the same, so only as many are
requeued as it allows. The controller retries by the clock as well, but rarely: its caches may be
behind.
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
from sully.machinery.labels import Selector


class _Line(NamedTuple):
    """The pods that wait for one budget and are equal to it."""

    budget: Key
    ready: bool | None
    """None for pods under several budgets: what one of them allows does not help."""


class BudgetWaitQueue:
    """Pods that were refused, by the budgets that select them."""

    def __init__(self, requeue: Callable[[Key], None]) -> None:
        self._requeue = requeue
        self._selectors: dict[str, dict[Key, Selector]] = {}
        """Of all budgets, by namespace."""
        self._lines: dict[_Line, OrderedDict[Key, None]] = {}
        self._waiting: dict[Key, tuple[_Line, ...]] = {}
        self._requeued: dict[Key, _Line] = {}
        """Pods that were requeued, and have neither been evicted nor refused since."""

    def budget_changed(self, old: Budget | None, new: Budget | None) -> None:
        """Requeue the pods that a change of their budget may let go."""
        key = key_of(new or old)
        if new is None:
            self._selectors.get(key.namespace, {}).pop(key, None)
        elif old is None or old.spec.selector != new.spec.selector:
            self._selectors.setdefault(key.namespace, {})[key] = selector_of(new)
        for ready in (False, True, None):
            self._let_go(_Line(key, ready), _allowed(old, new, ready=ready))

    def add(self, refused: EvictionRefused) -> tuple[Key, ...]:
        """Let a pod that was refused wait, and return for which budgets.

        A pod that waits already keeps its position.
        """
        key = refused.key
        self._requeued.pop(key, None)
        lines = self._waiting.get(key)
        # One that no known budget selects may be added the next time: caches may be behind.
        if not lines:
            budgets = refused.budgets
            if budgets is None:
                budgets = self._selecting(key.namespace, refused.labels)
            lines = self._waiting[key] = tuple(_Line(budget, refused.ready) for budget in budgets)
            for line in lines:
                self._lines.setdefault(line, OrderedDict())[key] = None
        return tuple(line.budget for line in lines)

    def _selecting(self, namespace: str, labels: Mapping[str, str]) -> tuple[Key, ...]:
        budgets = self._selectors.get(namespace, {})
        return tuple(sorted(key for key, selector in budgets.items() if selector.matches(labels)))

    def evicted(self, key: Key) -> None:
        """Note that a pod was evicted, and used the disruption that it was requeued for."""
        self._requeued.pop(key, None)
        self._remove(key)

    def release(self, key: Key) -> None:
        """Note that a pod is not evicted, at least not now: the next may be."""
        line = self._requeued.pop(key, None)
        self._remove(key)
        if line is not None:
            self._let_go(line, 1)

    def _let_go(self, line: _Line, number: int) -> None:
        """Requeue the first pods of a line."""
        for key in list(islice(self._lines.get(line, ()), number)):
            self._remove(key)
            self._requeued[key] = line
            self._requeue(key)

    def _remove(self, key: Key) -> None:
        for line in self._waiting.pop(key, ()):
            pods = self._lines[line]
            del pods[key]
            if not pods:
                del self._lines[line]


def _allowed(old: Budget | None, new: Budget | None, *, ready: bool | None) -> int:
    """Return how many pods a change of their budget may let go."""
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

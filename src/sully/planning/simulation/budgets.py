"""PodDisruptionBudgets in a plan: the counts of their controller, and the eviction subresource.

The numbers start as the status of a budget has them. Whether a pod may be evicted is decided as the
server does it (`api/policy/eviction.py`). A pod counts as healthy from the
time it is bound; whether it becomes ready is not known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from sully.api.policy.protection import UNPROTECTED, allows_unready_eviction
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.planning.report import BrokenBudget
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.budgets import ALLOWED
from sully.domain.workloads.workloads import Budget, selector_of
from sully.evictor.events import BudgetChanged, EvictionRefused
from sully.machinery.selectors.labels import Selector


class _BudgetCount(msgspec.Struct):
    """What one budget counts."""

    source: Budget
    selector: Selector
    spare: int
    """How many healthy pods there are beyond those required; below zero if there are too few."""
    fixed: bool
    """It cannot be evaluated, so it never allows a disruption."""
    evicted: list[Key] = msgspec.field(default_factory=list)
    """Its healthy pods that were evicted."""
    lowest: int = 0
    """The lowest value of `spare` after an eviction."""

    @property
    def allowed(self) -> int:
        return 0 if self.fixed else max(0, self.spare)

    @property
    def healthy(self) -> int:
        return self.source.status.desired_healthy + self.spare

    @property
    def allows_unready_eviction(self) -> bool:
        policy = self.source.spec.unhealthy_pod_eviction_policy
        return allows_unready_eviction(
            policy, healthy=self.healthy, desired=self.source.status.desired_healthy
        )

    def allows(self, *, ready: bool) -> bool:
        """Report whether a pod may be evicted now."""
        return self.allowed > 0 or (not ready and self.allows_unready_eviction)

    def budget(self) -> Budget:
        """Return the budget as its controller would have counted it by now."""
        status = msgspec.structs.replace(
            self.source.status, disruptions_allowed=self.allowed, current_healthy=self.healthy
        )
        return msgspec.structs.replace(self.source, status=status)


class Budgets:
    """The PodDisruptionBudgets of a plan, and the decisions of the eviction subresource."""

    def __init__(self, budgets: Iterable[Budget]) -> None:
        self._by_namespace: dict[str, list[_BudgetCount]] = {}
        for budget in sorted(budgets, key=key_of):
            counts = self._by_namespace.setdefault(budget.metadata.namespace, [])
            counts.append(_count(budget))
        self._selecting: dict[str, list[_BudgetCount]] = {}
        """The budgets that select a pod, by its uid."""
        self._scheduled: set[str] = set()

    def initial_events(self) -> Iterator[BudgetChanged]:
        """Yield all budgets as they are at the start."""
        for counts in self._by_namespace.values():
            for count in counts:
                yield BudgetChanged(None, count.budget())

    def check(self, key: Key, pod: Pod) -> EvictionRefused | None:
        """Return the refusal of a pod's eviction, or None if it is allowed.

        As on a server, a pod under several budgets cannot be evicted at all.
        """
        counts = self._of(pod)
        if not counts or pod.status.phase in UNPROTECTED:
            return None
        ready = self._is_ready(pod) if len(counts) == 1 else None
        if ready is not None and counts[0].allows(ready=ready):
            return None
        budgets = tuple(key_of(count.source) for count in counts)
        return EvictionRefused(key, pod.metadata.labels, ready, budgets)

    def evicted(self, pod: Pod) -> None:
        """Note that a pod was evicted."""
        if self._by_namespace and self._is_ready(pod):
            self._scheduled.discard(pod.metadata.uid)
            for count in self._of(pod):
                count.spare -= 1
                count.lowest = min(count.lowest, count.spare)
                count.evicted.append(key_of(pod))

    def broken(self, pods: Collection[Key]) -> Iterator[BrokenBudget]:
        """Yield the budgets that had too few healthy pods after an eviction of one of these."""
        for counts in self._by_namespace.values():
            for count in counts:
                evicted = sum(key in pods for key in count.evicted)
                if evicted and count.lowest < 0:
                    yield BrokenBudget(
                        namespace=count.source.metadata.namespace,
                        name=count.source.metadata.name,
                        pods=evicted,
                        allowed=count.source.status.disruptions_allowed,
                        missing=-count.lowest,
                    )

    def scheduled(self, pod: Pod) -> Iterator[BudgetChanged]:
        """Note that a pod was bound; yield how its budgets change."""
        if not self._by_namespace:
            return
        self._scheduled.add(pod.metadata.uid)
        for count in self._of(pod):
            before = count.budget()
            count.spare += 1
            yield BudgetChanged(before, count.budget())

    def _is_ready(self, pod: Pod) -> bool:
        if pod.metadata.uid in self._scheduled:
            return True
        return pod.ready

    def _of(self, pod: Pod) -> list[_BudgetCount]:
        """Return the budgets that select a pod."""
        uid = pod.metadata.uid
        if uid not in self._selecting:
            labels = pod.metadata.labels
            counts = self._by_namespace.get(pod.metadata.namespace, ())
            self._selecting[uid] = [count for count in counts if count.selector.matches(labels)]
        return self._selecting[uid]


def budget_text(budgets: Sequence[Key]) -> str:
    """Return why budgets do not allow an eviction."""
    if len(budgets) > 1:
        return "more than one PodDisruptionBudget is about it"
    return f"PodDisruptionBudget {budgets[0].name} allows no disruption"


def _count(budget: Budget) -> _BudgetCount:
    status = budget.status
    spare = status.current_healthy - status.desired_healthy
    failed = any(
        condition.type == ALLOWED and condition.reason == "SyncFailed"
        for condition in status.conditions
    )
    return _BudgetCount(
        source=budget,
        selector=selector_of(budget),
        # A disruption may just have been allowed to a pod that still counts as healthy.
        spare=min(spare, status.disruptions_allowed),
        fixed=failed or not status.expected_pods,
    )

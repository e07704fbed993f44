"""What budgets allow in a rehearsal: the healthy pods they count, less what left, and what came.

The numbers begin as the status of a budget has them, and who may go is decided as the eviction
endpoint does it (`api/policy/eviction.py`). A pod that gets a node is taken for healthy from that
moment on; whether it starts, no plan can know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from sys import maxsize

from sully.api.policy.protection import UNPROTECTED, lets_unready_go
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.controllers.eviction.kept import Gate
from sully.domain.planning.objects import PlannedPod
from sully.domain.workloads.budgets import ALLOWED
from sully.domain.workloads.workloads import Budget, selector_of
from sully.machinery.labels import Selector


@dataclass(slots=True)
class _Count:
    """What one budget counts."""

    key: Key
    selector: Selector
    spare: int
    """How many healthy pods there are beyond those that must be; below zero if they are too few."""
    fixed: bool
    """Its numbers cannot be known, so it allows nothing whatever comes."""
    desired: int
    policy: str | None
    """What becomes of pods that are not ready."""

    @property
    def allows(self) -> bool:
        return self.spare > 0 and not self.fixed

    @property
    def lets_unready_go(self) -> bool:
        healthy = self.desired + self.spare
        return lets_unready_go(self.policy, healthy=healthy, desired=self.desired)

    def room(self, *, ready: bool) -> int:
        """Return how many of those who wait may go now."""
        if not ready and self.lets_unready_go:
            return maxsize
        return self.spare if self.allows else 0


class Budgets:
    """The budgets of a rehearsal."""

    def __init__(self, budgets: Iterable[Budget]) -> None:
        self._by_namespace: dict[str, list[_Count]] = {}
        for each in sorted(budgets, key=key_of):
            found = self._by_namespace.setdefault(each.metadata.namespace, [])
            found.append(_counted(each))
        self._about: dict[str, list[_Count]] = {}
        self._came: set[str] = set()
        self.on_open: Callable[[Gate, int], None] = lambda _, __: None
        """Told when there is room at a gate, and for how many."""

    def refuses(self, pod: PlannedPod) -> str:
        """Return why a pod may not leave now; empty if it may.

        As the server has it, a pod under several budgets cannot be evicted at all.
        """
        found = self._for(pod)
        if not found or pod.status.phase in UNPROTECTED:
            return ""
        if len(found) > 1:
            return "more than one PodDisruptionBudget is about it"
        (budget,) = found
        if budget.allows or (not self._is_ready(pod) and budget.lets_unready_go):
            return ""
        return f"PodDisruptionBudget {budget.key.name} allows no disruption"

    def gate(self, pod: PlannedPod) -> Gate | None:
        """Return where a pod waits that was refused; None if it will be refused for ever."""
        found = self._for(pod)
        return Gate(found[0].key, self._is_ready(pod)) if len(found) == 1 else None

    def left(self, pod: PlannedPod) -> None:
        """Note that a pod leaves."""
        if self._is_ready(pod):
            self._came.discard(pod.metadata.uid)
            for each in self._for(pod):
                each.spare -= 1

    def came(self, pod: PlannedPod) -> None:
        """Note that a pod got a node."""
        self._came.add(pod.metadata.uid)
        for each in self._for(pod):
            each.spare += 1
            for ready in (False, True):
                self.on_open(Gate(each.key, ready), each.room(ready=ready))

    def _is_ready(self, pod: PlannedPod) -> bool:
        if pod.metadata.uid in self._came:
            return True
        found = pod.condition("Ready")
        return found is not None and found.status == "True"

    def _for(self, pod: PlannedPod) -> list[_Count]:
        """Return the budgets that are about a pod."""
        uid = pod.metadata.uid
        if uid not in self._about:
            labels = pod.metadata.labels
            there = self._by_namespace.get(pod.metadata.namespace, ())
            self._about[uid] = [each for each in there if each.selector.matches(labels)]
        return self._about[uid]


def _counted(budget: Budget) -> _Count:
    status = budget.status
    spare = status.current_healthy - status.desired_healthy
    failed = any(each.type == ALLOWED and each.reason == "SyncFailed" for each in status.conditions)
    return _Count(
        key=key_of(budget),
        selector=selector_of(budget),
        # Somebody may just have spent what is counted as healthy still.
        spare=min(spare, status.disruptions_allowed),
        fixed=failed or not status.expected_pods,
        desired=status.desired_healthy,
        policy=budget.spec.unhealthy_pod_eviction_policy,
    )

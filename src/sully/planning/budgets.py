"""What budgets allow in a rehearsal: as much as their status says, less what left, and again what
came for it.

A real budget counts healthy pods. Here a new pod is taken for healthy from the moment it has a
node; whether it starts, no plan can know.
"""

from __future__ import annotations

from collections.abc import Iterable

from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.planning.objects import PlannedPod
from sully.domain.workloads import Budget, selector_of


class Budgets:
    """The budgets of a rehearsal."""

    def __init__(self, budgets: Iterable[Budget]) -> None:
        self._by_namespace: dict[str, list[Budget]] = {}
        self._allowed: dict[Key, int] = {}
        for each in budgets:
            self._by_namespace.setdefault(each.metadata.namespace, []).append(each)
            self._allowed[key_of(each)] = each.status.disruptions_allowed

    def about(self, pod: PlannedPod) -> list[Key]:
        """Return the budgets that are about a pod, by name."""
        found = self._by_namespace.get(pod.metadata.namespace, ())
        return sorted(
            key_of(each) for each in found if selector_of(each).matches(pod.metadata.labels)
        )

    def refuses(self, pod: PlannedPod) -> str:
        """Return why a pod may not leave now; empty if it may.

        As the server has it, a pod under several budgets cannot be evicted at all.
        """
        keys = self.about(pod)
        if len(keys) > 1:
            return "more than one PodDisruptionBudget is about it"
        if keys and self._allowed[keys[0]] <= 0:
            return f"PodDisruptionBudget {keys[0].name} allows no disruption"
        return ""

    def left(self, pod: PlannedPod) -> None:
        """Note that a pod leaves."""
        for key in self.about(pod):
            self._allowed[key] -= 1

    def came(self, pod: PlannedPod) -> None:
        """Note that a pod came for one that left."""
        for key in self.about(pod):
            self._allowed[key] += 1

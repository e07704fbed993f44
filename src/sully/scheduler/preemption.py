"""Which pods kube-scheduler may delete so that a pod with a higher priority fits a node.

It is a prediction, not a decision: kube-scheduler also considers budgets, and which node loses the
least. Sully's scheduler deletes no pod. Devices of deleted pods do not count as free, as there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Final, Protocol

import msgspec

from sully.domain.allocation.verdicts import Allocated, Failed, Unallocatable
from sully.domain.scheduling.filters import NodeInfo, run_filters
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.resources import Amounts, NodeResources, requests_of
from sully.scheduler.caches.node_cache import NodeCache
from sully.scheduler.constraints import ConstraintBuilder, Constraints

_MOST_NODES: Final = 100
"""Nodes that are evaluated: kube-scheduler samples some as well."""
_MOST_CANDIDATES: Final = 3
_OLDEST: Final = datetime.min.replace(tzinfo=UTC)


class Preemption(msgspec.Struct, frozen=True):
    """A node that would fit, and the pods that would be deleted there."""

    node: str
    victims: tuple[str, ...]


class _Devices(Protocol):
    @property
    def backed(self) -> Collection[str]: ...

    def on(self, node: NodeInfo) -> Allocated | Unallocatable | Failed: ...


def preemptions(
    pod: Pod, nodes: NodeCache, constraints: ConstraintBuilder, devices: _Devices
) -> tuple[Preemption, ...]:
    """Return candidates for preemption, those with the fewest victims first."""
    trial = _Trial(pod, constraints, devices)
    trials = (trial.on(node, _lower(pod, nodes.pods.on(node.name))) for node in nodes.by_load())
    candidates = list(filter(None, islice(trials, _MOST_NODES)))
    return tuple(sorted(candidates, key=lambda x: (len(x.victims), x.node))[:_MOST_CANDIDATES])


def _lower(pod: Pod, others: Iterable[Pod]) -> list[Pod]:
    """Return the pods with a lower priority, the most important first."""
    lower = [other for other in others if _priority(other) < _priority(pod)]
    return sorted(lower, key=lambda x: (-_priority(x), x.metadata.creation_timestamp or _OLDEST))


def _priority(pod: Pod) -> int:
    return pod.spec.priority or 0


class _Trial(msgspec.Struct, frozen=True):
    pod: Pod
    constraints: ConstraintBuilder
    devices: _Devices

    def on(self, node: NodeInfo, lower: Sequence[Pod]) -> Preemption | None:
        """Return which pods must be deleted on a node; None if that does not help."""
        requests = requests_of(self.pod)
        if not lower or not self._fits(node, requests, lower):
            return None
        victims = list(lower)
        for spared in lower:
            others = [victim for victim in victims if victim is not spared]
            if self._fits(node, requests, others):
                victims = others
        if not victims:
            # It fits as it is: something else is the reason.
            return None
        return Preemption(node.name, tuple(victim.label for victim in victims))

    def _fits(self, node: NodeInfo, requests: Amounts, gone: Sequence[Pod]) -> bool:
        constraints = self.constraints.build(self.pod, frozenset(_uids(gone)))
        if constraints is not None and not isinstance(constraints, Constraints):
            return False
        filters = constraints.filters if constraints is not None else None
        emptier = NodeInfo(node.node, node.target, _without(node.resources, gone))
        if run_filters(emptier, self.pod, requests, self.devices.backed, filters) is not None:
            return False
        return isinstance(self.devices.on(emptier), Allocated)


def _uids(pods: Sequence[Pod]) -> Iterator[str]:
    return (pod.metadata.uid for pod in pods)


def _without(resources: NodeResources, pods: Sequence[Pod]) -> NodeResources:
    left = NodeResources(
        resources.allocatable, dict(resources.used), dict(resources.counted), resources.pods
    )
    for pod in pods:
        left.add(requests_of(pod), -1)
    return left

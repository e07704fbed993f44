"""The score of kube-scheduler for the cpu and memory of a node, for simulations and comparisons.

It adds what is left (NodeResourcesFit) and how much the pod changes the balance of cpu and memory
(NodeResourcesBalancedAllocation). Scores are whole numbers, so small pods fill a node in use
before an empty one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from sully.api.core.pods.aggregate import POD_LEVEL
from sully.domain.scheduling.filters import NodeInfo
from sully.domain.scheduling.resources import ASSUMED, Amounts, NodeResources

BEST: Final = 100
SCORED_NODES: Final = 100
"""Of larger clusters kube-scheduler scores only a part, which is unpredictable."""


def by_score(nodes: Iterable[NodeInfo], requests: Amounts) -> list[NodeInfo]:
    """Sort nodes, the best for a pod with these requests first; equal ones stay as they come."""
    return sorted(nodes, key=lambda node: -score(node.resources, requests))


def score(resources: NodeResources, requests: Amounts) -> int:
    """Return the score of a node for a pod with these requests, from 0 to 200."""
    total = _left(resources, requests)
    if any(requests.get(name) for name in POD_LEVEL):
        with_pod = {name: resources.used.get(name, 0) + requests.get(name, 0) for name in POD_LEVEL}
        change = _balance(with_pod, resources) - _balance(resources.used, resources)
        # Go rounds toward zero, and a balance is at least half of the best.
        total += BEST // 2 + (BEST // 2 + change) // 2
    return total


def _left(resources: NodeResources, requests: Amounts) -> int:
    """Return which percentage of cpu and memory is left after the pod, at least 0."""
    scores = []
    for name in POD_LEVEL:
        most = resources.allocatable.get(name, 0)
        if most:
            taken = resources.counted.get(name, 0) + requests.get(name, ASSUMED[name])
            scores.append(max(0, most - taken) * BEST // most)
    return sum(scores) // len(scores) if scores else 0


def _balance(used: Mapping[str, int], resources: NodeResources) -> int:
    """Return how close the used parts of cpu and memory are: 100 if they are equal."""
    parts = [
        min(1.0, used.get(name, 0) / most)
        for name in POD_LEVEL
        if (most := resources.allocatable.get(name, 0))
    ]
    deviation = abs(parts[0] - parts[1]) / 2 if len(parts) > 1 else 0.0
    return int((1 - deviation) * BEST)

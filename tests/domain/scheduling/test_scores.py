"""The order of nodes in kube-scheduler, with scores that its log shows."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from sully.domain.scheduling.resources import NodeResources, amounts
from sully.domain.scheduling.scores import score

SMALL = {"cpu": "10m"}
NODE = {"cpu": "16", "memory": "64Gi", "pods": "50"}


@dataclass(frozen=True)
class Case:
    want: int
    pod: dict[str, str] = field(default_factory=lambda: dict(SMALL))
    pods: tuple[dict[str, str], ...] = ()
    node: dict[str, str] = field(default_factory=lambda: dict(NODE))


CASES = {
    "an empty node loses its balance": Case(99 + 74),
    "a node with such a pod does not": Case(99 + 75, pods=(SMALL,)),
    "many pods outweigh it": Case(98 + 75, pods=(SMALL,) * 3),
    "a pod without requests has no balance": Case(99, pod={}),
    "nor is it nothing": Case(97, pod={}, pods=({},) * 3),
    "a pod that restores the balance": Case(
        (36 + 37) // 2 + 50 + (50 + 100 - 68) // 2,
        pod={"memory": "40Gi"},
        pods=({"cpu": "10"},),
    ),
    "one resource is always balanced": Case(99 + 75, node={"cpu": "16"}),
    "a node without either": Case(75, node={}),
    "more than there is": Case(
        50 // 2 + 50 + (50 + 75 - 100) // 2, pod={"cpu": "32", "memory": "32Gi"}
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_score(case: Case) -> None:
    resources = NodeResources(amounts(case.node))
    for pod in case.pods:
        resources.add(amounts(pod))

    assert score(resources, amounts(case.pod)) == case.want

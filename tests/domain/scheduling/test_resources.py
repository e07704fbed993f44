"""How much a pod takes, and how full a node is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.resources import NodeResources, amounts, requests_of


def container(cpu: str, **more: Any) -> Any:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}


REQUESTS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "nothing": ({"containers": [{"name": "c"}]}, {}),
    "zero is nothing": ({"containers": [container("0")]}, {}),
    "the sum of containers": ({"containers": [container("1"), container("500m")]}, {"cpu": "1.5"}),
    "a start that takes more": (
        {"containers": [container("1")], "initContainers": [container("3")]},
        {"cpu": "3"},
    ),
    "a sidecar runs beside": (
        {
            "containers": [container("1")],
            "initContainers": [container("1", restartPolicy="Always")],
        },
        {"cpu": "2"},
    ),
    "the pod speaks for its containers": (
        {"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}},
        {"cpu": "4"},
    ),
    "overhead": ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, {"cpu": "1250m"}),
}


@pytest.mark.parametrize(("spec", "want"), REQUESTS.values(), ids=REQUESTS.keys())
def test_requests_of(spec: dict[str, Any], want: dict[str, str]) -> None:
    assert requests_of(msgspec.convert({"spec": spec}, Pod)) == amounts(want)


def test_a_node_is_as_before_after_its_pods_are_evicted() -> None:
    node = NodeResources(amounts({"cpu": "4", "memory": "8Gi"}))
    empty = node.load()

    node.add(amounts({"cpu": "2", "memory": "2Gi"}))
    half = node.load()
    node.add({})
    fuller = node.load()
    node.add({}, -1)
    node.add(amounts({"cpu": "2", "memory": "2Gi"}), -1)

    assert empty == 0
    assert half == (500_000 + 250_000) // 2
    assert fuller > half, "a pod that asks for nothing is not nothing"
    assert (node.load(), node.pods) == (0, 0)


def test_a_node_without_figures_counts_as_full() -> None:
    assert NodeResources().load() == 1_000_000

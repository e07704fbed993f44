"""Which drivers and pools `sully doctor` calls stale."""

from __future__ import annotations

from itertools import permutations

import pytest
from msgspec import convert

from sully.api.resource.types import ResourceSlice
from sully.domain.devicepolicies.sources.nodes import PolicyNode
from sully.domain.diagnosis.drivers import check_drivers, check_pools, ready_nodes
from sully.testing.builders import slice_

READY, UNREADY = slice_("a", node="ready"), slice_("b", node="unready")
GONE, SHARED = slice_("c", node="gone"), slice_("d", node=None)
NODES = {"ready": True, "unready": False}


@pytest.mark.parametrize(
    ("slices", "want"),
    [
        ((), ["ok"]),
        ((READY, SHARED), ["ok"]),
        ((READY, UNREADY), ["warning"]),
        ((READY, GONE), ["failure"]),
        ((GONE, UNREADY), ["failure", "warning"]),
    ],
)
def test_drivers(slices: tuple[ResourceSlice, ...], want: list[str]) -> None:
    for order in permutations(slices):
        assert [finding.state for finding in check_drivers(order, NODES)] == want


def test_a_node_is_named() -> None:
    [finding] = check_drivers([GONE], NODES)

    assert finding.message == "has slices of nodes that do not exist: gone"


def test_pools() -> None:
    whole = [slice_("a", pool="p", generation=2), slice_("b", pool="p", generation=1, count=2)]
    part = slice_("c", pool="q", generation=3, count=2)

    assert [finding.state for finding in check_pools(whole)] == ["ok"]
    [finding] = check_pools([*whole, part])
    assert finding.state == "warning"
    assert finding.message == "is incomplete: 1 of 2 slices of generation 3"


def test_ready_nodes() -> None:
    nodes = [
        {"metadata": {"name": name}, "status": {"conditions": conditions}}
        for name, conditions in {
            "ready": [{"type": "Ready", "status": "True"}],
            "unknown": [{"type": "Ready", "status": "Unknown"}],
            "silent": [{"type": "DiskPressure", "status": "False"}],
        }.items()
    ]

    assert ready_nodes(convert(nodes, list[PolicyNode])) == {
        "ready": True,
        "unknown": False,
        "silent": True,
    }

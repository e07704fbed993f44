"""Disruption budgets; more of their errors are in the recordings."""

import copy
from typing import Any

import pytest

from api.core.writing import cells, create, update

Obj = dict[str, Any]
GROUP, PLURAL = "policy", "poddisruptionbudgets"

CASES: dict[str, tuple[Obj, list[str]]] = {
    "count": ({"minAvailable": 2}, []),
    "share": ({"maxUnavailable": "30%"}, []),
    "nothing": ({}, []),
    "more than all": (
        {"maxUnavailable": "101%"},
        ['spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
    ),
    "selector value": (
        {"selector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}},
        [
            "spec.selector.matchExpressions[0].values: Forbidden: may not be specified when"
            " `operator` is 'Exists' or 'DoesNotExist'"
        ],
    ),
}


@pytest.mark.parametrize(("spec", "want"), CASES.values(), ids=CASES.keys())
def test_create(spec: Obj, want: list[str]) -> None:
    assert create(PLURAL, {"spec": spec}, group=GROUP).texts() == want


def test_endpoints_and_generation() -> None:
    old = create(
        PLURAL, {"spec": {"minAvailable": 1}, "status": {"expectedPods": 9}}, group=GROUP
    ).obj
    assert old["status"]["expectedPods"] == 0
    new = copy.deepcopy(old)
    new["spec"]["minAvailable"] = 2
    new["status"]["expectedPods"] = 3

    itself = update(PLURAL, new, old, group=GROUP).obj
    status = update(PLURAL, new, old, group=GROUP, sub="status").obj

    assert (itself["metadata"]["generation"], itself["status"]) == (2, old["status"])
    assert (status["metadata"]["generation"], status["spec"]) == (1, old["spec"])
    assert status["status"]["expectedPods"] == 3


def test_negative_counts() -> None:
    old = create(PLURAL, {}, group=GROUP).obj
    new = copy.deepcopy(old)
    new["status"]["currentHealthy"] = -1

    assert update(PLURAL, new, old, group=GROUP, sub="status").texts() == [
        "status.currentHealthy: Invalid value: -1: must be greater than or equal to 0"
    ]


def test_row() -> None:
    row = cells(
        PLURAL, create(PLURAL, {"spec": {"maxUnavailable": 0}}, group=GROUP).obj, group=GROUP
    )

    assert (row["Min Available"], row["Max Unavailable"]) == ("N/A", "0")
    assert row["Allowed Disruptions"] == 0

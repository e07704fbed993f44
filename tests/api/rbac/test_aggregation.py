"""What an aggregated cluster role gathers."""

from itertools import permutations
from typing import Any

import pytest

from sully.api.rbac.aggregation import aggregated_rules

Obj = dict[str, Any]


def role(name: str, *rules: str, labels: str = "", selects: str = "") -> Obj:
    made: Obj = {
        "metadata": {"name": name, "labels": dict.fromkeys(labels.split(), "true")},
        "rules": [{"verbs": [rule]} for rule in rules],
    }
    if selects:
        selectors = [{"matchLabels": {label: "true"}} for label in selects.split()]
        made["aggregationRule"] = {"clusterRoleSelectors": selectors}
    return made


ROLES = (
    role("b", "list", "get", labels="x"),
    role("a", "get", labels="x y"),
    role("c", "delete", labels="y"),
    role("other", "escalate"),
)
CASES = {
    "those selected, in order of names": ("x", ["get", "list"]),
    "by several selectors, each once": ("x y", ["get", "list", "delete"]),
    "nobody": ("z", []),
}


@pytest.mark.parametrize(("selects", "want"), CASES.values(), ids=CASES.keys())
def test_gathered(selects: str, want: list[str]) -> None:
    for roles in permutations(ROLES):
        rules = aggregated_rules(role("sum", selects=selects), roles)

        assert [rule["verbs"][0] for rule in rules] == want


def test_a_role_does_not_gather_from_itself() -> None:
    itself = role("sum", "old", labels="x", selects="x")

    assert aggregated_rules(itself, [itself]) == []


def test_a_role_that_gathers_nothing_has_no_rules() -> None:
    assert aggregated_rules(role("plain", "get"), ROLES) == []


def test_a_selector_nobody_can_read_selects_nothing() -> None:
    broken = role("sum")
    expression = {"key": "x", "operator": "Perhaps"}
    broken["aggregationRule"] = {"clusterRoleSelectors": [{"matchExpressions": [expression]}]}

    assert aggregated_rules(broken, ROLES) == []

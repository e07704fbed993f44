"""The rules of an aggregated ClusterRole: those of the roles that its selectors match."""

from collections.abc import Iterable
from typing import Any

from sully.machinery.selectors import labels

Obj = dict[str, Any]


def aggregated_rules(role: Obj, others: Iterable[Obj]) -> list[Obj]:
    """Return the rules that an aggregated role has now: each once, in order of the roles' names.

    A role never contributes to itself. A selector that cannot be read selects nothing.
    """
    rules: list[Obj] = []
    name = role["metadata"]["name"]
    ordered = sorted(others, key=lambda other: other["metadata"]["name"])
    for selector in _selectors(role):
        for other in ordered:
            if other["metadata"]["name"] == name:
                continue
            if selector.matches(other["metadata"].get("labels") or {}):
                rules += [rule for rule in other.get("rules") or () if rule not in rules]
    return rules


def selects(role: Obj, other: Obj) -> bool:
    """Report whether a role aggregates the rules of another."""
    own = other["metadata"].get("labels") or {}
    return any(selector.matches(own) for selector in _selectors(role))


def _selectors(role: Obj) -> list[labels.Selector]:
    rule = role.get("aggregationRule") or {}
    selectors = []
    for selector in rule.get("clusterRoleSelectors") or ():
        try:
            selectors.append(labels.from_object(selector))
        except labels.SelectorError:
            continue
    return selectors

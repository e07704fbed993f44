"""Gathering the rules of an aggregated cluster role from others, by their labels."""

from collections.abc import Iterable
from typing import Any

from sully.machinery import labels

Obj = dict[str, Any]


def gathered(role: Obj, others: Iterable[Obj]) -> list[Obj]:
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
    """Report whether a role gathers the rules of another."""
    found = other["metadata"].get("labels") or {}
    return any(selector.matches(found) for selector in _selectors(role))


def _selectors(role: Obj) -> list[labels.Selector]:
    rule = role.get("aggregationRule") or {}
    found = []
    for selector in rule.get("clusterRoleSelectors") or ():
        try:
            found.append(labels.from_object(selector))
        except labels.SelectorError:
            continue
    return found

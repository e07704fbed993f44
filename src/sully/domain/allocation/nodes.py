"""Which nodes a slice, a device or an allocation is for.

Slices and devices say it in one of three ways: a node's name, all nodes, or a selector over its
labels. `offers.py` asks for slices, `candidates.py` for single devices; the scheduler asks about
allocations that exist already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sully.api.resource.types import (
    Device,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ResourceSliceSpec,
)
from sully.machinery.labels import Requirement

NAME_FIELD: Final = "metadata.name"
_OPERATORS: Final = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
    "Gt": "gt",
    "Lt": "lt",
}


@dataclass(frozen=True, slots=True)
class Node:
    """What the choice of devices needs to know of a node."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


def selects_node(selector: NodeSelector, node: Node) -> bool:
    """Report whether one of the terms of a selector holds for a node; without terms none does."""
    return any(_holds(term, node) for term in selector.node_selector_terms or ())


def offered_to(place: ResourceSliceSpec | Device, node: Node) -> bool:
    """Report whether a slice, or a device that is placed by itself, is for a node."""
    if place.node_name:
        return place.node_name == node.name
    if place.all_nodes:
        return True
    return place.node_selector is not None and selects_node(place.node_selector, node)


def is_visible(spec: ResourceSliceSpec, node: Node) -> bool:
    """Report whether a slice has something for a node."""
    if spec.per_device_node_selection:
        return any(offered_to(device, node) for device in spec.devices)
    return offered_to(spec, node)


def _holds(term: NodeSelectorTerm, node: Node) -> bool:
    # A term without requirements selects nothing, unlike an empty label selector.
    if not term.match_expressions and not term.match_fields:
        return False
    return all(_meets(each, node.labels) for each in term.match_expressions) and all(
        _meets(each, {NAME_FIELD: node.name}) for each in term.match_fields
    )


def _meets(wanted: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    operator = _OPERATORS.get(wanted.operator)
    if operator is None or (operator in ("gt", "lt") and not wanted.values):
        # An operator from a newer API: offering too little is the safe error.
        return False
    return Requirement(wanted.key, operator, wanted.values).matches(labels)

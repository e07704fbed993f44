"""Which nodes a slice, a device or an allocation is for.

Slices and devices select nodes in one of three ways: by name, all nodes, or by a selector over
labels. An allocation has a node selector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from sully.api.resource.types import (
    AllocationResult,
    Device,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ResourceSliceSpec,
)
from sully.machinery.selectors.labels import Requirement

NAME_FIELD: Final = "metadata.name"
_OPERATORS: Final = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
    "Gt": "gt",
    "Lt": "lt",
}


class AllocatorNode(msgspec.Struct, frozen=True):
    """A node as the allocator needs it."""

    name: str
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)


def selects_node(selector: NodeSelector, node: AllocatorNode) -> bool:
    """Report whether one of the terms of a selector matches a node; without terms none does."""
    return any(_matches(term, node) for term in selector.node_selector_terms or ())


def is_usable_on(allocation: AllocationResult, node: AllocatorNode) -> bool:
    """Report whether an allocation can be used on a node."""
    selector = allocation.node_selector
    return selector is None or selects_node(selector, node)


def is_for_node(source: ResourceSliceSpec | Device, node: AllocatorNode) -> bool:
    """Report whether a slice, or a device with a node selection of its own, is for a node."""
    if source.node_name:
        return source.node_name == node.name
    if source.all_nodes:
        return True
    return source.node_selector is not None and selects_node(source.node_selector, node)


def is_visible(spec: ResourceSliceSpec, node: AllocatorNode) -> bool:
    """Report whether a slice has something for a node."""
    if spec.per_device_node_selection:
        return any(is_for_node(device, node) for device in spec.devices)
    return is_for_node(spec, node)


def _matches(term: NodeSelectorTerm, node: AllocatorNode) -> bool:
    # A term without requirements selects nothing, unlike an empty label selector.
    if not term.match_expressions and not term.match_fields:
        return False
    return all(_is_met(required, node.labels) for required in term.match_expressions) and all(
        _is_met(required, {NAME_FIELD: node.name}) for required in term.match_fields
    )


def named_nodes(selector: NodeSelector) -> frozenset[str] | None:
    """Return the nodes that every term of a selector names; None if one term names none."""
    names: set[str] = set()
    for term in selector.node_selector_terms or ():
        listed = [
            set(required.values)
            for required in term.match_fields
            if required.key == NAME_FIELD and required.operator == "In"
        ]
        if not listed:
            return None
        names |= set.intersection(*listed)
    return frozenset(names)


def _is_met(required: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    operator = _OPERATORS.get(required.operator)
    if operator is None or (operator in ("gt", "lt") and not required.values):
        # An operator from a newer API: selecting too few nodes is the safe error.
        return False
    return Requirement(required.key, operator, required.values).matches(labels)

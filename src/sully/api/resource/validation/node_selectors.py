"""Node selectors in slices, devices and allocations."""

from typing import Any

from sully.api.resource.checks import Errors
from sully.api.resource.types import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from sully.api.resource.validation.names import validate_label_key, validate_label_value
from sully.machinery.fields import Path
from sully.machinery.formats.names import dns_subdomain_problems


def validate_node_selector(selector: NodeSelector, at: Path) -> Errors:
    """Check the terms of a node selector; there must be one."""
    at = at.child("nodeSelectorTerms")
    terms = selector.node_selector_terms or ()
    if not terms:
        yield at.required("must have at least one node selector term")
    for position, term in enumerate(terms):
        yield from _term(term, at.index(position))


def validate_single_term(selector: NodeSelector, at: Path) -> Errors:
    """Check that a slice's selector has one term, so that several slices' can be combined."""
    terms = selector.node_selector_terms
    if terms is None or len(terms) != 1:
        yield at.child("nodeSelectorTerms").invalid(
            shown_terms(terms), "must have exactly one node selector term"
        )


def shown_terms(terms: tuple[NodeSelectorTerm, ...] | None) -> Any:
    """Show terms as Kubernetes does, with the names of its own types."""
    if terms is None:
        return None
    return [
        {
            "MatchExpressions": _shown(term.match_expressions),
            "MatchFields": _shown(term.match_fields),
        }
        for term in terms
    ]


def _shown(requirements: tuple[NodeSelectorRequirement, ...]) -> Any:
    if not requirements:
        return None
    return [
        {"Key": one.key, "Operator": one.operator, "Values": list(one.values) or None}
        for one in requirements
    ]


def _term(term: NodeSelectorTerm, at: Path) -> Errors:
    for position, requirement in enumerate(term.match_expressions):
        yield from _expression(requirement, at.child("matchExpressions").index(position))
    for position, requirement in enumerate(term.match_fields):
        yield from _field(requirement, at.child("matchFields").index(position))


def _expression(requirement: NodeSelectorRequirement, at: Path) -> Errors:
    values, count = at.child("values"), len(requirement.values)
    match requirement.operator:
        case "In" | "NotIn":
            if not count:
                yield values.required("must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if count:
                yield values.forbidden(
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                )
        case "Gt" | "Lt":
            if count != 1:
                yield values.required(
                    "must be specified single value when `operator` is 'Lt' or 'Gt'"
                )
        case unknown:
            yield at.child("operator").invalid(unknown, "not a valid selector operator")
    yield from validate_label_key(requirement.key, at.child("key"))
    for position, value in enumerate(requirement.values):
        yield from validate_label_value(value, values.index(position))


def _field(requirement: NodeSelectorRequirement, at: Path) -> Errors:
    if requirement.operator in ("In", "NotIn"):
        if len(requirement.values) != 1:
            text = (
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            )
            yield at.child("values").required(text)
    else:
        text = "not a valid selector operator"
        yield at.child("operator").invalid(requirement.operator, text)
    if requirement.key != "metadata.name":
        yield at.child("key").invalid(requirement.key, "not a valid field selector key")
        return
    for position, value in enumerate(requirement.values):
        for text in dns_subdomain_problems(value):
            yield at.child("values").index(position).invalid(value, text)

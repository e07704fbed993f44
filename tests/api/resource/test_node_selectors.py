"""Node selectors, wherever in the group they stand: each thing that can be wrong, with its path."""

from typing import Any

import msgspec
import pytest

from sully.api.resource.types import NodeSelector
from sully.api.resource.validation.node_selectors import validate_node_selector
from sully.machinery.fields import Path

TERM = "nodeSelectorTerms[0]"
LABEL = "a valid label must be an empty string or consist of alphanumeric characters"
SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of"


def expressions(*requirements: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": list(requirements)}


def by_field(**requirements: Any) -> dict[str, Any]:
    return {
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]} | requirements]
    }


CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "values of a label": (
        expressions({"key": "a/b", "operator": "NotIn", "values": ["x", ""]}),
        [],
    ),
    "a number": (expressions({"key": "a", "operator": "Gt", "values": ["5"]}), []),
    "that it is there": (expressions({"key": "a", "operator": "Exists"}), []),
    "a node by name": (by_field(), []),
    "a term that reports nothing": ({}, []),
    "an operator that is unknown": (
        expressions({"key": "a", "operator": "Like"}),
        ['matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator'],
    ),
    "no values": (
        expressions({"key": "a", "operator": "In"}),
        ["matchExpressions[0].values: Required value: must be specified when `operator` is 'In'"],
    ),
    "values too many": (
        expressions({"key": "a", "operator": "Exists", "values": ["b"]}),
        ["matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists'"],
    ),
    "two numbers": (
        expressions({"key": "a", "operator": "Lt", "values": ["1", "2"]}),
        ["matchExpressions[0].values: Required value: must be specified single value when"],
    ),
    "a value that no label can have": (
        expressions({"key": "a", "operator": "In", "values": ["x", "y z", "-"]}),
        [
            f'matchExpressions[0].values[1]: Invalid value: "y z": {LABEL}',
            f'matchExpressions[0].values[2]: Invalid value: "-": {LABEL}',
        ],
    ),
    "a key that no label can have, before its values": (
        expressions({"key": "y z", "operator": "In", "values": ["y z"]}),
        [
            'matchExpressions[0].key: Invalid value: "y z": name part must consist of',
            f'matchExpressions[0].values[0]: Invalid value: "y z": {LABEL}',
        ],
    ),
    "a field by another operator": (
        by_field(operator="Exists", values=[]),
        ['matchFields[0].operator: Invalid value: "Exists": not a valid selector operator'],
    ),
    "two nodes by name": (
        by_field(values=["a", "b"]),
        ["matchFields[0].values: Required value: must be only one value when `operator` is 'In'"],
    ),
    "another field": (
        by_field(key="metadata.uid"),
        ['matchFields[0].key: Invalid value: "metadata.uid": not a valid field selector key'],
    ),
    "a name that no node can have": (
        by_field(values=["A B"]),
        [f'matchFields[0].values[0]: Invalid value: "A B": {SUBDOMAIN}'],
    ),
}


@pytest.mark.parametrize(("term", "want"), CASES.values(), ids=CASES.keys())
def test_a_term(term: dict[str, Any], want: list[str]) -> None:
    selector = msgspec.convert({"nodeSelectorTerms": [term]}, NodeSelector)

    results = [f"{e.field}: {e.body}" for e in validate_node_selector(selector, Path())]

    assert len(results) == len(want), results
    for text, start in zip(results, want, strict=True):
        assert text.startswith(f"{TERM}.{start}"), text

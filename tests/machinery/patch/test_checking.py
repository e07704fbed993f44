from typing import Any

import pytest

from machinery.patch.widgets import WIDGET
from sully.machinery.patch.checking import TypedError, check

PROBLEMS: dict[str, tuple[Any, str]] = {
    "undeclared field": (
        {"mode": {"colour": "red"}},
        ".spec.mode.colour: field not declared in schema",
    ),
    "undeclared field of an item": (
        {"containers": [{"name": "a", "x": 1}]},
        '.spec.containers[name="a"].x: field not declared in schema',
    ),
    "undeclared field in an atomic list": (
        {"plain": [{"uid": "1"}, {"x": 1}]},
        ".spec.plain[1].x: field not declared in schema",
    ),
    "duplicate keys": (
        {"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]},
        '.spec.ports: duplicate entries for key [port=80,protocol="TCP"]',
    ),
    "duplicates in a set": ({"tags": ["a", "a"]}, '.spec.tags: duplicate entries for key [="a"]'),
    "number for a string": (
        {"mode": {"style": 1}},
        ".spec.mode.style: expected string, got &value.valueUnstructured{Value:1}",
    ),
    "map for a string": (
        {"mode": {"style": {"a": [1.5, None, True]}}},
        ".spec.mode.style: expected string, got &value.valueUnstructured{Value:"
        'map[string]interface {}{"a":[]interface {}{1.5, interface {}(nil), true}}}',
    ),
    "string for a number": (
        {"replicas": "1"},
        ".spec.replicas: expected numeric (int or float), got string",
    ),
    "bool for a number": (
        {"replicas": True},
        ".spec.replicas: expected numeric (int or float), got bool",
    ),
    "number for a bool": ({"paused": 1}, ".spec.paused: expected boolean, got &{1}"),
    "list for a map": ({"mode": [1, "a"]}, ".spec.mode: expected map, got &{[1 a]}"),
    "map for a list": (
        {"containers": {"a": None}},
        ".spec.containers: expected list, got &{map[a:<nil>]}",
    ),
    "map for a quantity": (
        {"limits": {"cpu": {}}},
        ".spec.limits.cpu: expected any scalar, got &{map[]}",
    ),
    "item that cannot be named": (
        {"containers": ["a"]},
        ".spec.containers: element 0: associative list with keys may not have non-map elements",
    ),
    "several": (
        {"replicas": "1", "paused": 1e21},
        "errors:\n  .spec.replicas: expected numeric (int or float), got string\n"
        "  .spec.paused: expected boolean, got &{1e+21}",
    ),
}


@pytest.mark.parametrize(("spec", "message"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_problem(spec: Any, message: str) -> None:
    with pytest.raises(TypedError) as caught:
        check({"spec": spec}, WIDGET)

    assert str(caught.value) == message


FINE: dict[str, Any] = {
    "nulls anywhere": {"mode": None, "containers": None, "replicas": None},
    "numbers as quantities": {"limits": {"cpu": 1.5, "memory": "1Gi", "x": True}},
    "anything in raw JSON": {"raw": [{"a": [[]]}]},
    "a float for a number": {"replicas": 1.0},
    "the same key with another protocol": {"ports": [{"port": 1}, {"port": 1, "protocol": "UDP"}]},
}


@pytest.mark.parametrize("spec", FINE.values(), ids=FINE.keys())
def test_fine(spec: Any) -> None:
    check({"spec": spec}, WIDGET)

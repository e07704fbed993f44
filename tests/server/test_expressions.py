"""Expressions that are compiled before validation asks for them."""

from __future__ import annotations

from typing import Any

import pytest

from sully.server.admission.expressions import expressions_in

DEEP: Any = {"expression": "deep"}
for _ in range(5000):
    DEEP = {"a": [DEEP]}

BODIES: dict[str, tuple[Any, set[tuple[str, bool]]]] = {
    "a claim": (
        {
            "spec": {
                "devices": {
                    "requests": [{"exactly": {"selectors": [{"cel": {"expression": "x"}}]}}]
                }
            }
        },
        {("x", False)},
    ),
    "a derived attribute": (
        {"exactly": {"derivedAttributes": [{"name": "n", "expression": "x"}]}},
        {("x", True)},
    ),
    "a placement": (
        {"requiredClusterSelector": {"celSelector": {"celExpressions": ["x", "y", 3]}}},
        {("x", False), ("y", False)},
    ),
    "a JSON patch of one": ([{"op": "add", "path": "/a/expression", "value": "x"}], {("x", False)}),
    "a JSON patch of more": (
        [{"op": "add", "path": "/a", "value": [{"cel": {"expression": "x"}}]}],
        {("x", False)},
    ),
    "nested deeper than calls": (DEEP, {("deep", False)}),
    "no object": (None, set()),
    "no expression": ({"expression": 3, "metadata": {"name": "x"}}, set()),
}


@pytest.mark.parametrize(("body", "want"), BODIES.values(), ids=BODIES.keys())
def test_expressions_in(body: Any, want: set[tuple[str, bool]]) -> None:
    assert set(expressions_in(body)) == want

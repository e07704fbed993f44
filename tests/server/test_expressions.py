"""Expressions that are compiled before validation asks for them."""

from __future__ import annotations

from typing import Any

import pytest

from sully.server.admission.expressions import SHORT, expressions_ahead, expressions_in

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


LONG = "x" * (SHORT + 1)
AHEAD: dict[str, tuple[Any, bool]] = {
    "short": ({"selectors": [{"cel": {"expression": "x"}}]}, False),
    "long": ({"selectors": [{"cel": {"expression": LONG}}]}, True),
    "long together": (
        {"selectors": [{"cel": {"expression": f"{number}{LONG[:500]}"}} for number in range(5)]},
        True,
    ),
    "long, but no expression": ({"description": LONG}, False),
    "short, with half a character": ({"expression": "\ud800"}, False),
    "long, with a number that JSON libraries refuse": ({"a": 2**70, "expression": LONG}, True),
    "long below many lists": ([DEEP, {"expression": LONG}], True),
}


@pytest.mark.parametrize(("body", "want"), AHEAD.values(), ids=AHEAD.keys())
def test_only_long_expressions_are_compiled_ahead(body: Any, want: bool) -> None:
    assert bool(expressions_ahead(body)) == want

"""Every fact in the index has tests, and every test that it names exists."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def read(name: str) -> dict[str, list[str]]:
    """Return the facts of an index with their tests."""
    facts: dict[str, list[str]] = {}
    fact = ""
    for line in (TESTS / "checklist" / name).read_text().splitlines():
        if not line.strip() or line.startswith(("#", "[")):
            continue
        if line.startswith("  "):
            facts[fact].append(line.strip())
        else:
            fact = line
            assert fact not in facts, f"twice: {fact}"
            facts[fact] = []
    return facts


@cache
def names(path: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the functions of a test file, and the texts in it, among which its cases are."""
    tree = ast.parse((TESTS / path).read_text())
    functions = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    texts = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return frozenset(functions), frozenset(texts)


INDEXES = {name: read(name) for name in ("devices.txt", "clusters.txt")}
NAMED = sorted({test for facts in INDEXES.values() for tests in facts.values() for test in tests})
NUMBERS = {"T": 18, "S": 16, "C": 16, "I": 16, "R": 10, "X": 18}
"""How many facts of each kind there are about clusters."""


@pytest.mark.parametrize("name", INDEXES)
def test_every_fact_is_held_by_a_test(name: str) -> None:
    facts = INDEXES[name]

    assert len(facts) > 50
    assert [fact for fact, tests in facts.items() if not tests] == []


def test_no_fact_about_clusters_is_left_out() -> None:
    facts = [fact.partition(" ")[0] for fact in INDEXES["clusters.txt"]]

    assert facts == [
        f"{kind}{index}" for kind, most in NUMBERS.items() for index in range(1, most + 1)
    ]


@pytest.mark.parametrize("test", NAMED)
def test_a_test_that_is_named_exists(test: str) -> None:
    path, _, name = test.partition("::")
    function, _, case = name.partition("[")
    functions, texts = names(path)

    assert function.startswith("test_")
    assert function in functions
    assert not case or case.removesuffix("]") in texts

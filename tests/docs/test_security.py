"""Every line of the threat model names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from architecture.project import ROOT

TESTS = ROOT / "tests"
PAGE = ROOT / "docs" / "security.md"
_ROW = re.compile(r"^\| .* \| .* \| (?P<tests>`.*`) \|$", re.M)


def named() -> list[str]:
    """Return the tests that the tables of the page name."""
    return sorted({name for row in _ROW.finditer(PAGE.read_text()) for name in _names(row)})


def _names(row: re.Match[str]) -> list[str]:
    return re.findall(r"`([^`]+)`", row["tests"])


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def test_there_are_many() -> None:
    assert len(named()) > 60


@pytest.mark.parametrize("name", named())
def test_named_test_exists(name: str) -> None:
    file, _, function = name.partition("::")
    path = TESTS / file

    assert path.exists()
    assert not function or function in functions(path)


@pytest.mark.parametrize(
    "path", sorted((TESTS / "attacks").glob("test_*.py")), ids=lambda p: p.stem
)
def test_every_attack_is_in_the_threat_model(path: Path) -> None:
    listed = {name for name in named() if name.startswith(f"attacks/{path.name}::")}
    attacks = {name for name in functions(path) if name.startswith("test_")}

    assert {name.partition("::")[2] for name in listed} == attacks

"""Local names are nouns for what they hold, not words for how it came about."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from architecture.project import SOURCE, short

VAGUE = frozenset(("each", "found"))


def vague_names(source: str) -> Iterator[str]:
    """Yield the names that say nothing, each time something is bound to one."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name in VAGUE:
                yield f"{node.lineno}: {name}"


@pytest.mark.parametrize(
    ("source", "want"),
    [
        ("found = 1", ["1: found"]),
        ("for each in pods: pass", ["1: each"]),
        ("[each for each in pods]", ["1: each"]),
        ("def f(found): pass", ["1: found"]),
        ("pod = rule.found", []),
        ("text = 'found'", []),
    ],
)
def test_vague_names_are_noticed(source: str, want: list[str]) -> None:
    assert list(vague_names(source)) == want


def test_local_names_are_nouns() -> None:
    assert [
        f"{short(path)}:{name}"
        for path in sorted(SOURCE.rglob("*.py"))
        for name in vague_names(path.read_text())
    ] == []

"""The page of promises names tests that exist."""

from __future__ import annotations

import re

import pytest

from architecture.project import ROOT

PAGE = (ROOT / "docs" / "promises.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "`tests/" in line]
NAMED = sorted(set(re.findall(r"`(tests/[^`]+)`", PAGE)))


def test_there_are_promises() -> None:
    assert len(ROWS) >= 10
    assert all(line.startswith(("| promise", "|--")) or line in ROWS for line in _table())


def _table() -> list[str]:
    return [line for line in PAGE.splitlines() if line.startswith("|")]


@pytest.mark.parametrize("named", NAMED)
def test_a_named_test_exists(named: str) -> None:
    file, _, name = named.partition("::")

    source = (ROOT / file).read_text()
    assert re.search(rf"^(async )?def {name or 'test_'}", source, re.MULTILINE), named

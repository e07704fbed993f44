"""The walks of the architecture page name as many files as they state."""

from __future__ import annotations

import re

import pytest

from architecture.project import ROOT

WALKS = {
    "The life of one taint": "twelve steps pass through",
    "The life of one pod": "eight steps pass through",
}
PAGE = (ROOT / "docs" / "architecture.md").read_text()


@pytest.mark.parametrize(("title", "statement"), WALKS.items(), ids=WALKS)
def test_a_walk_states_its_number_of_files(title: str, statement: str) -> None:
    section = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    stated = re.search(rf"{statement} (\d+) files", section)
    steps = re.findall(r"^\d+\. .*?(?=^\d+\. |^\n|^\S)", section, re.MULTILINE | re.DOTALL)
    files = {path for step in steps for path in re.findall(r"\(\.\./(src/[^)]+\.py)\)", step)}

    assert stated is not None
    assert len(files) == int(stated[1])

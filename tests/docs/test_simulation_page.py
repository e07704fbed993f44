"""The page about the simulation names every planted fault and what finds it."""

from __future__ import annotations

import re

from architecture.project import ROOT
from simulator.mutations import mutations

PAGE = (ROOT / "docs" / "simulation.md").read_text()


def rows(heading: str) -> dict[str, str]:
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    table = re.findall(r"^\| (.+) \|$", section, re.MULTILINE)
    cells = [line.split(" | ") for line in table[1:]]
    return {line[0]: line[-1] for line in cells}


def test_every_fault_is_found() -> None:
    assert rows("Planted faults").keys() == {mutation.name for mutation in mutations()}


def test_what_finds_a_fault_is_explained() -> None:
    assert set(rows("Planted faults").values()) <= rows("What is checked").keys()

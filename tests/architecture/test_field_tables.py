"""The field tables are documentation too: `kubectl explain` shows their descriptions."""

import re
from pathlib import Path

import pytest

from architecture.project import SOURCE, short

TABLES = sorted(SOURCE.rglob("*.fields"))
MOST = 100
CONTINUATION = "      "
# Flags cannot be broken over lines, so a line may be as long as they are.
FLAGS = re.compile(r"^ *[\w$-]+(?:=[\d.]+)?(?: [^\s:]+)*:")


def entries(text: str) -> list[tuple[int, str]]:
    """Return the types and fields of a table, each as one line with the number of its first."""
    results: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(CONTINUATION):
            first, so_far = results[-1]
            results[-1] = (first, f"{so_far} {line.strip()}")
        else:
            results.append((number, line))
    return results


def test_there_are_tables() -> None:
    assert len(TABLES) > 5


@pytest.mark.parametrize("path", TABLES, ids=short)
def test_every_type_and_field_is_described(path: Path) -> None:
    silent = [
        f"{short(path)}:{number}: {entry.strip()}"
        for number, entry in entries(path.read_text())
        if len(FLAGS.sub("", entry, count=1).split()) < 2 and not entry.startswith("pattern ")
    ]

    assert silent == []


@pytest.mark.parametrize("path", TABLES, ids=short)
def test_lines_fit_the_screen(path: Path) -> None:
    long = [
        f"{short(path)}:{number}"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > MOST and not _only_flags(line)
    ]

    assert long == []


def _only_flags(line: str) -> bool:
    match = FLAGS.match(line)
    return match is not None and not line[match.end() :].strip()

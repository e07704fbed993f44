"""The output of `sully explain`: sentences, a list of remedies, and tables with details.

In a pipe, each sentence is one line.
"""

import sys
from collections.abc import Iterator

from sully.cli.output.tables import STYLES, Column, Table, TableLayout, broken, table_layout_of
from sully.cli.output.text import printable
from sully.explain.explanation import Explanation

_NUMBERS = ("devices", "excludes", "count", "available", "weight", "score", "number", "nodes")
_NARROW = (*_NUMBERS, "status", "stage")
"""Columns that are never broken: numbers and words."""


def lines(explanation: Explanation, layout: TableLayout | None = None) -> Iterator[str]:
    shown = layout if layout is not None else table_layout_of(sys.stdout)
    yield _bold(explanation.title, shown)
    for sentence in explanation.summary:
        yield from _wrapped(sentence, shown)
    if explanation.remedies:
        yield ""
        yield _bold("What would help:", shown)
        for remedy in explanation.remedies:
            yield from _wrapped(remedy, shown, "- ")
    for table in explanation.details:
        yield ""
        yield _bold(f"{table.title}:", shown)
        columns = [
            Column(name.upper(), shrinks=0 if name in _NARROW else 1) for name in table.columns
        ]
        yield from Table(columns, shown).lines(table.rows)


def _wrapped(text: str, layout: TableLayout, lead: str = "") -> Iterator[str]:
    text = printable(text)
    if layout.width is None:
        yield f"{lead}{text}"
        return
    blank = " " * len(lead)
    for at, line in enumerate(broken(text, max(20, layout.width - len(lead)))):
        yield f"{blank if at else lead}{line}"


def _bold(text: str, layout: TableLayout) -> str:
    text = printable(text)
    return f"\x1b[{STYLES['bold']}m{text}\x1b[0m" if layout.color else text

"""Tables: in columns on a terminal, one line per row in a pipe.

A pipe gets every cell whole, so that scripts can rely on it. On a terminal, columns that may shrink
are wrapped where a line is too long, and where that is not enough, each row becomes a list of its
cells. Colors are only for terminals, and not if NO_COLOR is set or the terminal is dumb. Text
of others cannot break a line (text.py). Why this is not rich: docs/adr/0016-click-and-rich.md.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TextIO

import msgspec

from sully.cli.output.text import fitting, printable, width

GAP = "  "
NARROWEST = 16
"""A column that shrinks keeps at least this."""
WIDEST = 60
"""The maximum width of a column that is widened to use the rest of a line."""
STYLES = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "dim": "2", "bold": "1"}


class Cell(msgspec.Struct, frozen=True):
    """A text with a color."""

    text: str
    style: str = ""


class Column(msgspec.Struct, frozen=True):
    """One column of a table."""

    title: str
    shrinks: int = 0
    """0: never; 1: where the line is too long; 2: only when those cannot shrink any more."""
    right: bool = False
    least: int = 0
    """Its minimum width in a table that grows, for rows that are not known yet."""


class TableLayout(msgspec.Struct, frozen=True):
    """What the output can show."""

    width: int | None = None
    """How many characters a line has; None: no limit."""
    color: bool = False


def table_layout_of(stream: TextIO, env: Mapping[str, str] = os.environ) -> TableLayout:
    """Find out what a stream can show."""
    if not stream.isatty():
        return TableLayout()
    # Not shutil's: that always asks the standard output, and accepts COLUMNS=0.
    columns = env.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) else _terminal_width(stream)
    return TableLayout(width, not env.get("NO_COLOR") and env.get("TERM", "") not in ("", "dumb"))


def _terminal_width(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except OSError:
        return 80


Row = Sequence[Cell | str]


class Table:
    """Rows under columns; more rows may follow later, in the same columns.

    One that `grows` takes the width of a terminal, for rows that are not known yet, also when that
    changes; one that is not `titled` has rows only.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        layout: TableLayout | None = None,
        *,
        grows: bool = False,
        titled: bool = True,
    ) -> None:
        self._columns = columns
        self._titled = titled
        self._grows = grows
        self._explicit_layout = layout
        self._layout = layout if layout is not None else table_layout_of(sys.stdout)
        self._natural: list[int] = []
        """How wide each column would be without a limit."""
        self._places: list[int] = []
        """Which columns are shown."""
        self._widths: list[int] = []
        """How wide each column is; only that of shown ones matters."""
        self._format = ""
        """A whole line of all columns, for texts of ASCII characters."""

    def show(self, rows: Iterable[Row], stream: TextIO | None = None) -> None:
        out = stream or sys.stdout
        lines = self.lines(rows)
        if self._layout.width is None:
            # One write: a pipe without a buffer would get one for each of a hundred thousand rows.
            lines = iter(["\n".join(lines)])
        out.writelines(f"{line}\n" for line in lines)
        out.flush()

    def add(self, rows: Iterable[Row], stream: TextIO | None = None) -> None:
        """Print more rows, without the title."""
        out = stream or sys.stdout
        layout = table_layout_of(out) if self._explicit_layout is None else self._explicit_layout
        if layout != self._layout:
            self._layout = layout
            self._fit()
        out.writelines(line + "\n" for line in self.more(rows))
        out.flush()

    def lines(self, rows: Iterable[Row]) -> Iterator[str]:
        if self._layout == TableLayout():
            yield from self._whole_lines([_texts(row) for row in rows])
            return
        cells = [_cells(row) for row in rows]
        titles = [Cell(column.title, "bold") for column in self._columns]
        head = [titles] if self._titled or self._grows or not cells else []
        self._natural = [
            max(column.least * self._grows, *(width(row[at].text) for row in (*head, *cells)))
            for at, column in enumerate(self._columns)
        ]
        self._fit()
        if self._places and self._titled:
            yield from self._row(titles)
        yield from self._body(cells)

    def _whole_lines(self, rows: Sequence[Sequence[str]]) -> Iterator[str]:
        """Yield a table for a pipe, in which only the width of whole columns matters."""
        has_titles = self._titled or self._grows or not rows
        if has_titles:
            rows = [[column.title for column in self._columns], *rows]
        columns = [_printable(texts) for texts in zip(*rows, strict=True)]
        self._natural = [
            max(column.least * self._grows, _widest(texts))
            for column, texts in zip(self._columns, columns, strict=True)
        ]
        self._fit()
        is_simple = all(all(texts) and "".join(texts).isascii() for texts in columns)
        line = self._format.__mod__ if is_simple else self._whole_line
        lines = map(line, zip(*columns, strict=True))
        if has_titles and not self._titled:
            next(lines)
        yield from lines

    def _whole_line(self, texts: tuple[str, ...]) -> str:
        line = self._format % texts
        # Others have characters of other widths, or end early.
        return line if line.isascii() and all(texts) else self._line(texts)

    def more(self, rows: Iterable[Row]) -> Iterator[str]:
        yield from self._body(map(_cells, rows))

    def _body(self, rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
        for cells in rows:
            yield from self._row(cells) if self._places else self._list(cells)

    def _fit(self) -> None:
        self._places = list(range(len(self._columns)))
        self._widths = list(self._natural)
        for turn in (1, 2):
            places = [at for at in self._places if self._columns[at].shrinks == turn]
            _shrink(self._widths, places, self._over())
        if self._over() > 0:
            self._places = []
        elif self._grows:
            self._spread(-self._over())
        *others, last = (
            f"%{'' if column.right else '-'}{width}s"
            for column, width in zip(self._columns, self._widths, strict=True)
        )
        self._format = GAP.join((*others, last if self._columns[-1].right else "%s"))

    def _spread(self, room: int) -> None:
        """Give what is left of a line to the columns whose cells may be long."""
        places = [at for at in self._places if self._columns[at].shrinks == 1]
        for at in places:
            wider = min(self._widths[at] + room // len(places), WIDEST)
            self._widths[at] = max(self._widths[at], wider)

    def _over(self) -> int:
        """Return by how much a line is too long."""
        if self._layout.width is None:
            return 0
        taken = sum(self._widths[at] for at in self._places) + len(GAP) * (len(self._places) - 1)
        return taken - self._layout.width

    def _row(self, cells: Sequence[Cell]) -> Iterator[str]:
        parts = [
            broken(cells[at].text, self._widths[at])
            if self._columns[at].shrinks and self._layout.width is not None
            else [cells[at].text]
            for at in self._places
        ]
        for texts in zip_longest(*parts, fillvalue=""):
            yield self._line(texts, cells)

    def _line(self, texts: Sequence[str], cells: Sequence[Cell] = ()) -> str:
        shown = []
        last = max((order for order, text in enumerate(texts) if text), default=0)
        for order, text in enumerate(texts[: last + 1]):
            at = self._places[order]
            padded, room = text, " " * (self._widths[at] - width(text))
            if self._columns[at].right:
                padded = room + text
            elif order != last:
                padded = text + room
            shown.append(self._painted(padded, cells[at].style) if cells else padded)
        return GAP.join(shown)

    def _list(self, cells: Sequence[Cell]) -> Iterator[str]:
        """Yield a row as a list: the first cell, and the others below it with their titles."""
        yield self._painted(cells[0].text, cells[0].style or "bold")
        indent = max(len(column.title) for column in self._columns[1:]) + 2 * len(GAP)
        room = max(NARROWEST, (self._layout.width or 80) - indent)
        for column, cell in zip(self._columns[1:], cells[1:], strict=True):
            title = GAP + column.title
            for text in broken(cell.text, room):
                yield title.ljust(indent) + self._painted(text, cell.style)
                title = ""

    def _painted(self, text: str, style: str) -> str:
        if not self._layout.color or not style or not text.strip():
            return text
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m"


def _shrink(widths: list[int], places: Sequence[int], over: int) -> None:
    """Take from the widest of some columns until all fit, or are at their minimum."""
    while over > 0:
        # The widest gives way first, so that narrow columns stay whole.
        at = max(places, key=lambda at: widths[at], default=None)
        if at is None or widths[at] <= NARROWEST:
            return
        second = max((widths[x] for x in places if x != at), default=0)
        least = max(NARROWEST, min(second, widths[at] - 1), widths[at] - over)
        over -= widths[at] - least
        widths[at] = least


def _cells(row: Row) -> list[Cell]:
    cells = [cell if isinstance(cell, Cell) else Cell(cell) for cell in row]
    if "".join([cell.text for cell in cells]).isprintable():
        return cells
    return [Cell(printable(cell.text), cell.style) for cell in cells]


def _texts(row: Row) -> list[str]:
    return [cell if isinstance(cell, str) else cell.text for cell in row]


def _printable(texts: Sequence[str]) -> Sequence[str]:
    return texts if "".join(texts).isprintable() else list(map(printable, texts))


def _widest(texts: Sequence[str]) -> int:
    return max(map(len if "".join(texts).isascii() else width, texts))


def broken(text: str, room: int) -> list[str]:
    """Break a text into lines of at most this width, at spaces where there are any."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        if width(joined) <= room:
            line = joined
            continue
        if line:
            lines.append(line)
        while width(word) > room:
            cut = _cut(word, fitting(word, room))
            lines.append(word[:cut])
            word = word[cut:]
        line = word
    return [*lines, line] if line or not lines else lines


def _cut(word: str, most: int) -> int:
    """Return where to break a long name: behind the best separator that leaves lines full."""
    for marks in ("/", ":=", ".-_"):
        end = max(word.rfind(mark, 0, most) for mark in marks) + 1
        if end > most // 3:
            return end
    # Reasons and types of conditions have no separator: LikeThis.
    for at in range(most, most // 3, -1):
        if word[at - 1].islower() and word[at : at + 1].isupper():
            return at
    return most

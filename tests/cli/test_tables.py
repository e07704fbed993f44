"""Tables: whole cells in a pipe, lines that fit in a terminal."""

from __future__ import annotations

import io
import os
import re
import sys
from dataclasses import dataclass

import pytest

from sully.cli.inspect.devices.printer import columns as device_columns
from sully.cli.inspect.devices.printer import row as device_row
from sully.cli.inspect.explain_printer import lines as explained
from sully.cli.output.tables import (
    WIDEST,
    Cell,
    Column,
    Table,
    TableLayout,
    broken,
    table_layout_of,
)
from sully.domain.devices.pools import DeviceId
from sully.explain.explanation import Explanation
from sully.testing.clock import NOON
from sully.views.devices.device_views import DeviceView

NAME, COUNT, TEXT = Column("NAME"), Column("COUNT", right=True), Column("TEXT", shrinks=1)
PIPE = TableLayout()
LONG = "a text of several words"


@dataclass(frozen=True)
class Case:
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell | str, ...], ...]
    want: tuple[str, ...]
    look: TableLayout = PIPE


CASES = {
    "numbers stand at the right": Case(
        (NAME, COUNT),
        (("a", "1"), ("bcdefg", "1000")),
        ("NAME    COUNT", "a           1", "bcdefg   1000"),
    ),
    "no spaces at the end": Case(
        (NAME, TEXT), (("a", "b"), ("c", "")), ("NAME  TEXT", "a     b", "c")
    ),
    "a row is a line, whatever others wrote": Case(
        (NAME, TEXT),
        (("a", "one\ntwo\r\n\tthree"), ("b", Cell("\x1b[2Jgone\x00 \u202etxt.\x9b"))),
        (
            "NAME  TEXT",
            "a     one two   three",
            "b     \\x1b[2Jgone\\x00 \\u202etxt.\\x9b",
        ),
    ),
    "wide characters": Case(
        (TEXT, COUNT),
        (("日本語", "1"), ("e\u0301te\u0301", "2"), ("abc", "3")),
        ("TEXT    COUNT", "日本語      1", "e\u0301te\u0301         2", "abc         3"),
    ),
    "wide characters in little room": Case(
        (NAME, TEXT),
        (("a", "日本語日本語日本語日本語"),),
        ("NAME  TEXT", "a     日本語日本語日本", "      語日本語"),
        TableLayout(23),
    ),
    "no rows": Case((NAME, TEXT), (), ("NAME  TEXT",)),
    "whole in a pipe": Case((NAME, TEXT), (("a", LONG),), ("NAME  TEXT", f"a     {LONG}")),
    "broken at spaces": Case(
        (NAME, TEXT),
        (("a", LONG),),
        ("NAME  TEXT", "a     a text of several", "      words"),
        TableLayout(25),
    ),
    "long words are broken where one begins": Case(
        (NAME, TEXT),
        (("a", "HubAcceptedManagedCluster"), ("b", "ManagedClusterLEASESTOPPED")),
        (
            "NAME  TEXT",
            "a     HubAcceptedManaged",
            "      Cluster",
            "b     ManagedCluster",
            "      LEASESTOPPED",
        ),
        TableLayout(26),
    ),
    "what fits is not broken": Case(
        (NAME, TEXT), (("a", LONG),), ("NAME  TEXT", f"a     {LONG}"), TableLayout(6 + len(LONG))
    ),
    "no column is left out": Case(
        (NAME, Column("AGAIN", shrinks=2), TEXT),
        (("name-1", "name-1", LONG),),
        ("NAME    AGAIN   TEXT", "name-1  name-1  a text of several", "                words"),
        TableLayout(34),
    ),
    "a list where nothing else helps": Case(
        (NAME, Column("A LONG TITLE"), TEXT),
        (("name-1", "b", LONG),),
        (
            "name-1",
            "  A LONG TITLE  b",
            "  TEXT          a text of",
            "                several words",
        ),
        TableLayout(30),
    ),
    "colours end before the gap": Case(
        (NAME, TEXT),
        ((Cell("a", "red"), "b"),),
        ("\x1b[1mNAME\x1b[0m  \x1b[1mTEXT\x1b[0m", "\x1b[31ma   \x1b[0m  b"),
        TableLayout(80, color=True),
    ),
    "only a table that grows keeps room": Case(
        (Column("NAME", least=8), TEXT), (("a", "b"),), ("NAME  TEXT", "a     b")
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_lines(case: Case) -> None:
    assert tuple(Table(case.columns, case.look).lines(case.rows)) == case.want


def test_a_table_that_grows_keeps_room() -> None:
    table = Table((Column("NAME", least=8), TEXT), PIPE, grows=True)

    assert list(table.lines([("a", "b")])) == ["NAME      TEXT", "a         b"]


def test_rows_that_come_later_stand_in_the_same_columns() -> None:
    table, out = Table((NAME, TEXT), TableLayout()), io.StringIO()

    table.show([("long-name", "x")], out)
    table.add([("a", "b")], out)

    assert out.getvalue() == "NAME       TEXT\nlong-name  x\na          b\n"


def test_a_table_that_grows_takes_the_whole_line() -> None:
    growing, other = (
        Table((NAME, TEXT, TEXT), TableLayout(30), grows=True),
        Table((NAME,), grows=True),
    )

    assert list(growing.lines([("a", "b", "c")])) == [
        "NAME  TEXT         TEXT",
        "a     b            c",
    ]
    assert list(growing.more([("a", "one two three", "c")])) == [
        "a     one two      c",
        "      three",
    ]
    assert list(other.lines([("a",)])) == ["NAME", "a"]


def test_a_table_that_grows_leaves_no_gap_that_the_eye_cannot_cross() -> None:
    table = Table((NAME, TEXT, COUNT), TableLayout(200), grows=True)

    assert list(table.lines([("a", "b", "1")])) == [
        f"NAME  {'TEXT':<{WIDEST}}  COUNT",
        f"a     {'b':<{WIDEST}}      1",
    ]


def test_a_table_that_grows_without_titles_keeps_their_room() -> None:
    table = Table((NAME, Column("PLACE", shrinks=2)), TableLayout(30), grows=True, titled=False)

    assert list(table.lines([("a", "")])) == ["a"]
    assert list(table.more([("b", "there")])) == ["b     there"]


def test_a_watch_of_devices_that_begins_with_none_has_room_for_names() -> None:
    table = Table(device_columns(wide=False), TableLayout(80), grows=True, titled=False)

    assert list(table.lines([])) == []
    assert list(table.more([("gpu.example.com/node-7/gpu-3", "(left)", "-", "-")])) == [
        "gpu.example.com/node-7/   (left)    -                      -",
        "gpu-3",
    ]


def test_a_table_that_grows_fits_a_terminal_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Screen()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setitem(os.environ, "COLUMNS", "80")
    table = Table(device_columns(wide=False), grows=True)
    row = ("gpu.example.com/node-7/gpu-3", "node-7", "example.com/hot:NoExecute", "default/web-0")

    table.show([row])
    monkeypatch.setitem(os.environ, "COLUMNS", "60")
    table.add([row])
    monkeypatch.setitem(os.environ, "COLUMNS", "120")
    table.add([row])

    lines = [re.sub(r"\x1b\[\d*m", "", line) for line in out.getvalue().splitlines()]
    assert lines == [
        "DEVICE                        NODE      TAINTS               USED BY",
        "gpu.example.com/node-7/gpu-3  node-7    example.com/         default/web-0",
        "                                        hot:NoExecute",
        "gpu.example.com/node-7/gpu-3",
        "  NODE     node-7",
        "  TAINTS   example.com/hot:NoExecute",
        "  USED BY  default/web-0",
        "gpu.example.com/node-7/gpu-3  node-7    example.com/hot:NoExecute                  "
        "default/web-0",
    ]


BROKEN = {
    "short": ("abc", ["abc"]),
    "nothing": ("", [""]),
    "words": ("abc def ghi", ["abc def", "ghi"]),
    "a path": ("driver/pool/device", ["driver/", "pool/", "device"]),
    "a taint": ("key:NoExecute", ["key:", "NoExecut", "e"]),
    "no separator": ("abcdefghijkl", ["abcdefgh", "ijkl"]),
    "behind a word": ("ab driver/pool", ["ab", "driver/", "pool"]),
}


@pytest.mark.parametrize(("text", "want"), BROKEN.values(), ids=BROKEN)
def test_broken(text: str, want: list[str]) -> None:
    assert broken(text, 8) == want


def test_that_a_device_is_gone_is_reported_in_little_room_too() -> None:
    gone = DeviceView(DeviceId("gpu.example.com", "node-7", "gpu-3"), None, "")
    table = Table(device_columns(wide=False), TableLayout(50))

    assert "(gone)" in "".join(table.lines([device_row(gone, NOON, wide=False)]))


def test_broken_where_there_is_no_room_at_all() -> None:
    assert broken("abc", 0) == ["a", "b", "c"]


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


LOOKS = {
    "a pipe": (io.StringIO(), {"COLUMNS": "40", "TERM": "xterm"}, TableLayout()),
    "a terminal": (Screen(), {"COLUMNS": "132", "TERM": "xterm"}, TableLayout(132, color=True)),
    "no colour": (Screen(), {"COLUMNS": "80", "TERM": "xterm", "NO_COLOR": "1"}, TableLayout(80)),
    "dumb": (Screen(), {"COLUMNS": "80", "TERM": "dumb"}, TableLayout(80)),
    "a width that is none": (Screen(), {"COLUMNS": "x", "NO_COLOR": "1"}, TableLayout(80)),
}


@pytest.mark.parametrize(("stream", "env", "want"), LOOKS.values(), ids=LOOKS)
def test_look(stream: io.StringIO, env: dict[str, str], want: TableLayout) -> None:
    assert table_layout_of(stream, env) == want


def test_an_explanation_cannot_command_the_terminal() -> None:
    story = Explanation(
        kind="Device",
        name="d",
        state="Tainted",
        cause="KeepsNewPodsOff",
        summary=("Rule r says: \x1b[2Jall\nis well.",),
        remedies=("Ask \x07bob.",),
    )

    assert list(explained(story, PIPE))[1:] == [
        "Rule r says: \\x1b[2Jall is well.",
        "",
        "What would help:",
        "- Ask \\x07bob.",
    ]

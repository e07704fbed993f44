"""`--help` teaches by examples, and each is a line that the program takes."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from sully.cli.helptext import fitted
from sully.cli.main import COMMANDS, build_parser, overview
from sully.cli.parsing import CommandParser
from sully.cli.run.simulated import hints

_COMMENT = re.compile(r"\s{2,}[^-'\"\s].*$")
"""What stands behind an example, with a gap before it."""
_SHELL = re.compile(r" (?:\||>|&&|<) .*$| &$|(?<=bash|.zsh)\)$")
"""What is for the shell, and not for us."""
_DATE = re.compile(r"\$\([^)]*\)")
WITHOUT = ("version",)
"""What has nothing to show by examples."""


def parser_of(name: str) -> CommandParser:
    """Return the parser of one command."""
    parser = build_parser(name)
    actions = [each for each in parser._actions if each.choices and name in each.choices]
    found = dict(actions[0].choices or {})[name]
    assert isinstance(found, CommandParser)
    return found


def examples(name: str) -> Iterator[str]:
    """Yield the command lines in the examples of one command."""
    text = parser_of(name).epilog or ""
    block = text.partition("examples:\n")[2].partition("\n\n")[0]
    for line in block.splitlines():
        for part in line.split(" && "):
            at = part.find("sully ")
            if at >= 0:
                yield _COMMENT.sub("", _SHELL.sub("", _COMMENT.sub("", part[at:])))


LINES = sorted({line for name in COMMANDS for line in examples(name)})


@pytest.mark.parametrize("line", LINES)
def test_examples_are_lines_that_the_program_takes(line: str) -> None:
    _, first, *words = shlex.split(_DATE.sub("today", line))

    parser_of(first).parse_args(words)


@pytest.mark.parametrize("name", [each for each in COMMANDS if each not in WITHOUT])
def test_each_command_has_examples_and_fits_a_screen(name: str) -> None:
    parser = parser_of(name)

    assert list(examples(name))
    assert parser.description
    assert all(len(line) <= 100 for line in (parser.epilog or "").splitlines())


def test_the_overview_has_every_command_once() -> None:
    told = [line.split()[0] for line in overview().splitlines() if line.startswith("  ")]

    assert sorted(told) == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_terminal_of_80_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "COLUMNS", "80")
    shown = parser_of(name).format_help()

    assert not [line for line in shown.splitlines() if len(line) > 80]
    # Broken for the eye; to a shell each example is one line still.
    words = " ".join(shown.replace("\\\n", " ").split())
    for line in examples(name):
        assert " ".join(line.split()) in words


FITTED = {
    "a paragraph is filled": (["one two three", "four"], ["one two", "three four"]),
    "what fits stays": (["a title:", "", "  a b"], ["a title:", "", "  a b"]),
    "an example is broken where a shell sees it": (
        ["  sully a 'b c' d"],
        ["  sully a \\", "      'b c' \\", "      d"],
    ),
    "what an example does stands below it": (
        ["  sully abc   to do it"],
        ["  sully abc", "      to do", "      it"],
    ),
}


@pytest.mark.parametrize(("lines", "want"), FITTED.values(), ids=FITTED)
def test_fitted(lines: list[str], want: list[str]) -> None:
    assert list(fitted(lines, 12)) == want


def test_the_demo_suggests_what_the_program_takes() -> None:
    lines = [line for line in hints(Path("kubeconfig")).splitlines() if "export" not in line]
    ours = [_COMMENT.sub("", line.strip()) for line in lines if line.startswith("  sully ")]

    for line in ours:
        _, first, *words = shlex.split(line)
        parser_of(first).parse_args(words)
    assert len(ours) >= 4
    assert max(map(len, lines)) <= 80


def test_the_demo_quotes_where_it_lies(tmp_path: Path) -> None:
    assert f"export KUBECONFIG='{tmp_path}/a b/kubeconfig'\n" in hints(tmp_path / "a b/kubeconfig")

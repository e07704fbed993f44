"""`--help` has examples, and each is a command line that the program parses."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.commandlines import parsed
from sully.cli.main import COMMANDS, load, main
from sully.cli.run.up.simulated import demo_hints
from sully.domain.planning.rules.taint_grammar import CLUSTER_EFFECTS, DEVICE_EFFECTS

_COMMENT = re.compile(r"\s{2,}[^-'\"\s].*$")
"""What a hint of the demo does, after a gap."""
_SHELL = re.compile(r" (?:\||>|&&|<) .*$| &$|(?<=bash|.zsh)\)$")
"""What is for the shell."""
_DATE = re.compile(r"\$\([^)]*\)")
WITHOUT = ("version",)
"""Commands without examples."""


def examples(name: str) -> Iterator[str]:
    """Yield the command lines in the examples of one command."""
    for line in load(name).examples.replace("\\\n", " ").splitlines():
        for part in line.split(" && "):
            at = part.find("sully ")
            if at >= 0 and not line.startswith("#"):
                yield _SHELL.sub("", part[at:])


LINES = sorted({line for name in COMMANDS for line in examples(name)})


@pytest.mark.parametrize("line", LINES)
def test_examples_are_lines_that_the_program_parses(line: str) -> None:
    _, *arguments = shlex.split(_DATE.sub("today", line))

    parsed(*arguments)


@pytest.mark.parametrize("name", [command for command in COMMANDS if command not in WITHOUT])
def test_each_command_has_help_and_examples(name: str) -> None:
    command = load(name)

    assert list(examples(name))
    assert command.help
    assert command.examples.startswith("# ")
    assert all(not text or text.endswith(".") for text in (param.help for param in command.params))


def test_all_commands_are_listed_by_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out.partition("\nExamples:")[0]

    groups = re.findall(r"^(\w+ Commands):$", shown, re.MULTILINE)
    assert groups == [
        f"{group} Commands" for group in ("Inspect", "Change", "Data", "Run", "Other")
    ]
    assert sorted(re.findall(r"^  ([\w-]+)", shown, re.MULTILINE)) == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_terminal_of_80_columns(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(os.environ, "COLUMNS", "80")
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out

    assert not [line for line in shown.splitlines() if len(line) > 80]
    assert f"\nUsage:\n  sully {name}" in shown
    # To a shell each example is one line.
    arguments = " ".join(shown.replace("\\\n", " ").split())
    for line in examples(name):
        assert " ".join(line.split()) in arguments


@pytest.mark.parametrize("name", ["taint", "plan"])
def test_effects_are_explained(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out

    for effect in (*DEVICE_EFFECTS, *CLUSTER_EFFECTS):
        assert re.search(rf"^  {effect}\s+[A-Z]", shown, re.MULTILINE), effect


def test_the_demo_suggests_what_the_program_parses() -> None:
    lines = [line for line in demo_hints(Path("kubeconfig")).splitlines() if "export" not in line]
    ours = [_COMMENT.sub("", line.strip()) for line in lines if line.startswith("  sully ")]

    for line in ours:
        _, *arguments = shlex.split(line)
        parsed(*arguments)
    assert len(ours) >= 4
    assert max(map(len, lines)) <= 80


def test_the_demo_quotes_its_path(tmp_path: Path) -> None:
    hints = demo_hints(tmp_path / "a b/kubeconfig")

    assert f"export KUBECONFIG='{tmp_path}/a b/kubeconfig'\n" in hints

"""What shells and supervisors do to a command ends it quietly, whatever the command is about."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.terminals import PATIENCE, environment, program
from sully.cli.main import main
from sully.cli.process import INTERRUPTED, PIPE_CLOSED, finished

VERSION = ("version",)
SAVED = str(Path(__file__).parent / "screens" / "cluster.yaml")
SHELL = {
    "an output that is closed": (VERSION, ">&-", 0, ""),
    "an input that is closed": (VERSION, "<&-", 0, "sully "),
    "nothing is open": (VERSION, "<&- >&- 2>&-", 0, ""),
    "a full disk": (VERSION, ">/dev/full", 1, "error: cannot write the output: No space left"),
    "a full disk for an answer": (
        ("devices", "--snapshot", SAVED),
        ">/dev/full",
        1,
        "error: cannot write the output: No space left",
    ),
    "a closed output for a server": (("devices",), ">&-", 1, "no cluster is configured"),
    "letters that a terminal lacks": (
        ("devices", "--node", "\u2026", "--snapshot", SAVED),
        "",
        0,
        'No devices found on node "\\u2026"',
    ),
    "bytes that are not letters": (("devices", "--context", "\udcff"), "", 1, "no cluster"),
}


@pytest.mark.parametrize(("arguments", "shell", "code", "reported"), SHELL.values(), ids=SHELL)
def test_a_shell(arguments: tuple[str, ...], shell: str, code: int, reported: str) -> None:
    ran = subprocess.run(
        ["bash", "-c", f'"$@" {shell}', "-", *map(os.fsencode, program(*arguments))],
        env=environment(PYTHONIOENCODING="ascii", KUBECONFIG="/nowhere"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert ran.returncode == code, ran.stderr
    assert reported in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("arguments", [("version",), ("completion", "bash"), ("--version",)])
def test_a_reader_who_has_enough(arguments: tuple[str, ...]) -> None:
    reader, pipe = os.pipe()
    os.close(reader)
    ran = subprocess.run(
        program(*arguments),
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=subprocess.PIPE,
        timeout=PATIENCE,
        check=False,
    )
    os.close(pipe)

    assert (ran.returncode, ran.stderr) == (PIPE_CLOSED, b"")


def _interrupted() -> int:
    raise KeyboardInterrupt


ENDS: dict[str, tuple[Callable[[], int], int]] = {
    "Ctrl-C while it is imported": (_interrupted, INTERRUPTED),
    "wrong words": (lambda: main(["devices", "--nothing"]), 2),
    "an answer": (lambda: 3, 3),
}


@pytest.mark.parametrize(("work", "code"), ENDS.values(), ids=ENDS)
def test_exit_codes(work: Callable[[], int], code: int) -> None:
    assert finished(work) == code


def test_a_fault_of_ours_is_not_hidden() -> None:
    def work() -> int:
        raise FileNotFoundError(2, "No such file or directory", "gone")

    with pytest.raises(FileNotFoundError):
        finished(work)

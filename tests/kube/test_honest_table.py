"""The table in docs/guides/kubernetes.md: every cell is what the command does on that server."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kube.columns import EVICTS, INSTALLED, PLAIN, Cell, Column, cells, column, patch
from kube.control_plane import VARIABLE, missing, poll
from sully.install.admission import WARNING

REAL = (PLAIN, INSTALLED, EVICTS)
"""Those that a real control plane can be."""
SAYS = {
    "works": "",
    "works, estimated": "at least",
    "works, expanded": "are not covered by",
    "works, patches have no effect": "no effect",
    "works, patches only evict": "only evict pods",
    "no effect": "no effect",
    "only evicts": "only evict pods",
}
"""What a command prints, by the text of the cell; a warning or a refusal has its own text."""
_NOT_SAID = ("no effect", "at least")
"""What it does not print, unless the cell has it."""
_ABOUT_OTHERS = ("capabilities", "history", "install")
"""What these print is about other commands: history about those of all cells that ran before."""


CELLS = list(cells())
CASES = [
    *(pytest.param(cell, False, id=f"{cell.title}-{cell.command}") for cell in CELLS),
    *(
        pytest.param(cell, True, id=f"real-{cell.title}-{cell.command}", marks=pytest.mark.kube)
        for cell in CELLS
        if cell.title in REAL
    ),
]


class Servers:
    """The servers of the columns, each started for the first who needs it."""

    def __init__(self, folder: Path, running: ExitStack) -> None:
        self._folder = folder
        self._running = running
        self._columns: dict[tuple[str, bool], Column] = {}

    def of(self, title: str, *, real: bool) -> Column:
        if real and (reason := missing()):
            pytest.skip(reason)
        if (title, real) not in self._columns:
            folder = self._folder / f"{len(self._columns)}"
            folder.mkdir()
            started = self._running.enter_context(column(title, folder, real=real))
            self._columns[title, real] = started
        return self._columns[title, real]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with ExitStack() as running:
        yield Servers(tmp_path_factory.mktemp("columns"), running)


@pytest.mark.e2e
@pytest.mark.parametrize(("cell", "real"), CASES)
def test_a_cell_is_what_the_command_does(cell: Cell, real: bool, servers: Servers) -> None:
    server = servers.of(cell.title, real=real)
    server.reset()
    program, *arguments = shlex.split(cell.command.strip("`"))
    assert program == "sully"

    done = server.run(*arguments)

    problem = _problem(cell.text, done, alone=arguments[0] in _ABOUT_OTHERS)
    assert not problem, f"{problem}\n{done.returncode}\n{done.stdout}\n{done.stderr}"


def _problem(text: str, done: subprocess.CompletedProcess[str], *, alone: bool) -> str:
    """Return how a command did something else than a cell states.

    Unless `alone`, it must not report on estimates and missing effects that the cell does not have.
    """
    kind, _, what = text.partition(": ")
    reported, expected = done.stdout + done.stderr, SAYS.get(text, what)
    if (done.returncode != 0) != (kind == "refused"):
        return f"exit code {done.returncode}, not {text!r}"
    if expected not in (done.stderr if what else reported):
        return f"{expected!r} is not printed"
    if alone or expected == SAYS["only evicts"]:
        return ""
    more = [other for other in _NOT_SAID if other in reported and other != expected]
    return f"{more} is printed, but {text!r} expected" if more else ""


@pytest.mark.e2e
@pytest.mark.kube
def test_kubectl_is_warned_of_a_patch(servers: Servers) -> None:
    server = servers.of(INSTALLED, real=True)
    server.reset()
    body = patch("warned", own=False)

    # A policy counts a moment after it was created.
    def warned() -> bool:
        path = f"{server.patches}?dryRun=All"
        with server.scene.admin.open("POST", path, body) as answer:
            return WARNING in (answer.getheader("Warning") or "").replace("\\", "")

    poll(warned)


def test_cells_are_written_so_that_they_can_be_checked() -> None:
    texts = {cell.text for cell in CELLS}
    assert {
        x for x in texts - SAYS.keys() if x.partition(": ")[0] not in ("warns", "refused")
    } == set()


def test_the_real_columns_need_the_programs() -> None:
    """`make kube` lists what it skips."""
    assert bool(missing()) == (VARIABLE not in os.environ)

"""The recordings that conformance.py replays, and the servers it replays them against."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sully.testing.cluster import process
from sully.testing.remote import controllers

REFERENCE = ("--compat", "reference", "--log-level", "warning")
TRANSPORTS = ("inprocess", "http")
STARTING = 4
"""How many servers start at the same time: a start keeps a core busy."""


@dataclass(frozen=True, slots=True)
class Suite:
    """One recording, the program that replays it, and what that calls its results."""

    program: str
    recording: str
    counted: str
    flags: tuple[str, ...] = ()
    report: str = "--report"
    """The flag that names a file for the differences; empty: it writes none."""
    also: str = ""
    """The flag that names a further server; empty: it uses one."""
    lines: bool = True
    """Whether each line of the recording is independent, so that a part can be taken."""


SUITES = {
    "api": Suite("compare.py", "api.jsonl", "answers", ("--jobs", "4"), lines=False),
    "worlds": Suite("run_worlds.py", "worlds.jsonl", "worlds", also="--also"),
    "ocm": Suite("ocm_run.py", "ocm.jsonl", "scenarios", ("--jobs", "4"), report=""),
}


@contextmanager
def serving(transport: str, number: int) -> Iterator[list[Path]]:
    """Run control planes in reference mode; yield their kubeconfigs.

    Over http the controllers are in processes of their own.
    """
    with ExitStack() as stack:

        def start(_: int) -> Path:
            return stack.enter_context(_plane(transport))

        with ThreadPoolExecutor(STARTING) as pool:
            yield list(pool.map(start, range(number)))


@contextmanager
def _plane(transport: str) -> Iterator[Path]:
    flags = ("--store", "memory", *REFERENCE)
    if transport == "inprocess":
        with process(*flags) as up:
            yield up.kubeconfig
        return
    with (
        process(*flags, "--disable-controllers") as up,
        controllers(up.kubeconfig, *REFERENCE) as crew,
    ):
        crew.wait_for("leading since")
        yield up.kubeconfig


def spread(recording: Path, number: int, target: Path) -> int:
    """Write some lines of a recording, evenly spread; return how many it has."""
    lines = recording.read_text(encoding="utf-8").splitlines(keepends=True)
    chosen = sorted({round(n * (len(lines) - 1) / max(number - 1, 1)) for n in range(number)})
    target.write_text("".join(lines[index] for index in chosen), encoding="utf-8")
    return len(lines)


def programs(folder: Path, suite: Suite) -> Path:
    """Return the folder with the program of a suite: this one, or the one around it."""
    return folder if (folder / suite.program).exists() else folder.parent


def replay(
    suite: Suite, program: Path, recording: Path, servers: list[Path], only: str, scratch: Path
) -> tuple[str, list[dict[str, Any]]]:
    """Compare; return the output of the program, and its report."""
    report = scratch / "report.json"
    command = [sys.executable, str(program), str(recording), *suite.flags]
    command += ["--kubeconfig", str(servers[0])]
    for server in servers[1:]:
        command += [suite.also, str(server)]
    if suite.report:
        command += [suite.report, str(report)]
    if only:
        command += ["--only", only]
    # The folder belongs to another user, so nothing is left behind in it.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    return done.stdout, json.loads(report.read_text()) if report.exists() else []

"""Reads the shell sessions of a page: ```console blocks with commands and what they print.

A line that begins with `$ ` is a command; the lines below it are what it prints. A line of output
may stand for several with `...`, and `...` inside a line stands for anything. Spaces count as one.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sully.testing.patience import PATIENCE
from sully.testing.program import program

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANYTHING = "..."


@dataclass(slots=True)
class Command:
    """One command of a page and the output the page shows."""

    text: str
    output: list[str] = field(default_factory=list)


def commands(page: str) -> Iterator[Command]:
    """Go through the commands of all console blocks, in order."""
    for block in _BLOCK.findall(page):
        current: Command | None = None
        for line in block.splitlines():
            if line.startswith("$ "):
                if current is not None:
                    yield current
                current = Command(line.removeprefix("$ "))
            elif current is None:
                raise ValueError(f"output before the first command: {line!r}")
            elif current.text.endswith("\\"):
                current.text += "\n" + line
            else:
                current.output.append(line)
        if current is not None:
            yield current


def matches(shown: list[str], printed: str) -> bool:
    """Report whether a page shows what a command printed; no output shown fits everything."""
    if not shown:
        return True
    pattern = "\n".join(_line_pattern(line) for line in shown)
    text = "\n".join(" ".join(line.split()) for line in printed.strip().splitlines())
    return re.fullmatch(pattern, text, re.DOTALL) is not None


def without_errors(shown: list[str], printed: str) -> tuple[list[str], list[str]]:
    """Return which lines of standard error a page lacks, and what it shows of standard output.

    A terminal shows both, so a page that shows anything shows each line, or `...` for several.
    """
    lines = [" ".join(line.split()) for line in printed.splitlines() if line.strip()]
    if not shown or ANYTHING in shown:
        return [], shown
    patterns = [re.compile(_line_pattern(line)) for line in shown]
    missing = [line for line in lines if not any(one.fullmatch(line) for one in patterns)]
    rest = [
        line
        for line, one in zip(shown, patterns, strict=True)
        if not any(one.fullmatch(text) for text in lines)
    ]
    return missing, rest


def _line_pattern(line: str) -> str:
    parts = " ".join(line.split()).split(ANYTHING)
    if parts == ["", ""]:
        return ".*"
    return "[^\n]*".join(re.escape(part) for part in parts)


def run_all(
    page: str,
    *,
    where: Path,
    kubeconfig: Path,
    kubectl: Path,
    scratch: Path,
    other_server: bool = False,
) -> int:
    """Run every command of a page and hold it to what the page shows; return how many there are.

    Another server than that of the page gives other warnings, so they are not compared there.
    """
    programs = scratch / "bin"
    programs.mkdir()
    (programs / "kubectl").symlink_to(kubectl)
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"KUBECONFIG": str(kubeconfig), "PATH": path, "GOGC": "off"}
    ran = 0
    with program(programs):
        before = _files(where)
        for command in commands(page):
            _run(command, where, environment, other_server=other_server)
            ran += 1
    # Readers run them in a checkout, which must be clean afterwards.
    left = sorted(_files(where) - before)
    assert not left, f"left behind: {left}"
    return ran


def _run(command: Command, where: Path, environment: dict[str, str], *, other_server: bool) -> None:
    done = subprocess.run(
        ["bash", "-c", command.text],
        cwd=where,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, f"$ {command.text}\n{done.stdout}{done.stderr}"
    missing, shown = without_errors(command.output, done.stderr)
    if other_server:
        missing = [line for line in missing if not _is_warning(line)]
        shown = [line for line in shown if not _is_warning(line)]
    assert not missing, f"$ {command.text}\nnot shown: {missing}"
    assert matches(shown, done.stdout), f"$ {command.text}\n{done.stdout}"


def _is_warning(line: str) -> bool:
    return line.lower().startswith("warning: ")


def _files(folder: Path) -> set[str]:
    """Return all files, except those of a server that runs there, of tools, and of Python."""
    names = [path for path in folder.iterdir() if not path.name.startswith(".")]
    paths = (path for name in names if name.name != "data" for path in (name, *name.rglob("*")))
    return {str(path) for path in paths if path.is_file() and "__pycache__" not in path.parts}

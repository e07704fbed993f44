"""Where things are, and how the programs of a release are run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
PROGRAMS = Path(sys.executable).parent
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_EARLIEST = 315_532_800
"""1980: a zip archive cannot have an earlier time."""


class ReleaseError(Exception):
    """A check failed."""


def version() -> str:
    """Return the version from the one place that has it."""
    found = _VERSION.search((ROOT / "src/sully/__init__.py").read_text())
    if found is None:
        raise ReleaseError("src/sully/__init__.py has no __version__")
    return found[1]


def run(
    program: str | Path, *arguments: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None
) -> str:
    """Run a program of the release environment; return what it printed."""
    path = PROGRAMS / program if isinstance(program, str) else program
    done = subprocess.run(
        [path if path.exists() else program, *arguments],
        cwd=cwd,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(source_date()), **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        words = " ".join([path.name, *map(str, arguments)])
        raise ReleaseError(f"{words}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def source_date() -> int:
    """Return the time of the last commit, for archives that must not depend on the clock."""
    asked = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return _EARLIEST
    return int(done.stdout) if done.returncode == 0 else _EARLIEST

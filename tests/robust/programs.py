"""Runs `sully` as users do, and damages files."""

import os
import subprocess
from pathlib import Path

from sully.testing.forkserver import run
from sully.testing.patience import PATIENCE


def sully(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    return run(*map(str, arguments), timeout=PATIENCE)


def up_fails(directory: Path) -> str:
    """Start a server that cannot start; return the one line that it prints."""
    done = sully("up", "--data-dir", directory, "--listen", "127.0.0.1:0")
    assert done.returncode == 1, done.stdout + done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def files(directory: Path) -> dict[str, bytes]:
    """Return everything in a directory, except what a failed attempt may leave."""
    return {
        path.name: path.read_bytes()
        for path in sorted(directory.iterdir())
        if path.is_file() and path.name != "lock"
    }


def overwrite(path: Path, at: int, content: bytes) -> None:
    """Change bytes in the middle of a file."""
    with path.open("r+b") as file:
        file.seek(at, os.SEEK_SET if at >= 0 else os.SEEK_END)
        file.write(content)

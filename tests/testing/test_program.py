"""`sully` in a shell: what it prints and how it ends is what the program does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sully.testing.program import program

CASES = {
    "output": ("sully devices --help | grep -c ^Usage:", "1\n", 0),
    "a failure": ("sully devices --no-such-flag 2>/dev/null", "", 2),
    "several words": ("sully explain 'a  b' c d e 2>&1 | head -c 6", "error:", 0),
    "its folder": ("cd folder && sully devices --snapshot none.json 2>&1 | head -c 6", "error:", 0),
    "input": ("echo '{' | sully devices --snapshot - 2>&1 | head -c 6", "error:", 0),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("bin")
    with program(folder):
        yield f"{folder}:{os.environ['PATH']}"


@pytest.mark.parametrize(("command", "printed", "code"), CASES.values(), ids=CASES.keys())
def test_in_a_shell(command: str, printed: str, code: int, path: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    done = subprocess.run(
        ["bash", "-c", command],
        env=os.environ | {"PATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout, done.returncode) == (printed, code), done.stderr


def test_it_ends_with_the_block(tmp_path: Path) -> None:
    with program(tmp_path):
        pass

    assert subprocess.run([tmp_path / "sully"], capture_output=True, check=False).returncode != 0

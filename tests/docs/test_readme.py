"""What the README says to type works, and prints what the README shows."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.console import commands, matches
from sully.testing.cluster import Process, process

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def plane() -> Iterator[Process]:
    with process("--store", "memory") as running:
        yield running


@pytest.mark.e2e
def test_the_commands_of_the_readme_run(plane: Process, any_kubectl: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "kubectl").symlink_to(any_kubectl)
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"KUBECONFIG": str(plane.kubeconfig), "PATH": path}
    ran = 0
    for command in commands((ROOT / "README.md").read_text()):
        done = subprocess.run(
            ["bash", "-c", command.text],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        ran += 1
        assert done.returncode == 0, f"$ {command.text}\n{done.stdout}{done.stderr}"
        assert matches(command.output, done.stdout), f"$ {command.text}\n{done.stdout}"
    assert ran >= 5

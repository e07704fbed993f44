"""The commands of the README work, and prints what the README shows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.console import run_all
from e2e.beside import plane as controlled
from sully.testing.cluster import Process

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def plane(where: str) -> Iterator[Process]:
    with controlled(where, "--store", "memory") as running:
        yield running


@pytest.mark.e2e
def test_the_commands_of_the_readme_run(plane: Process, any_kubectl: Path, tmp_path: Path) -> None:
    page, kubeconfig = (ROOT / "README.md").read_text(), plane.kubeconfig
    ran = run_all(page, where=ROOT, kubeconfig=kubeconfig, kubectl=any_kubectl, scratch=tmp_path)
    assert ran >= 5

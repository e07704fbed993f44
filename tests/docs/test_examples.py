"""Every example is accepted, as a whole and without a warning."""

import subprocess
from pathlib import Path

import pytest

from e2e.beside import plane as controlled
from house.project import ROOT

FILES = sorted((ROOT / "examples").glob("*.yaml"))


@pytest.mark.e2e
def test_every_example_applies(where: str, any_kubectl: Path) -> None:
    assert FILES
    with controlled(where, "--store", "memory") as plane:
        for path in FILES:
            done = subprocess.run(
                [any_kubectl, "--kubeconfig", plane.kubeconfig, "apply", "-f", path],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert (done.returncode, done.stderr) == (0, ""), path.name

"""Every example is accepted, as a whole and without a warning."""

import subprocess
from pathlib import Path

import pytest
import yaml

from architecture.project import ROOT
from e2e.beside import plane as controlled
from sully.testing.patience import PATIENCE

FILES = sorted((ROOT / "examples").glob("*.yaml"))
ALL = {str(path.relative_to(ROOT)): path for path in sorted((ROOT / "examples").rglob("*.yaml"))}


@pytest.mark.parametrize("path", ALL.values(), ids=ALL)
def test_an_example_goes_into_the_namespace_that_is_asked_for(path: Path) -> None:
    namespaces = [
        document.get("metadata", {}).get("namespace")
        for document in yaml.safe_load_all(path.read_text())
    ]

    # kubectl refuses another `-n` than the one in a file.
    assert set(namespaces) <= {None}


@pytest.mark.e2e
def test_every_example_applies(where: str, any_kubectl: Path) -> None:
    assert FILES
    with controlled(where, "--store", "memory") as plane:
        for path in FILES:
            done = subprocess.run(
                [any_kubectl, "--kubeconfig", plane.kubeconfig, "apply", "-f", path],
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
            # A rule is announced with what it selects: here no device exists.
            others = [x for x in done.stderr.splitlines() if not x.startswith("Warning: selects ")]
            assert (done.returncode, others) == (0, []), path.name

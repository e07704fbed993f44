"""A skip is never silent, and in CI it fails the run."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from architecture.project import ROOT

SKIPS = "import pytest\n\ndef test_it():\n    pytest.skip('no such tool')\n"
PASSES = "def test_it():\n    pass\n"


@dataclass(frozen=True)
class Case:
    suite: str
    ci: str
    code: int
    named: bool


CASES = {
    "a skip at the desk": Case(SKIPS, ci="", code=0, named=True),
    "a skip in CI": Case(SKIPS, ci="true", code=1, named=True),
    "no skip in CI": Case(PASSES, ci="true", code=0, named=False),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_skips_are_named(case: Case, tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(case.suite)
    environment = os.environ | {
        "CI": case.ci,
        "PYTHONPATH": str(ROOT / "tests"),
        # It is about our plugin; others take seconds to load.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    command = [sys.executable, "-m", "pytest", "-p", "suite_plugin", "-p", "no:cacheprovider"]

    done = subprocess.run(
        [*command, "--rootdir", tmp_path, tmp_path],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == case.code, done.stdout
    assert ("1  test_suite.py: no such tool" in done.stdout) == case.named

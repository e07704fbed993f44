"""The pytest plugin, used as its guide shows it: every example of the page is run by pytest."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from architecture.project import ROOT
from sully.testing.patience import PATIENCE
from sully.testing.server import serve

PAGES = ("testing", "driver-ci")
EXAMPLES = [
    example
    for page in PAGES
    for example in re.findall(
        r"^```python\n(.*?)^```$",
        (ROOT / f"docs/guides/{page}.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
]
_OTHERS = ("schemathesis", "xdist", "asyncio", "hypothesispytest", "randomly")
"""Plugins of other packages, which the examples do not need."""


@pytest.mark.slow
def test_the_examples_of_the_guide_pass(tmp_path: Path) -> None:
    for number, text in enumerate(EXAMPLES):
        (tmp_path / f"test_example_{number}.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    off = [word for name in _OTHERS for word in ("-p", f"no:{name}")]

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *off, "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert f"{len(EXAMPLES)} passed" in done.stdout, done.stdout + done.stderr


def test_the_plugin_is_found_by_its_entry_point(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.pluginmanager.get_plugin("sully") is not None


def test_a_server_that_cannot_start_reports_why() -> None:
    with pytest.raises(ValueError, match="NoSuchGate"), serve(feature_gates="NoSuchGate=true"):
        pass
